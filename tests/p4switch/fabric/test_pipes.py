"""Switches of several pipes: a port belongs to one, and packets cross between ingress and egress."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4switch.architectures.front_panel import PIPE_PORT_BITS
from p4switch.architectures.packet_path import PACKET_PATHS
from p4switch.compiler import compile_pipelines, compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import build, build_traced, load, objects
from p4switch.fabric import Fabric
from p4switch.trace import Decoder, Trace, decode_pipes
from p4switch.trace import events as ev
from tests.p4switch.architectures import tofino
from tests.p4switch.fabric.stub import GBPS, Host, balance

FIRST = {
    "INGRESS": """
    Register<bit<8>, bit<1>>(1) seen;
    RegisterAction<bit<8>, bit<1>, bit<8>>(seen) count = {
        void apply(inout bit<8> value, out bit<8> result) { value = value + 1; result = value; }
    };
    apply {
        tm.ucast_egress_port = hdr.h.kind[0:0] ++ hdr.h.value;
        tm.qid = 5;
        tm.rid = 7;
        tm.bypass_egress = hdr.h.kind[1:1];
        if (hdr.h.kind[2:2] == 1) { tm.mcast_grp_a = 9; }
        hdr.h.kind = count.execute(0);
    }""",
    "EGRESS_PARSER": "state start { packet.extract(intrinsic); packet.extract(hdr.h); transition accept; }",
    "EGRESS": "apply { hdr.h.value = 1; }",
}
OTHER = """
control OtherIn(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t parsed,
                inout ingress_intrinsic_metadata_for_deparser_t deparsed,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    action to(bit<9> port) { tm.ucast_egress_port = port; }
    table out_of { key = { hdr.h.kind : exact; } actions = { to; } }
    apply { out_of.apply(); }
}
control OtherOut(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intrinsic,
                 in egress_intrinsic_metadata_from_parser_t parsed,
                 inout egress_intrinsic_metadata_for_deparser_t deparsed,
                 inout egress_intrinsic_metadata_for_output_port_t port) {
    apply {
        hdr.note.setValid();
        hdr.note.note = (bit<8>) intrinsic.egress_rid;
        hdr.note.more = (bit<8>) intrinsic.egress_qid;
        hdr.h.value = intrinsic.egress_port[7:0];
    }
}
"""
BOTH = """
Pipeline(IngressParse(), OtherIn(), IngressDeparse(), EgressParse(), OtherOut(), EgressDeparse()) other;
Switch(pipe, other) main;"""


def program(folder: Path) -> Path:
    """Return a program of two pipelines; the second writes a packet's egress metadata into it."""
    path = tofino.write(folder, **FIRST)
    text = path.read_text().replace("Pipeline(", f"{OTHER}Pipeline(").replace("\nSwitch(pipe) main;", BOTH)
    path.write_text(text)
    return path


def pipes(folder: Path, *numbers: int) -> list[Any]:
    """Return the switches of pipes that run these pipelines, joined."""
    compiled = compile_pipelines(program(folder), arch="tna")
    made = [load().Switch(str(build(compiled[number].program))) for number in numbers]
    made[0].join(tuple(made[1:]), PIPE_PORT_BITS)
    return made


def test_each_pipeline_is_compiled_by_itself(tmp_path: Path) -> None:
    one, other = compile_pipelines(program(tmp_path), arch="tna")
    tables = [[t.preamble.name for t in each.p4info.tables] for each in (one, other)]
    assert tables == [[], ["OtherIn.out_of"]]
    assert [r.name for c in (one, other) for r in c.program.registers] == ["In.seen"]
    names = [[t["name"] for t in each.bf_rt["tables"]] for each in (one, other)]
    assert names[0] == ["pipe.In.seen", "pipe.IngressParse.$PORT_METADATA"]
    assert names[1] == ["other.OtherIn.out_of", "other.IngressParse.$PORT_METADATA"]
    with pytest.raises(CompileError, match=r"the program has 2 pipelines; expected the number of one with it"):
        compile_program(tmp_path / "program.p4", arch="tna")
    with pytest.raises(CompileError, match=r"the program has no pipeline 2; expected a number below 2"):
        compile_program(tmp_path / "program.p4", arch="tna", pipeline=2)


