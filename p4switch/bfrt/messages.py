"""Protobuf messages of BfRuntime, as attributes of `bfruntime_pb2`, built from the published names and numbers.

They have a descriptor pool of their own, so that a process may also load another `bfruntime.proto`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeAlias

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper
from google.rpc import status_pb2

Message: TypeAlias = Any

_FILE, _PACKAGE = "bfruntime.proto", "bfrt_proto"
_KINDS = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _KINDS.TYPE_BOOL,
    "bytes": _KINDS.TYPE_BYTES,
    "float": _KINDS.TYPE_FLOAT,
    "int32": _KINDS.TYPE_INT32,
    "string": _KINDS.TYPE_STRING,
    "uint32": _KINDS.TYPE_UINT32,
    "uint64": _KINDS.TYPE_UINT64,
}
_ENUMS = {
    "WriteRequest.Atomicity": ["CONTINUE_ON_ERROR", "ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"],
    "Update.Type": ["UNSPECIFIED", "INSERT", "MODIFY", "MODIFY_INC", "DELETE", "INSERT_OR_MODIFY", "RESET"],
    "TableModIncFlag.Type": ["MOD_INC_ADD", "MOD_INC_DELETE"],
    "IdleTable.IdleTableMode": ["IDLE_TABLE_POLL_MODE", "IDLE_TABLE_NOTIFY_MODE"],
    "Mode.PredefinedMode": ["ALL", "SINGLE"],
    "IdleTimeoutNotification.NotificationType": ["ENTRY_ACTIVE", "ENTRY_IDLE"],
    "SetForwardingPipelineConfigRequest.Action": [
        "BIND", "VERIFY", "VERIFY_AND_WARM_INIT_BEGIN", "VERIFY_AND_WARM_INIT_BEGIN_AND_END", "WARM_INIT_END",
        "RECONCILE_AND_WARM_INIT_END",
    ],
    "SetForwardingPipelineConfigRequest.DevInitMode": ["FAST_RECONFIG", "HITLESS"],
    "SetForwardingPipelineConfigResponseType": ["WARM_INIT_STARTED", "WARM_INIT_FINISHED"],
}  # fmt: skip
# Each line is a message, NAME: FIELDS. A field is TYPE NAME=NUMBER, *TYPE NAME=NUMBER if it is
# repeated, or ONEOF(FIELDS).
_MESSAGES = """
WriteRequest: TargetDevice target=1, uint32 client_id=2, *Update updates=3, WriteRequest.Atomicity atomicity=4, \
string p4_name=5
WriteResponse: *Error status=1
ReadRequest: TargetDevice target=1, uint32 client_id=2, *Entity entities=3, string p4_name=4
ReadResponse: *Entity entities=1, *Error status=2
TargetDevice: uint32 device_id=1, uint32 pipe_id=2, uint32 direction=3, uint32 prsr_id=4
Update: Update.Type type=1, Entity entity=2
Entity: entity(TableEntry table_entry=1, TableUsage table_usage=2, TableAttribute table_attribute=3, \
TableOperation table_operation=4, ObjectId object_id=5, HandleId handle=6)
HandleId: uint32 table_id=1, value(TableKey key=2, uint32 handle_id=3)
TableEntry: uint32 table_id=1, value(TableKey key=2, uint32 handle_id=7), TableData data=3, bool is_default_entry=4, \
TableReadFlag table_read_flag=5, TableModIncFlag table_mod_inc_flag=6, TargetDevice entry_tgt=8, \
TableFlags table_flags=9
TableUsage: uint32 table_id=1, uint32 usage=2, TableReadFlag table_read_flag=3, TableFlags table_flags=4
TableAttribute: uint32 table_id=1, attribute(IdleTable idle_table=2, EntryScope entry_scope=3, \
DynKeyMask dyn_key_mask=4, DynHashing dyn_hashing=5, ByteCountAdj byte_count_adj=6, \
PortStatusChg port_status_notify=7, StatePullIntvl intvl_ms=8, PreDeviceConfig pre_device_config=9, \
SelectorUpdateCb selector_update_notify=10)
TableOperation: uint32 table_id=1, string table_operations_type=2
TableData: uint32 action_id=1, *DataField fields=2
DataField: uint32 field_id=1, value(bytes stream=2, float float_val=3, string str_val=4, \
DataField.IntArray int_arr_val=5, DataField.BoolArray bool_arr_val=6, DataField.ContainerArray container_arr_val=7, \
bool bool_val=8, DataField.StrArray str_arr_val=9)
DataField.IntArray: *uint32 val=1
DataField.BoolArray: *bool val=1
DataField.StrArray: *string val=1
DataField.ContainerArray: *DataField.ContainerArray.Container container=1
DataField.ContainerArray.Container: *DataField val=1
TableKey: *KeyField fields=1
KeyField: uint32 field_id=1, match_type(KeyField.Exact exact=2, KeyField.Ternary ternary=3, KeyField.LPM lpm=4, \
KeyField.Range range=5, KeyField.Optional optional=6)
KeyField.Exact: bytes value=1
KeyField.Ternary: bytes value=1, bytes mask=2
KeyField.LPM: bytes value=1, int32 prefix_len=2
KeyField.Range: bytes low=1, bytes high=2
KeyField.Optional: bytes value=1, bool is_valid=2
TableReadFlag: bool from_hw=1, bool key_only=2
TableFlags: bool from_hw=1, bool key_only=2, bool mod_del=3, bool reset_ttl=4, bool reset_stats=5
TableModIncFlag: TableModIncFlag.Type type=1
KeyFieldMask: uint32 field_id=1, bytes mask=2
DynKeyMask: *KeyFieldMask fields=1
DynHashing: uint32 alg=1, uint64 seed=2
ByteCountAdj: int32 byte_count_adjust=1
IdleTable: uint32 ttl_query_interval=1, uint32 max_ttl=2, uint32 min_ttl=3, \
IdleTable.IdleTableMode idle_table_mode=4, bool enable=5
StatePullIntvl: uint32 intvl_val=1
PortStatusChg: bool enable=1
SelectorUpdateCb: bool enable=1
Mode: scope(Mode.PredefinedMode predef=1, uint64 user_defined=2), uint64 args=3
PreGlobalRid: uint32 global_rid=1
PrePortProtection: bool enable=1
PreFastFailover: bool enable=1
PreMaxNodesBeforeYield: uint32 count=1
PreMaxNodeThreshold: uint32 node_count=1, uint32 port_lag_count=2
PreDeviceConfig: PreGlobalRid pre_global_rid=1, PrePortProtection pre_port_protection=2, \
PreFastFailover pre_fast_failover=3, PreMaxNodesBeforeYield pre_max_nodes_before_yield=4, \
PreMaxNodeThreshold pre_max_node_threshold=5
EntryScope: Mode gress_scope=1, Mode pipe_scope=2, Mode prsr_scope=3
ObjectId: object(ObjectId.TableObject table_object=1, ObjectId.LearnObject learn_object=2), uint32 id=3
ObjectId.ActionName: string action=1
ObjectId.KeyFieldName: string field=1
ObjectId.DataFieldName: string action=1, string field=2
ObjectId.TableObject: string table_name=1, names(ObjectId.ActionName action_name=2, \
ObjectId.KeyFieldName key_field_name=3, ObjectId.DataFieldName data_field_name=4)
ObjectId.LearnObject: string learn_name=1, ObjectId.DataFieldName data_field_name=2
StreamMessageRequest: uint32 client_id=1, update(Subscribe subscribe=2, DigestListAck digest_ack=3)
Subscribe: bool is_master=1, uint32 device_id=2, Subscribe.Notifications notifications=3, google.rpc.Status status=4
Subscribe.Notifications: bool enable_learn_notifications=1, bool enable_idletimeout_notifications=2, \
bool enable_port_status_change_notifications=3, bool enable_entry_active_notifications=4, \
bool enable_selector_update_change_notifications=5
DigestListAck: uint32 digest_id=1, uint32 list_id=2
StreamMessageResponse: update(Subscribe subscribe=1, DigestList digest=2, \
IdleTimeoutNotification idle_timeout_notification=3, PortStatusChgNotification port_status_change_notification=4, \
SetForwardingPipelineConfigResponse set_forwarding_pipeline_config_response=5, \
SelectorUpdateChgNotification selector_update_change_notification=6)
DigestList: uint32 digest_id=1, uint32 list_id=2, *TableData data=3, TargetDevice target=4
IdleTimeoutNotification: TargetDevice target=1, TableEntry table_entry=2, \
IdleTimeoutNotification.NotificationType type=3
PortStatusChgNotification: TableEntry table_entry=1, bool port_up=2
SelectorUpdateChgNotification: uint32 sel_group_id=1, uint32 act_member_id=2, uint32 logical_entry_index=3, \
bool is_add=4
SetForwardingPipelineConfigRequest: uint32 device_id=1, uint32 client_id=2, \
SetForwardingPipelineConfigRequest.Action action=3, SetForwardingPipelineConfigRequest.DevInitMode dev_init_mode=4, \
string base_path=5, *ForwardingPipelineConfig config=6
SetForwardingPipelineConfigResponse: \
SetForwardingPipelineConfigResponseType set_forwarding_pipeline_config_response_type=1
ForwardingPipelineConfig: string p4_name=1, bytes bfruntime_info=2, *ForwardingPipelineConfig.Profile profiles=3
ForwardingPipelineConfig.Profile: string profile_name=1, bytes context=2, bytes binary=3, *uint32 pipe_scope=4
NonP4Config: bytes bfruntime_info=1
GetForwardingPipelineConfigRequest: uint32 device_id=1, uint32 client_id=2
GetForwardingPipelineConfigResponse: *ForwardingPipelineConfig config=1, NonP4Config non_p4_config=2
Error: int32 canonical_code=1, string message=2, string space=3, int32 code=4
"""


def _add_field(message: Any, text: str, oneof: int | None) -> None:
    kind, _, rest = text.strip().partition(" ")
    name, _, number = rest.partition("=")
    repeated, kind = kind.startswith("*"), kind.removeprefix("*")
    label = _KINDS.LABEL_REPEATED if repeated else _KINDS.LABEL_OPTIONAL
    field = message.field.add(name=name, number=int(number), label=label)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _KINDS.TYPE_ENUM if kind in _ENUMS else _KINDS.TYPE_MESSAGE
        field.type_name = f".{kind}" if kind.startswith("google.") else f".{_PACKAGE}.{kind}"
    if oneof is not None:
        field.oneof_index = oneof


def _described() -> Any:
    """Return the FileDescriptorProto of `bfruntime.proto`."""
    dependencies = ["google/rpc/status.proto"]
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto3", dependency=dependencies)
    types: dict[str, Any] = {}
    for line in _MESSAGES.strip().splitlines():
        name, _, fields = line.partition(":")
        outer, _, own = name.rpartition(".")
        message = types[name] = types[outer].nested_type.add(name=own) if outer else file.message_type.add(name=own)
        choice: int | None = None
        for text in fields.split(","):
            if "(" in text:
                oneof, _, text = text.partition("(")
                choice = len(message.oneof_decl)
                message.oneof_decl.add(name=oneof.strip())
            _add_field(message, text.rstrip(")"), choice)
            if text.endswith(")"):
                choice = None
    for name, values in _ENUMS.items():
        outer, _, own = name.rpartition(".")
        enum = (types[outer] if outer else file).enum_type.add(name=own)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    return file


def _load() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in (any_pb2.DESCRIPTOR, status_pb2.DESCRIPTOR):
        pool.AddSerializedFile(file.serialized_pb)
    pool.AddSerializedFile(_described().SerializeToString())
    described = pool.FindFileByName(_FILE)
    names: dict[str, Any] = {"DESCRIPTOR": described}
    for name, descriptor in described.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(descriptor)
    for name, enum in described.enum_types_by_name.items():
        names[name] = enum_type_wrapper.EnumTypeWrapper(enum)
    return SimpleNamespace(**names)


bfruntime_pb2: Any = _load()
