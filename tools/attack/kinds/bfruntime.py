"""BfRuntime batches, reads, programs and stream messages: the server has to answer, and to end quickly."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.keys import width_of
from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled, compile_program
from p4switch.engine import build, load
from p4switch.p4runtime import Device
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.client import LocalClient
from tools.attack.attack import P4SRC, Attack, Finding
from tools.attack.filling import Filler, Message, spoilt

_REQUESTS = 300  # requests of one attempt
_STREAMS = 10
_CALL_S = 120.0
_ALL_PIPES = 0xFFFF
_ARCHITECTURES = ("tna", "t2na")
_FADING = Path(__file__).with_name("fading.p4")
_SERVICE = "/bfrt_proto.BfRuntime/"
_REQUEST_OF = {
    "Write": bfruntime_pb2.WriteRequest,
    "Read": bfruntime_pb2.ReadRequest,
    "SetForwardingPipelineConfig": bfruntime_pb2.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": bfruntime_pb2.GetForwardingPipelineConfigRequest,
}
_SERVERS_OWN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_CHANGES = [bfruntime_pb2.Update.Type.Value(name) for name in ("INSERT", "INSERT_OR_MODIFY", "MODIFY", "MODIFY_INC")]
_METADATA = (("error_in_resp", "1"), ("ignore_not_found", "1"), ("deadline_sec", "1"), ("deadline_nsec", "x"))


class _Maker(Filler):
    """Generator of random messages that are mostly valid for the tables of a program."""

    def __init__(self, tables: Sequence[dict[str, Any]], rng: random.Random) -> None:
        fields = [f["id"] for t in tables for f in t["key"]]
        super().__init__([*(t["id"] for t in tables), *fields], rng)
        self._tables = tables

    def entry(self, into: Message, most: int = 3) -> None:
        """Fill in an entry of a table, mostly a valid one with small numbers."""
        rng = self.rng
        table = rng.choice(self._tables)
        into.table_id = table["id"]
        into.is_default_entry = rng.random() < 0.05
        for info in table["key"] if rng.random() < 0.97 else ():
            self._key(into.key.fields.add(field_id=info["id"]), info, most)
        fields = [rng.choice(d["oneof"]) if "oneof" in d else d["singleton"] for d in table["data"] if len(d) > 2]
        if table.get("action_specs"):
            spec = rng.choice(table["action_specs"])
            into.data.action_id = spec["id"]
            fields += spec["data"]
        for info in fields:
            if "type" in info and rng.random() < 0.9:  # the other attributes contain fields
                self._data(into.data.fields.add(field_id=info["id"]), info, most)
        into.table_flags.mod_del = rng.random() < 0.3
        if rng.random() < 0.05:
            self.fill(into)

    def attribute(self, into: Message) -> None:
        """Fill in an attribute that the table may have."""
        rng = self.rng
        kinds = {"EntryScope": "entry_scope", "IdleTimeout": "idle_table", "port_status_notif_cb": "port_status_notify"}
        table = rng.choice([t for t in self._tables if t["attributes"]])
        into.table_id = table["id"]
        kind = kinds.get(rng.choice(table["attributes"]), "dyn_key_mask")
        getattr(into, kind).SetInParent()
        self.fill(getattr(into, kind))
        if kind == "entry_scope" and rng.random() < 0.7:
            into.entry_scope.CopyFrom(bfruntime_pb2.EntryScope(pipe_scope={"predef": rng.randrange(2)}))

    def operation(self, into: Message) -> None:
        """Fill in an operation that a table has."""
        table = self.rng.choice([t for t in self._tables if t["supported_operations"]])
        into.table_id, into.table_operations_type = table["id"], self.rng.choice(table["supported_operations"])

    def _number(self, info: dict[str, Any], most: int) -> bytes:
        length = size(width_of(info)) + (self.rng.random() < 0.01)
        whole = (1 << width_of(info)) - 1
        chosen = whole if self.rng.random() < 0.05 else self.rng.randrange(most)
        return min(chosen, whole).to_bytes(length, "big")

    def _key(self, into: Message, info: dict[str, Any], most: int) -> None:
        kind = info["match_type"] if self.rng.random() < 0.99 else "Optional"
        one, other = (self._number(info, most) for _ in range(2))
        if kind == "Ternary":
            into.ternary.value, into.ternary.mask = one, other
        elif kind == "Range":
            into.range.low, into.range.high = one, other
        elif kind == "LPM":
            into.lpm.value, into.lpm.prefix_len = one, self.rng.choice((0, 8, width_of(info), width_of(info) + 1))
        elif kind == "Optional":
            into.optional.value, into.optional.is_valid = one, self.rng.random() < 0.5
        else:
            into.exact.value = one

    def _data(self, into: Message, info: dict[str, Any], most: int) -> None:
        rng, kind = self.rng, info["type"]["type"]
        if rng.random() < 0.01:
            self.fill(into)
        elif info["repeated"]:
            many = range(rng.randrange(3))
            if kind == "bool":
                into.bool_arr_val.val.extend(rng.random() < 0.5 for _ in many)
            else:
                into.int_arr_val.val.extend(2**32 - 1 if rng.random() < 0.05 else rng.randrange(most) for _ in many)
        elif kind == "bool":
            into.bool_val = rng.random() < 0.5
        elif kind == "string":
            into.str_val = rng.choice(info["type"].get("choices") or ["x"]) if rng.random() < 0.95 else "x"
        else:
            into.stream = self._number(info, most)


class BfRuntime(Attack):
    units = "requests"
    short_turns = 8
    patience_s = 600

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._programs = {
            arch: [compile_program(P4SRC / name, [P4SRC], arch=arch) for name in ("ecn.p4", "int.p4")]
            for arch in _ARCHITECTURES
        }
        self._programs["tna"].append(compile_program(_FADING, arch="tna"))

    def attempt(self, rng: random.Random) -> int:
        arch = rng.choice(_ARCHITECTURES)
        program = rng.choice(self._programs[arch])
        fixed = ARCHITECTURES.find(arch).fixed_tables
        device = Device(lambda made: load().Switch(str(build(made))), 0)
        LocalClient(device).set_pipeline(program.p4info, program.json_bytes)
        server = BfRuntimeServer([Program("program", [Pipe(0, device, program)])], "127.0.0.1:0", fixed)
        server.start()
        channel = grpc.insecure_channel(f"127.0.0.1:{server.port}", options=[("grpc.enable_http_proxy", 0)])
        maker = _Maker([*program.bf_rt["tables"], *fixed], rng)
        last = b""
        try:
            for _ in range(_REQUESTS):
                method, last = _request(program, maker)
                _call(channel, method, last, [each for each in _METADATA if rng.random() < 0.05])
            server.poll()
            for _ in range(_STREAMS):
                last = _stream(channel, maker)
            self._still_right(channel, fixed)
        except Finding as finding:
            raise Finding(str(finding), {"request": last}) from None
        finally:
            channel.close()
            server.stop()
        return _REQUESTS + _STREAMS

    @staticmethod
    def _still_right(channel: grpc.Channel, fixed: Sequence[Any]) -> None:
        """Raise Finding if the server no longer answers valid requests correctly."""
        request = bfruntime_pb2.WriteRequest(updates=[{"type": "INSERT_OR_MODIFY"}])
        request.target.pipe_id = _ALL_PIPES
        entry = request.updates[0].entity.table_entry
        entry.table_id = next(t["id"] for t in fixed if t["name"] == "$pre.prune")
        entry.key.fields.add(field_id=1).exact.value = b"\0\1"
        entry.data.fields.add(field_id=1).int_arr_val.val.append(3)
        try:
            channel.unary_unary(_SERVICE + "Write")(request.SerializeToString(), timeout=_CALL_S)
        except grpc.RpcError as error:
            raise Finding(f"a request that is right is refused: {error.details()}") from None


def _request(program: Compiled, maker: _Maker) -> tuple[str, bytes]:
    rng = maker.rng
    method = rng.choices(list(_REQUEST_OF), (24, 10, 1, 1))[0]
    message = _REQUEST_OF[method]()
    if method in ("Write", "Read"):
        message.target.pipe_id = _ALL_PIPES if rng.random() < 0.9 else 0
    if method == "Write":
        message.atomicity = rng.choice((0, 0, 0, 1, 2))
        for _ in range(rng.choice((1, 1, 3, 20))):
            update = message.updates.add(type=rng.choice((*_CHANGES, rng.randrange(7))))
            how = rng.random()
            if how < 0.85:
                maker.entry(update.entity.table_entry)
            elif how < 0.92:
                maker.attribute(update.entity.table_attribute)
            elif how < 0.95:
                maker.operation(update.entity.table_operation)
            else:
                maker.fill(update)
    elif method == "Read":
        for _ in range(rng.choice((1, 2))):
            entity = message.entities.add()
            how = rng.random()
            if how < 0.6:
                maker.entry(entity.table_entry)
                entity.table_entry.table_flags.from_hw = rng.random() < 0.5
                if rng.random() < 0.2:
                    entity.table_entry.handle_id = rng.randrange(4)
            elif how < 0.7:
                maker.attribute(entity.table_attribute)
            elif how < 0.8:
                entry = bfruntime_pb2.TableEntry()
                maker.entry(entry)
                entity.handle.table_id = entry.table_id
                entity.handle.key.CopyFrom(entry.key)
            else:
                maker.fill(entity)
    elif method == "SetForwardingPipelineConfig":
        message.action = rng.randrange(6)
        message.config.add(p4_name=rng.choice(("program", "other")), bfruntime_info=json.dumps(program.bf_rt).encode())
        if rng.random() < 0.3:
            maker.fill(message)
    data = message.SerializeToString()
    return method, spoilt(data, rng) if rng.random() < 0.05 else data


def _call(channel: grpc.Channel, method: str, data: bytes, metadata: Sequence[tuple[str, str]]) -> None:
    try:
        if method == "Read":
            for _ in channel.unary_stream(_SERVICE + method)(data, timeout=_CALL_S, metadata=metadata):
                pass
        else:
            channel.unary_unary(_SERVICE + method)(data, timeout=_CALL_S, metadata=metadata)
    except grpc.RpcError as error:
        _check(method, error, asked=any(name.startswith("deadline") for name, _ in metadata))


def _check(where: str, error: Any, asked: bool = False) -> None:
    """Raise Finding for an error that is the server's own fault."""
    code, details = error.code(), error.details() or ""
    refused = "DecodeError" in details or "deserializ" in details  # gRPC's text for bytes that are not a message
    if refused or (asked and code is grpc.StatusCode.DEADLINE_EXCEEDED):
        return
    if "Unexpected <class" in details or code in _SERVERS_OWN:
        raise Finding(f"{where}: {code.name}: {details}")


def _stream(channel: grpc.Channel, maker: _Maker) -> bytes:
    """Open a stream with a few messages, and leave it, mostly without waiting for answers."""
    rng = maker.rng
    sent = maker.stream(bfruntime_pb2.StreamMessageRequest)
    call = channel.stream_stream(_SERVICE + "StreamChannel")(iter(sent), timeout=_CALL_S)
    if rng.random() < 0.5:
        try:
            for _ in call:
                break
        except grpc.RpcError as error:
            _check("stream", error)
    call.cancel()
    return b"".join(sent)
