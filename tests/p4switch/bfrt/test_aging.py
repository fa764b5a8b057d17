"""Idle time-outs of BfRuntime, with a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from p4switch import ir
from p4switch.architectures.tna import TNA
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.pipes import Pipe, Program
from p4switch.bfrt.server import BfRuntimeServer
from p4switch.compiler import Compiled
from p4switch.engine import build, load
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.messages import code_pb2
from tests.p4switch.architectures.tofino import compiled
from tests.p4switch.bfrt.conftest import Client
from tests.p4switch.bfrt.test_server import refused

INGRESS = """
    action send(bit<9> port) { tm.ucast_egress_port = port; }
    table fading {
        key = { hdr.h.kind : exact; }
        actions = { send; }
        size = 8;
        idle_timeout = true;
    }
    apply { fading.apply(); }
"""
FADING = "In.fading"
MS = 1_000_000
NOTIFY = bfruntime_pb2.IdleTable.IDLE_TABLE_NOTIFY_MODE
POLL = bfruntime_pb2.IdleTable.IDLE_TABLE_POLL_MODE


class Rig:
    """Switch, its device with a clock that tests advance, and a client of its BfRuntime server."""

    def __init__(self, program: Compiled) -> None:
        self.now_ms = 0
        self.device = Device(self._build, 0, clock_ns=lambda: self.now_ms * MS)
        LocalClient(self.device).set_pipeline(program.p4info, program.json_bytes)
        programs = [Program("program", [Pipe(0, self.device, program)])]
        self.server = BfRuntimeServer(programs, "127.0.0.1:0", TNA.fixed_tables)
        self.server.start()
        self.client = Client(f"127.0.0.1:{self.server.port}", program.bf_rt)

    def _build(self, program: ir.Program) -> Any:
        self.switch = load().Switch(str(build(program)))
        return self.switch

    def entry(self, kind: int, **more: Any) -> Message:
        return self.client.entry(FADING, {"hdr.h.kind": kind}, **more)

    def add(self, kind: int, ttl: int) -> None:
        self.client.write("INSERT", self.entry(kind, action="send", port=3, _ENTRY_TTL=ttl))

    def hit(self, kind: int) -> None:
        self.switch.process(1, bytes([kind, 1]), self.now_ms * MS)

    def ages(self, mode: int = NOTIFY, **more: Any) -> None:
        request = bfruntime_pb2.WriteRequest(client_id=1)
        request.target.pipe_id = 0xFFFF
        attribute = request.updates.add(type="INSERT").entity.table_attribute
        attribute.table_id = self.client.tables[FADING]["id"]
        settings = {"enable": True, "ttl_query_interval": 1000, **more}
        attribute.idle_table.CopyFrom(bfruntime_pb2.IdleTable(idle_table_mode=mode, **settings))
        self.client.call("Write", request, bfruntime_pb2.WriteResponse)

    def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_ms += 1000
            self.server.poll()

    def read(self, kind: int, *, from_hw: bool = False) -> dict[str, Any]:
        (found,) = self.client.read(self.entry(kind), from_hw=from_hw)
        return found

    def ttl(self, kind: int) -> Any:
        return self.read(kind)["$ENTRY_TTL"]

    def state(self, kind: int, *, from_hw: bool = False) -> Any:
        return self.read(kind, from_hw=from_hw)["$ENTRY_HIT_STATE"]

    def update(self) -> None:
        request = bfruntime_pb2.WriteRequest()
        request.target.pipe_id = 0xFFFF
        operation = request.updates.add(type="INSERT").entity.table_operation
        operation.table_id = self.client.tables[FADING]["id"]
        operation.table_operations_type = "UpdateHitState"
        self.client.call("Write", request, bfruntime_pb2.WriteResponse)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return compiled(tmp_path_factory.mktemp("aging"), INGRESS=INGRESS)


@pytest.fixture
def rig(program: Compiled) -> Iterator[Rig]:
    made = Rig(program)
    yield made
    made.client.close()
    made.server.stop()


@pytest.fixture
def told(rig: Rig) -> Iterator[Iterator[tuple[int, int]]]:
    """Yield an iterator over notifications: the key of the entry, and 1 if it is idle."""
    stream = rig.client.subscribe(idletimeout=True, entry_active=True)
    next(stream)

    def notifications() -> Iterator[tuple[int, int]]:
        for message in stream:
            found = message.idle_timeout_notification
            assert found.target.pipe_id == 0
            key = int.from_bytes(found.table_entry.key.fields[0].exact.value, "big")
            yield key, int(found.type == bfruntime_pb2.IdleTimeoutNotification.ENTRY_IDLE)

    yield notifications()
    stream.close()  # type: ignore[attr-defined]


def test_an_entry_that_no_packet_hits_becomes_idle_once(rig: Rig, told: Iterator[tuple[int, int]]) -> None:
    rig.ages()
    rig.add(7, 3000)
    rig.add(8, 2000)
    rig.pass_s(1)
    assert (rig.ttl(7), rig.ttl(8)) == (2000, 1000)
    rig.hit(7)
    rig.pass_s(1)
    assert (rig.ttl(7), rig.ttl(8)) == (3000, 0)
    rig.pass_s(5)
    assert [next(told), next(told)] == [(8, 1), (7, 1)]
    assert (rig.state(7), rig.ttl(7)) == ("ENTRY_IDLE", 0)


def test_an_entry_that_is_hit_again_is_active(rig: Rig, told: Iterator[tuple[int, int]]) -> None:
    rig.ages()
    rig.add(7, 1000)
    rig.pass_s(2)
    rig.hit(7)
    rig.pass_s(1)
    assert rig.state(7) == "ENTRY_ACTIVE"
    rig.pass_s(1)
    assert [next(told) for _ in range(3)] == [(7, 1), (7, 0), (7, 1)]


def test_a_table_that_does_not_age_keeps_what_entries_have_left(rig: Rig, told: Iterator[tuple[int, int]]) -> None:
    del told
    rig.ages(enable=False)
    rig.add(7, 5000)
    rig.pass_s(9)
    assert rig.ttl(7) == 5000
    rig.ages()
    rig.pass_s(2)
    rig.ages(enable=False)
    rig.pass_s(9)
    assert rig.ttl(7) == 3000
    assert rig.client.attribute(FADING, "idle_table").ttl_query_interval == 1000


def test_a_modification_may_let_an_entry_begin_anew(rig: Rig, told: Iterator[tuple[int, int]]) -> None:
    del told
    rig.ages()
    rig.add(7, 5000)
    rig.pass_s(2)
    rig.client.write("MODIFY", rig.entry(7, action="send", port=4))
    assert rig.ttl(7) == 3000
    again = rig.entry(7, action="send", port=4)
    again.table_flags.reset_ttl = True
    rig.client.write("MODIFY", again)
    assert rig.ttl(7) == 5000
    rig.client.write("MODIFY", rig.entry(7, _ENTRY_TTL=9000))
    assert rig.ttl(7) == 9000
    wrong = rig.entry(7, _ENTRY_TTL=1000), rig.entry(9, _ENTRY_TTL=1000)
    assert refused(rig.client.write, "MODIFY", *wrong, atomicity="ROLLBACK_ON_ERROR")
    assert rig.ttl(7) == 9000


def test_a_client_asks_which_entries_packets_hit(rig: Rig) -> None:
    rig.ages(POLL)
    settings = rig.client.attribute(FADING, "idle_table")
    assert (settings.enable, settings.idle_table_mode, settings.ttl_query_interval) == (True, POLL, 0)
    rig.add(7, 0)
    assert rig.state(7) == "ENTRY_IDLE"
    rig.pass_s(1)
    rig.hit(7)
    assert rig.state(7) == "ENTRY_IDLE"
    rig.update()
    assert rig.state(7) == "ENTRY_ACTIVE"
    rig.update()
    assert rig.state(7) == "ENTRY_IDLE"
    rig.client.write("MODIFY", rig.entry(7, _ENTRY_HIT_STATE="ENTRY_ACTIVE"))
    assert [rig.state(7), rig.state(7, from_hw=True), rig.state(7, from_hw=True)] == [
        "ENTRY_ACTIVE",
        "ENTRY_ACTIVE",
        "ENTRY_IDLE",
    ]


def test_who_has_not_subscribed_is_not_told_of_entries(rig: Rig) -> None:
    ((code, message),) = refused(rig.ages)
    assert (code, "client 1 has not subscribed" in message) == (code_pb2.INVALID_ARGUMENT, True)


def test_wrong_settings_are_refused(rig: Rig, told: Iterator[tuple[int, int]]) -> None:
    del told
    ((code, message),) = refused(rig.ages, ttl_query_interval=0)
    assert (code, "ttl_query_interval 0; expected 1" in message) == (code_pb2.INVALID_ARGUMENT, True)
    ((code, message),) = refused(rig.ages, 7)
    assert (code, "mode 7; expected 0 or 1" in message) == (code_pb2.INVALID_ARGUMENT, True)