def test_a_packet_leaves_by_the_egress_of_its_ports_pipe(tmp_path: Path) -> None:
    first, second = pipes(tmp_path, 0, 1)
    assert first.process(1, bytes([0, 3])) == [(3, bytes([1, 1]))]
    assert first.process(1, bytes([0, 130])) == [(130, bytes([7, 5, 2, 130]))]
    assert first.process(1, bytes([2, 130])) == [(130, bytes([3, 130]))]  # without egress
    second.table_add("OtherIn.out_of", [(b"\1", b"")], 0, ("action", "OtherIn.to", [b"\0\3"]))
    assert first.process(130, bytes([1, 0])) == [(3, bytes([1, 1]))]
    assert first.process(130, bytes([2, 0])) == []
    assert first.counts == {"received": 5, "cloned": 0, "multicast": 0, "transmitted": 4, "dropped": 1}


def test_a_port_that_no_pipe_has_is_the_first_ones(tmp_path: Path) -> None:
    first, _ = pipes(tmp_path, 0, 1)
    assert first.process(1, bytes([1, 44])) == [(300, bytes([1, 1]))]


def test_pipes_of_one_pipeline_have_registers_of_their_own(tmp_path: Path) -> None:
    first, _, third = pipes(tmp_path, 0, 1, 0)
    assert [first.process(port, bytes([0, 3]))[0][1][0] for port in (1, 2, 257, 258, 259, 3)] == [1, 2, 1, 2, 3, 3]
    assert (first.register_read("In.seen", 0), third.register_read("In.seen", 0)) == (b"\3", b"\3")


def test_groups_and_recirculation_go_over_pipes(tmp_path: Path) -> None:
    first, second = pipes(tmp_path, 0, 1)
    first.multicast_set(9, [(4, 1), (131, 2)])
    copies = [(4, bytes([1, 1])), (131, bytes([2, 5, 1, 131])), (200, bytes([7, 5, 1, 200]))]
    assert first.process(1, bytes([4, 200])) == copies
    kind = PACKET_PATHS.find("tna.Switch").states["port"].kind
    second.object_write("$port", 200, objects.packed(kind, {"loopback": 1}))
    second.table_add("OtherIn.out_of", [(b"\7", b"")], 0, ("action", "OtherIn.to", [b"\0\6"]))
    assert first.process(1, bytes([0, 200])) == [(6, bytes([7, 1, 2, 200]))]


def test_a_trace_goes_over_pipes(tmp_path: Path) -> None:
    compiled = compile_pipelines(program(tmp_path), arch="tna")
    traced = [build_traced(each.program) for each in compiled]
    first, second = (load().Switch(str(each.library)) for each in traced)
    first.join((second,), PIPE_PORT_BITS)
    first.set_tracing(True)
    first.process(1, bytes([0, 130]))
    first.process(130, bytes([0, 0]))
    trace = Trace([*decode_pipes([Decoder(each) for each in traced], first.traced()[0])])
    assert [e.packet for e in trace.of(ev.Received)] == [0, 1]
    assert [e.packet for e in trace.of(ev.Transmitted)] == [0]
    changed = [change.name for e in trace.of(ev.StatementRun) if e.packet == 0 for change in e.changes]
    assert any(name.endswith("note.more") for name in changed)


def test_pipes_end_with_the_first_one(tmp_path: Path) -> None:
    first, second = pipes(tmp_path, 0, 1)
    with pytest.raises(ValueError, match="pipes 0 and 1 are the same switch"):
        second.join((second,), PIPE_PORT_BITS)
    del first
    second.table_add("OtherIn.out_of", [(b"\1", b"")], 0, ("action", "OtherIn.to", [b"\0\3"]))
    assert second.process(1, bytes([1, 0])) == [(3, bytes([0, 0, 1, 3]))]


def test_packets_cross_in_the_queues_of_a_network(tmp_path: Path) -> None:
    """Two hosts send to a port of the other pipe at more than its rate; frames that find no room are lost."""
    size, frames = 125, 40
    first, _ = pipes(tmp_path, 0, 1)
    made, sink = Fabric(), Host()
    frame = bytes([0, 130]).ljust(size, b"\0")
    for host in (Host([(0, frame)] * frames), Host([(0, frame)] * frames), sink):
        made.add_host(host)
    node = made.add_switch(first, queue_bytes=10 * size)
    for number, port in enumerate((1, 2, 130)):
        made.connect(number, 0, node, port, rate_bps=100 * GBPS, delay_ns=500)
    assert made.run() == "idle"
    terms = balance(made)
    assert terms["drop_buffer"] > 0
    assert len(sink.got) == 2 * frames - terms["drop_buffer"]
    assert {data[:2] for _, data in sink.got} == {bytes([7, 5])}
    assert first.register_read("In.seen", 0)[0] == 2 * frames
