"""`p4cc.Switch`: keys of all kinds, masks, coverage over several tests, and a switch in a separate process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import p4cc
from p4cc import _switch_process
from p4switch.coverage import Coverage, collector
from p4switch.trace import json_line
from p4switch.trace.events import Transmitted

ONE_TABLE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct meta {}
struct learned_t { bit<8> a; bit<9> port; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply {} }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    register<int<16>>(4) last;
    action forward(bit<9> port) {
        s.egress_spec = port;
        last.write(3, -5);
        digest<learned_t>(1, { hdr.h.a, s.ingress_port });
    }
    action drop() { mark_to_drop(s); }
    table t { key = { hdr.h.a: optional; } actions = { forward; drop; } default_action = drop(); }
    apply { t.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout meta m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
FRAME = bytes([5] * 12) + bytes.fromhex("8100a003 0800") + bytes(42)  # with a VLAN tag


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> p4cc.Program:
    file = tmp_path_factory.mktemp("one") / "table.p4"
    file.write_text(ONE_TABLE)
    return p4cc.compile(file)


def test_entries_with_an_optional_key(program: p4cc.Program) -> None:
    switch = p4cc.Switch(program)
    table = switch.table("t")
    table.add(a=5, action="forward", port=2, priority=1)
    assert switch.send(1, FRAME) == [(2, FRAME)]
    assert switch.digests() == [("learned_t", {"a": 5, "port": 1})]
    table.delete(a=5, priority=1)
    assert switch.send(1, FRAME) == []
    assert switch.digests() == []


def test_a_mask_that_is_shorter_than_the_frame(program: p4cc.Program) -> None:
    """Bytes after its end are compared, in headers and in the payload."""
    switch = p4cc.Switch(program)
    switch.table("t").default("forward", port=2)
    sent = switch.send(1, FRAME)
    sent.expect((2, b"\0" + FRAME[1:]), mask=b"\0")
    with pytest.raises(AssertionError) as failed:
        sent.expect((2, bytes(3) + FRAME[3:]), mask=b"\0")
    assert str(failed.value).splitlines()[:2] == [
        "packet 0: hdr.h.b: expected 0x00, got 0x05",
        "packet 0: payload byte 0: expected 0x00, got 0x05",
    ]


def test_what_a_later_test_reaches_counts_too(program: p4cc.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that it counts once, because a switch may serve many tests."""
    monkeypatch.setattr(collector, "_watched", None)
    collector.start()
    switch = p4cc.Switch(program)
    total = Coverage()
    for packets in (1, 2, 0):
        for _ in range(packets):
            switch.send(1, FRAME)
        total.merge(collector.take())
    assert total.counts == switch.coverage.counts
    assert max(total.counts.values()) == 3


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_two_switches_in_processes_of_their_own(program: p4cc.Program) -> None:
    with p4cc.Switch(program, switch="process", ports=(1, 2)) as one:
        one.table("t").add(a=5, action="forward", port=2, priority=1)
        with p4cc.Switch(program, switch="process", ports=(1, 510)) as other:
            other.table("t").default("forward", port=510)
            sent = other.send(1, FRAME)
            sent.expect((510, FRAME))
            same = p4cc.Switch(program)
            same.table("t").default("forward", port=510)
            assert sent.trace.text() == same.send(1, FRAME).trace.text()
            with pytest.raises(AssertionError, match=r"hdr\.h\.b: expected 0x06, got 0x05"):
                sent.expect((510, FRAME[:1] + b"\6" + FRAME[2:]))
            assert other.digests() == [("learned_t", {"a": 5, "port": 1})]
        large = FRAME + bytes(8000)
        one.send(1, large).expect((2, large))
        with pytest.raises(p4cc.UserError, match="port 1: a frame of 10060 bytes"):
            one.send(1, FRAME + bytes(10_000))


@pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(tool) is None for tool in ("ip", "simple_switch_grpc")),
    reason="needs root, iproute2 and BMv2",
)
def test_registers_of_bmv2(program: p4cc.Program) -> None:
    """Its P4Runtime server has no registers."""
    with p4cc.Switch(program, switch="bmv2", ports=(1, 2)) as switch:
        switch.table("t").default("forward", port=2)
        switch.send(1, FRAME).expect((2, FRAME))
        assert switch.register("last") == [0, 0, 0, -5]
        switch.set_register("last", 1, 0xFFFE)
        assert switch.register("last", [1, 3]) == [-2, -5]
        for call in (lambda: switch.register("last", [4]), lambda: switch.set_register("last", 4, 0)):
            with pytest.raises(p4cc.UserError, match="no cell 4, expected one below 4"):
                call()
        with pytest.raises(p4cc.UserError, match="expected a value of 16 bits, got 65536"):
            switch.set_register("last", 0, 1 << 16)


@pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2")
def test_what_fails_is_not_what_is_missing() -> None:
    """A test is skipped only if it lacks root or a tool."""
    with pytest.raises(p4cc.UserError) as error:
        _switch_process._ip("link", "set", "nowhere", "up")
    assert not getattr(error.value, "missing", False)


class Clock:
    """Clock that advances only during a sleep; then `at` may happen once."""

    def __init__(self, due_s: float, at: Callable[[], object]) -> None:
        self.now_s, self._due_s, self._at = 0.0, due_s, at
        self._is_over = False

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, for_s: float) -> None:
        self.now_s += for_s
        if self.now_s >= self._due_s and not self._is_over:
            self._is_over = True
            self._at()


def test_a_trace_is_waited_for_only_where_something_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch in a process reports nothing about a packet that it has not seen."""
    file = tmp_path / "trace.jsonl"
    file.touch()
    with file.open() as trace:
        wires = object.__new__(_switch_process.SwitchOnWires)
        wires._trace, wires._begun = trace, ""
        monkeypatch.setattr(_switch_process, "time", silent := Clock(0, lambda: None))
        assert wires.events(0) == []
        assert 1 < silent.now_s < 3
        left = Transmitted(packet=2, copy=0, time=1, port=3, length=2, frame=b"ab")
        late = Clock(5.0, lambda: file.write_text(f"{json_line(left)}\n"))
        monkeypatch.setattr(_switch_process, "time", late)
        assert wires.events(1) == [left]
        assert late.now_s == pytest.approx(5.0, abs=0.1)
