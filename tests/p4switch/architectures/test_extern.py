"""An extern in one file outside the package: compilation, runs, traces, test generation, proofs and fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4switch import extensions, fit, registry
from p4switch.architectures.extern import ExternType
from p4switch.architectures.v1model import EXTERNS
from p4switch.bmv2 import read
from p4switch.compiler import compile_program, passes
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.frontend import parse_and_check
from p4switch.engine import build, build_traced, load
from p4switch.engine.objects import values
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev

FILE = Path(__file__).with_name("parity.py")
TALLY_FILE = Path(__file__).with_name("tally.py")
PROGRAM = """\
#include <v1model.p4>
extern void parity(out bit<8> result, in bit<16> value);
header h_t { bit<16> value; bit<8> odd; }
struct headers { h_t h; }
struct metadata { bit<8> more; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        meta.more = 0;
        parity(hdr.h.odd, hdr.h.value);
        if (hdr.h.odd == 1) { sm.egress_spec = 2; }
        if (meta.more == 1) {
            sm.egress_spec = 3;  // never
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


TALLY_PROGRAM = """\
#include <v1model.p4>
extern Tally { Tally(bit<32> size); void add(in bit<32> index, in bit<16> value, out bit<32> sum); }
header h_t { bit<32> cell; bit<16> value; bit<32> sum; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    Tally(4) sums;
    apply { sm.egress_spec = 1; sums.add(hdr.h.cell, hdr.h.value, hdr.h.sum); }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def loaded() -> Iterator[None]:
    extensions.load(FILE)
    yield
    registry.forget(str(FILE))
    extensions._loaded.pop(FILE, None)


def test_nobody_knows_the_extern_without_its_file(path: Path) -> None:
    with pytest.raises(CompileError, match="extern function 'parity' is not supported"):
        compile_program(path)


@pytest.mark.usefixtures("loaded")
def test_it_is_compiled_and_printed(path: Path) -> None:
    compiled = compile_program(path)
    (body,) = (a["primitives"] for a in compiled.json["actions"] if any(p["op"] == "parity" for p in a["primitives"]))
    (call,) = (p for p in body if p["op"] == "parity")
    assert [p["value"] for p in call["parameters"]] == [["h", "odd"], ["h", "value"]]
    text = passes.inspect(parse_and_check(path), "simplify", check=True)
    assert "    parity(h.odd, h.value)\n" in text


@pytest.mark.usefixtures("loaded")
def test_it_is_run_in_a_switch_and_traced(path: Path) -> None:
    traced = build_traced(compile_program(path).program)
    switch = load().Switch(str(traced.library))
    switch.set_tracing(True)
    for value in (0x0000, 0x0001, 0x8001, 0xFFFE):
        odd = value.bit_count() & 1
        frame = value.to_bytes(2, "big")
        assert switch.process(5, frame + b"\xAA") == [(1 + odd, frame + bytes([odd]))]
    trace = Trace(Decoder(traced)(switch.traced()[0]))
    ran = [event for event in trace.of(ev.StatementRun) if event.operation == "parity"]
    assert [event.changes for event in ran] == [
        (ev.Change("hdr.h.odd", 0xAA, odd, 8),) for odd in (0, 1, 0, 1)
    ]
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), start=1) if "parity(hdr" in text)
    assert {event.place.line for event in ran if event.place} == {line}


@pytest.mark.usefixtures("loaded")
def test_tests_are_generated_and_proofs_made(path: Path) -> None:
    pytest.importorskip("z3", reason="z3 is not installed")
    from p4switch.testgen import generate
    from p4switch.testgen.proof import Prover

    code, result = generate(path, seconds=60)
    ports = {}
    for test in result.tests:
        for port, packet in test.run.outputs:
            ports[port] = int.from_bytes(packet[:2], "big").bit_count() & 1
            assert packet[2] == ports[port]
    assert ports == {1: 0, 2: 1}
    never = next(n for n, line in enumerate(PROGRAM.splitlines(), start=1) if "// never" in line)
    assert [u.place.line for u in Prover(code, time.monotonic() + 60).reached.unreachable(code.all)] == [never]


@pytest.mark.usefixtures("loaded")
def test_it_is_fitted(path: Path) -> None:
    program = fit.measure(path)
    (vertex,) = (v for v in program.graph if v.op == "parity")
    assert (vertex.reads, vertex.writes) == ({"h.value"}, {"h.odd"})
    (reader,) = program.graph.successors(vertex)
    assert "h.odd" in reader.looks_up


@pytest.fixture
def tally(tmp_path: Path) -> Iterator[Path]:
    extensions.load(TALLY_FILE)
    path = tmp_path / "tally.p4"
    path.write_text(TALLY_PROGRAM)
    yield path
    registry.forget(str(TALLY_FILE))
    extensions._loaded.pop(TALLY_FILE, None)


def _frame(cell: int, value: int, total: int = 0) -> bytes:
    return cell.to_bytes(4, "big") + value.to_bytes(2, "big") + total.to_bytes(4, "big")


def test_an_object_keeps_what_its_file_says_and_the_control_plane_has_it(tally: Path) -> None:
    document = compile_program(tally).json
    (instance,) = document["extern_instances"]
    assert (instance["name"], instance["type"]) == ("I.sums", "Tally")
    switch = load().Switch(str(build(read(document))))
    for value, total in ((5, 5), (7, 12)):
        assert switch.process(0, _frame(2, value)) == [(1, _frame(2, value, total))]
    assert switch.process(0, _frame(3, 9)) == [(1, _frame(3, 9, 9))]
    assert switch.process(0, _frame(4, 9)) == [(1, _frame(4, 9))]  # there is no such cell
    kind = EXTERNS.find("Tally")
    assert issubclass(kind, ExternType)
    assert values(kind, switch.object_read("I.sums", 2)) == {"sum": 12, "times": 2}
    switch.object_write("I.sums", 2, switch.object_read("I.sums", 3))
    assert switch.process(0, _frame(2, 1)) == [(1, _frame(2, 1, 10))]
    switch.reset()
    assert switch.process(0, _frame(2, 1)) == [(1, _frame(2, 1, 1))]
    with pytest.raises(ValueError, match=r"I\.sums has 4 cells; there is no cell 4"):
        switch.object_read("I.sums", 4)
    with pytest.raises(ValueError, match="the program has no extern object I"):
        switch.object_read("I", 0)
    with pytest.raises(ValueError, match="expected a cell of 16 bytes, got 2"):
        switch.object_write("I.sums", 0, b"ab")


def test_an_object_is_traced_in_its_own_words(tally: Path) -> None:
    traced = build_traced(compile_program(tally).program)
    switch = load().Switch(str(traced.library))
    switch.set_tracing(True)
    switch.process(0, _frame(1, 3))
    switch.process(0, _frame(1, 4))
    trace = Trace(Decoder(traced)(switch.traced()[0]))
    told = trace.of(ev.ExternTold)
    assert [(event.extern, event.index, event.text) for event in told] == [
        ("I.sums", 1, "3 of 1"), ("I.sums", 1, "7 of 2"),
    ]  # fmt: skip
    assert "I.sums[1]: 7 of 2" in trace.text()


def test_tests_of_a_program_with_an_object_pass(tally: Path) -> None:
    pytest.importorskip("z3", reason="z3 is not installed")
    from p4switch.testgen import generate

    _, result = generate(tally, seconds=60)
    switch = load().Switch(str(build(compile_program(tally).program)))
    for test in result.tests:
        switch.reset()
        assert test.run.packet is not None
        assert switch.process(test.run.port, test.run.packet) == test.run.outputs
