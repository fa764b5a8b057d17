"""The BfRuntime server: writes that affect packets, that P4Runtime sees, and that can be read."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from click.testing import CliRunner

from p4switch.bfrt.messages import bfruntime_pb2
from p4switch.compiler import Compiled
from p4switch.daemon.command import command
from p4switch.p4runtime.messages import code_pb2, p4runtime_pb2
from tests.p4switch.bfrt.conftest import Bench, Client, errors

PB = bfruntime_pb2
ROUTE, SPREAD = "In.route", "In.spread"


def route(client: Client, kind: int, priority: int = 1, value: tuple[int, int] = (0, 255), **data: Any) -> Any:
    keys = {
        "hdr.h.kind": (kind, 0xFF),
        "hdr.h.value": value,
        "intrinsic.ingress_port": 1,
        "$MATCH_PRIORITY": priority,
    }
    return client.entry(ROUTE, keys, **data)


def refused(call: Any, *arguments: Any, **more: Any) -> list[tuple[int, str]]:
    with pytest.raises(grpc.RpcError) as raised:
        call(*arguments, **more)
    assert raised.value.code() == grpc.StatusCode.UNKNOWN
    return errors(raised.value)


# The session


def test_a_subscription_is_answered_with_ok(client: Client) -> None:
    assert next(client.subscribe()).subscribe.status.code == code_pb2.OK


def test_a_subscription_to_another_device_is_refused(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        next(client.subscribe(device_id=3))
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_subscribed_client_is_told_of_digests(bench: Bench, client: Client) -> None:
    stream = client.subscribe()
    next(stream)
    bench.switch.process(1, bytes([99, 1]))
    for message in bench.device.poll():
        bench.server.publish(0, message)
    digest = next(stream).digest
    assert digest.digest_id >> 24 == 0x8E
    assert [[f.stream for f in data.fields] for data in digest.data] == [[b"\x63", b"\x00\x07"]]


def test_the_program_begins_anew_with_its_own_config(bench: Bench, client: Client) -> None:
    client.write("INSERT", route(client, 7, action="drop"))
    stream = client.subscribe()
    next(stream)
    made = client.call(
        "GetForwardingPipelineConfig", PB.GetForwardingPipelineConfigRequest(), PB.GetForwardingPipelineConfigResponse
    )
    request = PB.SetForwardingPipelineConfigRequest(client_id=1, action="VERIFY_AND_WARM_INIT_BEGIN_AND_END")
    request.config.extend(made.config)
    client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
    told = next(stream).set_forwarding_pipeline_config_response
    assert told.set_forwarding_pipeline_config_response_type == 1  # WARM_INIT_FINISHED
    assert client.read(client.entry(ROUTE)) == []
    for wrong in (b"{}", b"{"):
        request.config[0].bfruntime_info = wrong
        with pytest.raises(grpc.RpcError) as raised:
            client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
        assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_client_replays_entries_between_the_beginning_and_the_end_of_a_restart(
    program: Compiled, client: Client
) -> None:
    client.write("INSERT", route(client, 7, action="drop"))
    stream = client.subscribe()
    next(stream)
    begin = PB.SetForwardingPipelineConfigRequest(client_id=1, action="VERIFY_AND_WARM_INIT_BEGIN")
    begin.config.add(p4_name="program", bfruntime_info=json.dumps(program.bf_rt, indent=4).encode())
    end = PB.SetForwardingPipelineConfigRequest(client_id=1, action="WARM_INIT_END")
    with pytest.raises(grpc.RpcError) as raised:
        client.call("SetForwardingPipelineConfig", end, PB.SetForwardingPipelineConfigResponse)
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    for request, kind in ((begin, 0), (end, 1)):  # WARM_INIT_STARTED, WARM_INIT_FINISHED
        client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
        told = next(stream).set_forwarding_pipeline_config_response
        assert told.set_forwarding_pipeline_config_response_type == kind
        assert len(client.read(client.entry(ROUTE))) == kind
        if request is begin:
            client.write("INSERT", route(client, 7, action="drop"))


PRE = ("mgid", "node", "ecmp", "lag", "prune", "port")
GENERATOR = ("port_cfg", "app_cfg", "pkt_buffer")


def test_a_client_can_ask_what_the_device_is(bench: Bench, client: Client) -> None:
    made = client.call(
        "GetForwardingPipelineConfig", PB.GetForwardingPipelineConfigRequest(), PB.GetForwardingPipelineConfigResponse
    )
    table, *copies = json.loads(made.non_p4_config.bfruntime_info)["tables"]
    client.tables["device"] = table
    names = ["$PORT", "$PORT_STAT", "$mirror.cfg"]
    names += [*(f"$pre.{name}" for name in PRE), *(f"tf1.pktgen.{name}" for name in GENERATOR)]
    names += [f"tf1.tm.port.{name}" for name in ("cfg", "sched_cfg", "sched_shaping")]
    names += [f"tf1.tm.queue.{name}" for name in ("map", "sched_cfg", "sched_shaping")]
    names += ["tf1.tm.counter.eg_port", "tf1.tm.counter.queue"]
    assert [each["name"] for each in copies] == names
    (found,) = client.read(client.entry("device", default=True))
    assert (table["name"], found["num_pipes"]) == ("tf1.dev.device_configuration", 1)


def test_a_client_binds_to_the_program_by_its_name(client: Client) -> None:
    request = PB.SetForwardingPipelineConfigRequest()
    request.config.add(p4_name="program")
    client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
    request.config[0].p4_name = "other"
    with pytest.raises(grpc.RpcError) as raised:
        client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


def test_other_actions_than_bind_are_refused_by_name(client: Client) -> None:
    request = PB.SetForwardingPipelineConfigRequest(action="RECONCILE_AND_WARM_INIT_END")
    with pytest.raises(grpc.RpcError) as raised:
        client.call("SetForwardingPipelineConfig", request, PB.SetForwardingPipelineConfigResponse)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "RECONCILE_AND_WARM_INIT_END" in (raised.value.details() or "")


def test_the_config_has_the_programs_bf_rt_json(client: Client, program: Compiled) -> None:
    made = client.call(
        "GetForwardingPipelineConfig", PB.GetForwardingPipelineConfigRequest(), PB.GetForwardingPipelineConfigResponse
    )
    assert made.config[0].p4_name == "program"
    assert json.loads(made.config[0].bfruntime_info) == program.bf_rt


# Match-action tables


def test_an_entry_sends_packets(bench: Bench, client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3))
    assert [port for port, _ in bench.switch.process(1, bytes([7, 1]))] == [3]
    (found,) = client.read(route(client, 7))
    assert (found["action"], found["port"]) == ("In.send", 3)
    assert (found["$COUNTER_SPEC_PKTS"], found["$COUNTER_SPEC_BYTES"]) == (1, 2 + 4)  # including the FCS
    client.write("DELETE", route(client, 7))
    assert bench.switch.process(1, bytes([7, 1])) == []


def test_of_two_entries_the_lower_priority_number_wins(bench: Bench, client: Client) -> None:
    client.write("INSERT", route(client, 7, 20, action="send", port=3), route(client, 7, 10, action="send", port=4))
    assert [port for port, _ in bench.switch.process(1, bytes([7, 1]))] == [4]


def test_p4runtime_sees_the_same_entries(bench: Bench, client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3))
    ids = {t.preamble.name: t.preamble.id for t in bench.p4info.tables}
    (entity,) = bench.p4runtime.read([p4runtime_pb2.Entity(table_entry={"table_id": ids[ROUTE]})])
    assert entity.table_entry.action.action.params[0].value == b"\3"
    bench.p4runtime.write([p4runtime_pb2.Update(type="DELETE", entity=entity)])
    assert client.read(client.entry(ROUTE)) == []


def test_what_a_modification_does_not_give_stays(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3, _COUNTER_SPEC_PKTS=9))
    client.write("MODIFY", route(client, 7, action="send", port=4))
    (found,) = client.read(route(client, 7))
    assert (found["port"], found["$COUNTER_SPEC_PKTS"]) == (4, 9)
    client.write("MODIFY", route(client, 7, _COUNTER_SPEC_BYTES=100))
    (found,) = client.read(route(client, 7))
    assert (found["port"], found["$COUNTER_SPEC_PKTS"], found["$COUNTER_SPEC_BYTES"]) == (4, 9, 100)


def scope_of(client: Client, table: str, **pipes: int) -> Any:
    request = PB.WriteRequest()
    request.target.pipe_id = 0xFFFF
    attribute = request.updates.add(type="INSERT").entity.table_attribute
    attribute.table_id = client.tables[table]["id"]
    for name, value in pipes.items():
        setattr(attribute.entry_scope.pipe_scope, name, value)
    return request


def test_the_only_pipe_has_the_entries_of_all(bench: Bench, client: Client) -> None:
    ((code, message),) = refused(client.write, "INSERT", route(client, 7, action="send", port=3), pipe=0)
    assert code == code_pb2.INVALID_ARGUMENT
    assert "pipe 0; expected 0xffff" in message
    client.call("Write", scope_of(client, ROUTE, predef=PB.Mode.SINGLE), PB.WriteResponse)
    assert client.attribute(ROUTE, "entry_scope").pipe_scope.predef == PB.Mode.SINGLE
    client.write("INSERT", route(client, 7, action="send", port=3), pipe=0)
    assert [port for port, _ in bench.switch.process(1, bytes([7, 1]))] == [3]
    client.call("Write", scope_of(client, ROUTE, user_defined=1), PB.WriteResponse)
    assert client.attribute(ROUTE, "entry_scope").pipe_scope.user_defined == 1
    client.write("DELETE", route(client, 7), pipe=0)


@pytest.mark.parametrize(
    ("pipes", "told"),
    [
        ({"user_defined": 0x0103}, "expected pipe 0 in one scope"),
        ({"predef": 7}, "expected ALL or SINGLE"),
        ({}, "the attribute is missing"),
    ],
)
def test_scopes_of_other_pipes_are_refused(client: Client, pipes: dict[str, int], told: str) -> None:
    ((code, message),) = refused(client.call, "Write", scope_of(client, ROUTE, **pipes), PB.WriteResponse)
    assert code == code_pb2.INVALID_ARGUMENT
    assert told in message


def test_a_parameter_that_is_not_given_stays_with_the_same_action(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3))
    client.write("MODIFY", route(client, 7, action="send"))
    assert [e["port"] for e in client.read(route(client, 7))] == [3]
    client.write("MODIFY", route(client, 7, action="drop"))
    client.write("MODIFY", route(client, 7, action="send"))
    assert [e["port"] for e in client.read(route(client, 7))] == [0]


def test_a_read_may_ask_for_the_entries_with_an_action(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3), route(client, 8, action="drop"))
    assert [e["hdr.h.kind"][0] for e in client.read(client.entry(ROUTE, None, "send"))] == [7]
    assert len(client.read(route(client, 8, action="drop"))) == 1
    with pytest.raises(grpc.RpcError) as raised:
        client.read(route(client, 8, action="send"))
    assert "has another action" in errors(raised.value)[0][1]


def test_what_comes_after_the_deadline_is_not_done(client: Client) -> None:
    batch = [route(client, kind, action="drop") for kind in (1, 2)]
    for atomicity in ("CONTINUE_ON_ERROR", "ROLLBACK_ON_ERROR"):
        late = (("deadline_sec", "0"), ("deadline_nsec", "0"))
        with pytest.raises(grpc.RpcError) as raised:
            client.write("INSERT", *batch, metadata=late, atomicity=atomicity)
        assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert client.read(client.entry(ROUTE)) == []


@pytest.mark.parametrize(("atomicity", "kept"), [("CONTINUE_ON_ERROR", 2), ("ROLLBACK_ON_ERROR", 0)])
def test_a_batch_that_takes_too_long_is_cut_short(
    client: Client, monkeypatch: pytest.MonkeyPatch, atomicity: str, kept: int
) -> None:
    times = iter([0.0, 0.1, 0.2, 9.0])
    monkeypatch.setattr("p4switch.bfrt.server.time", SimpleNamespace(monotonic=lambda: next(times)))
    batch = [route(client, kind, action="drop") for kind in range(1, 5)]
    with pytest.raises(grpc.RpcError) as raised:
        client.write("INSERT", *batch, metadata=(("deadline_sec", "1"),), atomicity=atomicity)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert len(client.read(client.entry(ROUTE))) == kept


def test_insert_or_modify_does_either(client: Client) -> None:
    for port in (3, 4):
        client.write("INSERT_OR_MODIFY", route(client, 7, action="send", port=port))
        assert [e["port"] for e in client.read(client.entry(ROUTE))] == [port]


def test_an_entry_is_read_by_its_handle(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3), route(client, 8, action="send", port=4))
    handles = []
    for kind in (7, 8, 7):
        query = PB.HandleId(table_id=client.tables[ROUTE]["id"], key=route(client, kind).key)
        (found,) = client.entities(handle=query)
        assert found.handle.table_id == query.table_id
        handles.append(found.handle.handle_id)
    assert handles[0] == handles[2] != handles[1]
    by_handle = client.entry(ROUTE)
    by_handle.handle_id = handles[1]
    assert [e["port"] for e in client.read(by_handle)] == [4]
    by_handle.table_flags.key_only = True
    (found,) = client.entities(table_entry=by_handle)
    assert found.table_entry.entry_tgt.pipe_id == 0xFFFF
    assert not found.table_entry.HasField("data")
    client.write("DELETE", route(client, 8))
    ((code, _),) = refused(client.read, by_handle)
    assert code == code_pb2.NOT_FOUND
    by_handle.handle_id = 1  # the default entry
    by_handle.table_flags.key_only = False
    assert [e["action"] for e in client.read(by_handle)] == ["NoAction"]
    by_handle.handle_id = 99
    ((code, message),) = refused(client.read, by_handle)
    assert (code, "no entry has the handle 99" in message) == (code_pb2.NOT_FOUND, True)
    ((code, _),) = refused(client.entities, handle=PB.HandleId(table_id=client.tables[ROUTE]["id"], handle_id=1))
    assert code == code_pb2.INVALID_ARGUMENT


def test_what_a_pipe_reads_depends_on_whose_entries_they_are(client: Client) -> None:
    def told(pipe: int, *, from_hw: bool) -> list[int]:
        query = route(client, 7)
        query.table_flags.from_hw = from_hw
        try:
            return [len(client.entities(pipe, table_entry=query))]
        except grpc.RpcError as error:
            return [code for code, _ in errors(error)]

    client.write("INSERT", route(client, 7, action="send", port=3))
    assert told(0, from_hw=True) == told(0xFFFF, from_hw=False) == [1]
    assert told(0, from_hw=False) == [code_pb2.NOT_FOUND]
    client.call("Write", scope_of(client, ROUTE, predef=PB.Mode.SINGLE), PB.WriteResponse)
    assert told(0, from_hw=True) == told(0, from_hw=False) == [1]
    assert told(0xFFFF, from_hw=True) == [code_pb2.NOT_FOUND]
    ((code, _),) = refused(client.entities, table_entry=client.entry(ROUTE, default=True))
    assert code == code_pb2.INVALID_ARGUMENT
    assert len(client.entities(0, table_entry=client.entry(ROUTE, default=True))) == 1


def test_a_key_comes_back_as_it_was_given(client: Client) -> None:
    client.write("INSERT", route(client, 7, 5, (2, 9), action="drop"))
    (found,) = client.read(client.entry(ROUTE))
    assert (found["hdr.h.kind"], found["hdr.h.value"]) == ((7, 255), (2, 9))
    assert (found["intrinsic.ingress_port"], found["$MATCH_PRIORITY"]) == ((1,), (5,))


def test_delete_without_a_key_deletes_all(client: Client) -> None:
    client.write("INSERT", *(route(client, kind, action="drop") for kind in (1, 2, 3)))
    client.write("DELETE", client.entry(ROUTE))
    assert client.read(client.entry(ROUTE)) == []


def test_the_default_entry_is_set_and_reset(bench: Bench, client: Client) -> None:
    client.write("MODIFY", client.entry(ROUTE, action="send", default=True, port=9))
    (found,) = client.read(client.entry(ROUTE, default=True))
    assert (found["action"], found["port"]) == ("In.send", 9)
    client.write("RESET", client.entry(ROUTE, default=True))
    (found,) = client.read(client.entry(ROUTE, default=True))
    assert found["action"] == "NoAction"


def test_only_asked_fields_come_back(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3))
    (found,) = client.read(route(client, 7, _COUNTER_SPEC_PKTS=0))
    assert "port" not in found
    assert found["$COUNTER_SPEC_PKTS"] == 0
    entry = client.entry(ROUTE)
    entry.table_flags.key_only = True
    (found,) = client.read(entry)
    assert "action" not in found


def test_usage_counts_entries(client: Client) -> None:
    client.write("INSERT", *(route(client, kind, action="drop") for kind in (1, 2)))
    request = PB.ReadRequest()
    request.target.pipe_id = 0xFFFF
    request.entities.add().table_usage.table_id = client.tables[ROUTE]["id"]
    made = client._channel.unary_stream(
        "/bfrt_proto.BfRuntime/Read", PB.ReadRequest.SerializeToString, PB.ReadResponse.FromString
    )
    (response,) = made(request, timeout=10)
    assert response.entities[0].table_usage.usage == 2


# Action profiles and selectors


def test_members_and_groups(bench: Bench, client: Client) -> None:
    for member, port in ((0, 5), (2, 6)):
        client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": member}, action="go", port=port))
    group = {"$SELECTOR_GROUP_ID": 0}
    both = client.entry("In.groups", group, _ACTION_MEMBER_ID=[0, 2], _ACTION_MEMBER_STATUS=[True, True])
    client.write("INSERT", both)
    client.write("INSERT", client.entry(SPREAD, {"hdr.h.kind": (8, 8)}, _SELECTOR_GROUP_ID=0))
    ports = {port for value in range(20) for port, _ in bench.switch.process(1, bytes([8, value]))}
    assert ports == {5, 6}
    (found,) = client.read(client.entry("In.groups", group))
    assert (found["$ACTION_MEMBER_ID"], found["$MAX_GROUP_SIZE"]) == ([0, 2], 8)
    with pytest.raises(grpc.RpcError) as refused:
        client.write("MODIFY", client.entry("In.groups", group, _MAX_GROUP_SIZE=2**32 - 1))
    assert "$MAX_GROUP_SIZE 4294967295; expected at most 8" in errors(refused.value)[0][1]
    less = client.entry("In.groups", group, _ACTION_MEMBER_ID=[0])
    less.table_flags.mod_del = True
    client.write("MODIFY_INC", less)
    ports = {port for value in range(20) for port, _ in bench.switch.process(1, bytes([8, value]))}
    assert ports == {6}
    (found,) = client.read(client.entry(SPREAD, {"hdr.h.kind": (8, 8)}))
    assert found["$SELECTOR_GROUP_ID"] == 0


def test_no_packet_goes_to_a_member_that_is_not_active(bench: Bench, client: Client) -> None:
    for member in (1, 2):
        client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": member}, action="go", port=member))
    group = {"$SELECTOR_GROUP_ID": 1}
    states: dict[str, Any] = {"_ACTION_MEMBER_ID": [1, 2], "_ACTION_MEMBER_STATUS": [False, True]}
    client.write("INSERT", client.entry("In.groups", group, **states))
    client.write("INSERT", client.entry(SPREAD, {"hdr.h.kind": (8, 8)}, _SELECTOR_GROUP_ID=1))
    assert {port for value in range(20) for port, _ in bench.switch.process(1, bytes([8, value]))} == {2}
    (found,) = client.read(client.entry("In.groups", group))
    assert found["$ACTION_MEMBER_STATUS"] == [False, True]
    states["_ACTION_MEMBER_STATUS"] = [True, True]
    client.write("MODIFY", client.entry("In.groups", group, **states))
    assert {port for value in range(20) for port, _ in bench.switch.process(1, bytes([8, value]))} == {1, 2}


def test_a_group_has_the_selector_s_size_and_its_table_s_pipes(client: Client) -> None:
    group = {"$SELECTOR_GROUP_ID": 1}
    client.write("INSERT", client.entry("In.groups", group, _MAX_GROUP_SIZE=8))
    ((code, message),) = refused(client.write, "MODIFY", client.entry("In.groups", group, _MAX_GROUP_SIZE=9))
    assert (code, "expected at most 8" in message) == (code_pb2.INVALID_ARGUMENT, True)
    ((code, message),) = refused(client.write, "MODIFY", client.entry("In.groups", group, _MAX_GROUP_SIZE=4), pipe=0)
    assert (code, "entries are those of all pipes" in message) == (code_pb2.INVALID_ARGUMENT, True)


def test_a_group_gets_another_size(bench: Bench, client: Client) -> None:
    for member in (1, 2):
        client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": member}, action="go", port=member))
    group = {"$SELECTOR_GROUP_ID": 1}
    both: dict[str, Any] = {"_ACTION_MEMBER_ID": [1, 2], "_ACTION_MEMBER_STATUS": [True, True]}
    client.write("INSERT", client.entry("In.groups", group, _MAX_GROUP_SIZE=1))
    errors = refused(client.write, "MODIFY", client.entry("In.groups", group, _MAX_GROUP_SIZE=1, **both))
    assert errors[0][0] == code_pb2.RESOURCE_EXHAUSTED
    client.write("MODIFY", client.entry("In.groups", group, _MAX_GROUP_SIZE=2, **both))
    (found,) = client.read(client.entry("In.groups", group))
    assert (found["$ACTION_MEMBER_ID"], found["$MAX_GROUP_SIZE"]) == ([1, 2], 2)
    batch = client.entry("In.groups", group, _MAX_GROUP_SIZE=4), client.entry("In.groups", group, _MAX_GROUP_SIZE=1)
    assert refused(client.write, "MODIFY", *batch, atomicity="ROLLBACK_ON_ERROR")
    assert client.read(client.entry("In.groups", group)) == [found]


def test_a_member_may_be_in_a_group_twice(bench: Bench, client: Client) -> None:
    for member in (1, 2):
        client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": member}, action="go", port=member))
    group = {"$SELECTOR_GROUP_ID": 1}
    listed: dict[str, Any] = {"_ACTION_MEMBER_ID": [2, 1, 2], "_ACTION_MEMBER_STATUS": [False, True, True]}
    client.write("INSERT", client.entry("In.groups", group, _ADT_OFFSET=16, **listed))
    (found,) = client.read(client.entry("In.groups", group))
    assert {f"_{name[1:]}": value for name, value in found.items() if "MEMBER" in name} == listed
    assert found["$ADT_OFFSET"] == 16
    more: dict[str, Any] = {"_ACTION_MEMBER_ID": [2], "_ACTION_MEMBER_STATUS": [True]}
    client.write("MODIFY_INC", client.entry("In.groups", group, **more))
    (found,) = client.read(client.entry("In.groups", group))
    assert found["$ACTION_MEMBER_STATUS"] == [True] * 3
    wrong = client.entry("In.groups", {"$SELECTOR_GROUP_ID": 2}, _ADT_OFFSET=4)
    assert "$ADT_OFFSET 4; expected a multiple of 8" in refused(client.write, "INSERT", wrong)[0][1]
    assert bench.switch.process(1, bytes([8, 1])) == []


def test_entries_refer_to_groups_with_an_active_member_alone(bench: Bench, client: Client) -> None:
    client.write("INSERT", client.entry("In.members", {"$ACTION_MEMBER_ID": 1}, action="go", port=3))
    group = {"$SELECTOR_GROUP_ID": 1}
    entry = client.entry(SPREAD, {"hdr.h.kind": (8, 8)}, _SELECTOR_GROUP_ID=1)
    off: dict[str, Any] = {"_ACTION_MEMBER_ID": [1], "_ACTION_MEMBER_STATUS": [False]}
    client.write("INSERT", client.entry("In.groups", group, **off))
    assert refused(client.write, "INSERT", entry)[0][0] == code_pb2.FAILED_PRECONDITION
    client.write("MODIFY", client.entry("In.groups", group, **{**off, "_ACTION_MEMBER_STATUS": [True]}))
    client.write("INSERT", entry)
    none: dict[str, Any] = {"_ACTION_MEMBER_ID": [], "_ACTION_MEMBER_STATUS": []}
    for data in (off, none):
        ((code, message),) = refused(client.write, "MODIFY", client.entry("In.groups", group, **data))
        assert (code, "no member would be active" in message) == (code_pb2.FAILED_PRECONDITION, True)
    assert [port for port, _ in bench.switch.process(1, bytes([8, 1]))] == [3]


@pytest.mark.parametrize(("how", "port"), [("_ACTION_MEMBER_ID", 5), ("_SELECTOR_GROUP_ID", 5)])
def test_a_member_or_a_group_is_the_default(bench: Bench, client: Client, how: str, port: int) -> None:
    member = {"$ACTION_MEMBER_ID": 1}
    client.write("INSERT", client.entry("In.members", member, action="go", port=port))
    group = client.entry("In.groups", {"$SELECTOR_GROUP_ID": 1}, _ACTION_MEMBER_ID=[1], _ACTION_MEMBER_STATUS=[True])
    client.write("INSERT", group)
    default: dict[str, Any] = {how: 1}
    client.write("MODIFY", client.entry(SPREAD, default=True, **default))
    assert [to for to, _ in bench.switch.process(1, bytes([8, 1]))] == [port]
    (found,) = client.read(client.entry(SPREAD, default=True))
    assert found[f"${how[1:]}"] == 1
    assert refused(client.write, "DELETE", client.entry("In.members", member))  # it is in use
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=0, action="RECONCILE_AND_COMMIT")
    request.config.p4info.CopyFrom(bench.p4info)
    request.config.p4_device_config = bench.device.look(lambda state: state.pipeline).device_config
    bench.device.set_forwarding_pipeline_config(request)
    assert [to for to, _ in bench.switch.process(1, bytes([8, 1]))] == [port]
    client.write("DELETE", client.entry(SPREAD, default=True))
    assert bench.switch.process(1, bytes([8, 1])) == []


# Cells


def test_cells_are_those_of_the_only_pipe_in_any_scope(client: Client) -> None:
    cell = client.entry("In.seen", {"$COUNTER_INDEX": 7}, _COUNTER_SPEC_PKTS=3)
    for scope in (PB.Mode.SINGLE, PB.Mode.ALL):
        client.call("Write", scope_of(client, "In.seen", predef=scope), PB.WriteResponse)
        client.write("INSERT", cell, pipe=0)
        assert len(client.entities(0, table_entry=cell)) == len(client.entities(table_entry=cell)) == 1


def sync(client: Client, table: str, operation: str) -> None:
    request = PB.WriteRequest()
    request.target.pipe_id = 0xFFFF
    made = request.updates.add(type="INSERT").entity.table_operation
    made.table_id = client.tables[table]["id"]
    made.table_operations_type = operation
    client.call("Write", request, PB.WriteResponse)


@pytest.mark.parametrize(("table", "operation"), [(ROUTE, "SyncCounters"), ("In.seen", "Sync")])
def test_the_software_knows_counts_that_were_read_or_synchronized(
    bench: Bench, client: Client, table: str, operation: str
) -> None:
    client.write("INSERT", route(client, 7, action="send", port=3, _COUNTER_SPEC_PKTS=2))
    entry = route(client, 7) if table == ROUTE else client.entry(table, {"$COUNTER_INDEX": 7})
    begins = 2 if table == ROUTE else 0

    def count(*, from_hw: bool) -> Any:
        (found,) = client.read(entry, from_hw=from_hw)
        return found["$COUNTER_SPEC_PKTS"]

    bench.switch.process(1, bytes([7, 1]))
    assert count(from_hw=False) == begins
    sync(client, table, operation)
    assert count(from_hw=False) == begins + 1
    bench.switch.process(1, bytes([7, 1]))
    assert [count(from_hw=False), count(from_hw=True), count(from_hw=False)] == [begins + 1, begins + 2, begins + 2]
    wrong = route(client, 8, action="send", port=3), route(client, 8, action="send", port=3)
    assert refused(client.write, "INSERT", *wrong, atomicity="ROLLBACK_ON_ERROR")
    assert count(from_hw=False) == begins + 2
    client.write("DELETE", client.entry(table))
    if table == ROUTE:
        client.write("INSERT", route(client, 7, action="send", port=3))
    assert count(from_hw=False) == 0


def test_a_counter_is_read_and_set(bench: Bench, client: Client) -> None:
    bench.switch.process(1, bytes([7, 1]))
    seen = client.entry("In.seen", {"$COUNTER_INDEX": 7})
    assert [e["$COUNTER_SPEC_PKTS"] for e in client.read(seen)] == [1]
    client.write("MODIFY", client.entry("In.seen", {"$COUNTER_INDEX": 7}, _COUNTER_SPEC_PKTS=40))
    assert [e["$COUNTER_SPEC_PKTS"] for e in client.read(seen)] == [40]
    client.write("DELETE", client.entry("In.seen"))
    assert [e["$COUNTER_SPEC_PKTS"] for e in client.read(client.entry("In.seen"))] == [0] * 16


def test_a_meter_has_rates_in_kilobits(client: Client) -> None:
    names = "CIR_KBPS", "PIR_KBPS", "CBS_KBITS", "PBS_KBITS"
    rates: dict[str, Any] = {f"_METER_SPEC_{name}": value for name, value in zip(names, (8, 16, 4, 8), strict=True)}
    client.write("INSERT", client.entry("In.rate", {"$METER_INDEX": 3}, **rates))
    (found,) = client.read(client.entry("In.rate", {"$METER_INDEX": 3}))
    assert {f"_{name[1:]}": value for name, value in found.items() if name != "$METER_INDEX"} == rates
    (found,) = client.read(client.entry("In.rate", {"$METER_INDEX": 2}))
    assert [found[f"$METER_SPEC_{name}"] for name in names] == [5195848221, 5195848221, 4380866642, 4380866642]


def test_a_register_has_a_value_for_each_field(bench: Bench, client: Client) -> None:
    client.write("MODIFY", client.entry("In.pairs", {"$REGISTER_INDEX": 1}, lo=300, hi=2))
    bench.switch.process(1, bytes([7, 1]))
    (found,) = client.read(client.entry("In.pairs", {"$REGISTER_INDEX": 1}))
    assert (found["In.pairs.lo"], found["In.pairs.hi"]) == (300, 5)
    client.write("DELETE", client.entry("In.pairs"))
    cells = client.read(client.entry("In.pairs"))
    assert [(cell["In.pairs.lo"], cell["In.pairs.hi"]) for cell in cells] == [(3, 9)] * 4
    assert client.read(client.entry("In.bytes_", {"$REGISTER_INDEX": 0}))[0]["In.bytes_.f1"] == 7


def test_a_parameter_is_the_default_entry(client: Client) -> None:
    assert [e["value"] for e in client.read(client.entry("In.least", default=True))] == [7]
    client.write("MODIFY", client.entry("In.least", default=True, value=99))
    assert [e["value"] for e in client.read(client.entry("In.least", default=True))] == [99]
    client.write("DELETE", client.entry("In.least", default=True))
    assert [e["value"] for e in client.read(client.entry("In.least", default=True))] == [7]


# Invalid requests


def test_each_update_has_its_own_error(client: Client) -> None:
    client.write("INSERT", route(client, 7, action="drop"))
    found = refused(client.write, "INSERT", route(client, 7, action="drop"), route(client, 8, action="drop"))
    assert [code for code, _ in found] == [code_pb2.ALREADY_EXISTS, code_pb2.OK]
    assert len(client.read(client.entry(ROUTE))) == 2


def test_rollback_undoes_what_was_done(client: Client) -> None:
    batch = [route(client, kind, action="drop") for kind in (1, 2, 1, 3)]
    found = refused(client.write, "INSERT", *batch, atomicity="ROLLBACK_ON_ERROR")
    assert [code for code, _ in found] == [0, 0, code_pb2.ALREADY_EXISTS]
    assert client.read(client.entry(ROUTE)) == []


def test_a_client_may_ask_what_became_of_each_update(client: Client) -> None:
    asks = (("error_in_resp", "1"),)
    twice = [route(client, 1, action="drop")] * 2
    assert [code for code, _ in refused(client.write, "INSERT", *twice, metadata=asks)] == [0, code_pb2.ALREADY_EXISTS]
    batch = [route(client, kind, action="drop") for kind in (2, 1)]
    response = client.write("INSERT_OR_MODIFY", *batch, metadata=asks)
    assert [(e.canonical_code, e.code) for e in response.status] == [(0, code_pb2.OK), (0, code_pb2.ALREADY_EXISTS)]


def test_what_is_not_found_may_be_ignored(client: Client) -> None:
    ((code, _),) = refused(client.write, "DELETE", route(client, 1))
    assert code == code_pb2.NOT_FOUND
    response = client.write("DELETE", route(client, 1), metadata=(("ignore_not_found", "1"),))
    assert [(e.canonical_code, e.code) for e in response.status] == [(code_pb2.OK, code_pb2.NOT_FOUND)]


def test_a_table_that_is_full_says_so(client: Client) -> None:
    batch = [route(client, kind, action="drop") for kind in range(5)]
    assert [code for code, _ in refused(client.write, "INSERT", *batch)] == [0, 0, 0, 0, code_pb2.RESOURCE_EXHAUSTED]


@pytest.mark.parametrize(
    ("table", "how", "what"),
    [
        ("In.pick.algorithm", "MODIFY", "MODIFY is not supported"),
        (ROUTE, "MODIFY_INC", "MODIFY_INC is not supported"),
        ("In.seen", "RESET", "RESET is not supported"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(client: Client, table: str, how: str, what: str) -> None:
    ((code, message),) = refused(client.write, how, client.entry(table))
    assert code == code_pb2.UNIMPLEMENTED
    assert what in message


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda e: setattr(e, "table_id", 1), "no table has the id 1"),
        (lambda e: setattr(e.key.fields[0], "field_id", 77), "no key field has the id 77"),
        (lambda e: setattr(e.key.fields[0].ternary, "value", b"\1\2"), "2 bytes; expected 1"),
        (lambda e: e.key.fields[2].exact.CopyFrom(PB.KeyField.Exact(value=b"\2\0")), "does not fit in 9 bits"),
        (lambda e: setattr(e.data, "action_id", 5), "no action has the id 5"),
        (lambda e: e.ClearField("key"), "the key is missing"),
    ],
)
def test_a_mistake_is_named(client: Client, change: Any, what: str) -> None:
    entry = route(client, 7, action="send", port=3)
    change(entry)
    ((_, message),) = refused(client.write, "INSERT", entry)
    assert what in message


def test_a_pipe_that_is_not_there_is_refused(client: Client) -> None:
    request = PB.WriteRequest()
    request.target.pipe_id = 1
    with pytest.raises(grpc.RpcError) as raised:
        client.call("Write", request, PB.WriteResponse)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "pipe 1; expected 0" in (raised.value.details() or "")


def test_another_pipeline_over_p4runtime_ends_it(bench: Bench, client: Client, program: Compiled) -> None:
    other = type(program.p4info)()
    other.CopyFrom(program.p4info)
    other.pkg_info.version = "2"
    bench.p4runtime.set_pipeline(other, json.dumps(program.json).encode())
    ((code, _),) = refused(client.write, "INSERT", route(client, 7, action="drop"))
    assert code == code_pb2.FAILED_PRECONDITION


def test_the_command_takes_it_with_a_source(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--no-p4", "--bfrt", "50052"])
    assert "--bfrt: expected FILE.p4 with it" in str(result.exception)


@pytest.mark.parametrize(
    ("table_id", "what"),
    [
        (0x91FF8E10, "a SnapshotCfg table is not supported; the stages of a chip are not modelled"),
        (0xFF050001, "a table of the traffic manager is not supported; its settings are options of the switch"),
    ],
)
def test_tables_of_a_chip_that_are_not_here_are_named(client: Client, table_id: int, what: str) -> None:
    entry = PB.TableEntry(table_id=table_id)
    for told in (refused(client.write, "MODIFY", entry), refused(client.read, entry)):
        assert told == [(code_pb2.UNIMPLEMENTED, f"table {table_id:#x}: {what}")]
