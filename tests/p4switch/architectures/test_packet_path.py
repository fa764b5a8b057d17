"""Package outside of p4cc, with a parser, a control, a deparser and headers on each side of the queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from p4switch import registry
from p4switch.architectures.packet_path import PACKET_PATHS, Intrinsic, PacketPath, packet_path
from p4switch.bmv2 import read
from p4switch.engine import ProgramError, build, build_traced, generated, load
from p4switch.errors import UserError
from p4switch.trace import Decoder, Trace
from p4switch.trace import events as ev
from tests.p4switch.engine.jsonbuilder import Json, ProgramBuilder, assign, const, field, op

DROP_PORT = 99
STATE_H = """\
#define P4_STATE uint32_t egress_parsed;
"""
PACKET_PATH_H = """\
/* Ingress sends bytes to the queue, and egress parses them again. */
static void deparse_in_place(p4_switch *sw, phv *p, uint32_t headers, void (*write)(const phv *, uint8_t *))
{
    p->base.frame = deparse(sw, p, headers, write);
    p->parsed = 0;
}

static void receive(p4_switch *sw, p4_frame *frame, uint32_t port, p4_tick now)
{
    phv *p = packet_new(sw, frame);
    sw->counts.received++;
    p->now = now;
    p->ingress_port = port;
    NUMBER(p, (uint32_t)sw->counts.received - 1, 0);
    run_ingress_parser(sw, p);
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 0, 0, NULL, 0);
    run_ingress(sw, p);
    if (get_to(p) == sw->drop_port) {
        packet_drop(sw, p, port, p->base.frame->wire_len, P4_DROP_PROGRAM_INGRESS);
        packet_delete(sw, p);
        return;
    }
    run_ingress_deparser(sw, p);
    deparse_in_place(sw, p, ingress_deparser_bytes(p), ingress_deparser_write);
    p->base.egress_port = (uint32_t)get_to(p);
    p->base.len = p->base.frame->wire_len;
    sw->env.enqueue(sw->env.ctx, &p->base);
}

static p4_frame *transmit(p4_switch *sw, p4_packet *packet, p4_tick now)
{
    phv *p = (phv *)(void *)packet;
    p->now = now;
    memset(p->valid, 0, sizeof p->valid);
    memset(p->next, 0, sizeof p->next);
    memset(&p->m, 0, sizeof p->m);
    run_egress_parser(sw, p);
    p->egress_parsed = p->parsed;
    set_to(p, p->egress_parsed);
    NOTE(p);
    TRACE(P4_TRACE_PIPELINE, P4_NO_POINT, 1, 0, NULL, 0);
    run_egress(sw, p);
    run_egress_deparser(sw, p);
    p4_frame *frame = deparse(sw, p, egress_deparser_bytes(p), egress_deparser_write);
    sw->counts.transmitted++;
    packet_release(p);
    return frame;
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Iterator[PacketPath]:
    (tmp_path / "state.h").write_text(STATE_H)
    (tmp_path / "packet_path.h").write_text(PACKET_PATH_H)
    path = PacketPath(
        tmp_path,
        parsers=("ingress_parser", "egress_parser"),
        controls=("ingress", "egress"),
        deparsers=("ingress_deparser", "egress_deparser"),
        intrinsic={"to": Intrinsic("meta.to", required=True)},
        externs=(),
        drop_port=DROP_PORT,
    )
    PACKET_PATHS.add("TwoSides", path)
    yield path
    registry.forget(__file__)


def program() -> Json:
    """Return a program.

    Ingress sends a packet to the port in its first byte and inserts a byte. Egress replaces two bytes
    by one.
    """
    b = ProgramBuilder()
    b.types, b.headers = [], []
    b.header_type("one_t", ("value", 8, False))
    b.header_type("two_t", ("first", 8, False), ("second", 8, False))
    b.header_type("meta_t", ("to", 32, False))
    b.header("meta", "meta_t", metadata=True)
    b.header("came", "one_t")
    b.header("bridge", "one_t")
    b.header("both", "two_t")
    b.run([
        assign(field("meta", "to"), field("came", "value")),
        {"op": "add_header", "parameters": [{"type": "header", "value": "bridge"}]},
        assign(field("bridge", "value"), const(0x55)),
    ])
    b.run([
        assign(field("both", "first"), op("+", field("both", "first"), field("both", "second"))),
        assign(field("both", "second"), field("meta", "to")),
    ], pipeline="egress")
    document = b.json()
    parser, deparser = document["parsers"][0], document["deparsers"][0]
    del parser["init_state"], deparser["order"]

    def states(header: str) -> list[Json]:
        extract = {"op": "extract", "parameters": [{"type": "regular", "value": header}]}
        end = {"type": "default", "value": None, "mask": None, "next_state": None}
        return [{"name": "start", "id": 0, "parser_ops": [extract], "transition_key": [], "transitions": [end]}]

    document["parsers"] = [
        {**parser, "name": f"{side}_parser", "init_state": "start", "parse_states": states(header)}
        for side, header in (("ingress", "came"), ("egress", "both"))
    ]
    document["deparsers"] = [
        {**deparser, "name": "ingress_deparser", "order": ["bridge", "came"]},
        {**deparser, "name": "egress_deparser", "order": ["both", "came"]},
    ]
    document["__meta__"] = {"package": "TwoSides"}
    return document


@pytest.mark.usefixtures("path")
def test_both_sides_have_headers_of_their_own() -> None:
    switch = load().Switch(str(build(read(program()))))
    assert switch.drop_port == DROP_PORT
    # Egress parses the bridge and the byte after it. Its initial metadata have the number of parsed bytes.
    assert switch.process(1, b"\x07rest") == [(7, b"\x5c\x02rest")]
    assert switch.process(1, bytes([DROP_PORT]) + b"rest") == []


@pytest.mark.usefixtures("path")
def test_traces_name_the_controls() -> None:
    traced = build_traced(read(program()))
    switch = load().Switch(str(traced.library))
    switch.set_tracing(True)
    switch.process(1, b"\x07rest")
    trace = Trace(Decoder(traced)(switch.traced()[0]))
    assert [event.pipeline for event in trace.of(ev.PipelineEntered)] == ["ingress", "egress"]
    assert [event.parser for event in trace.of(ev.StateEntered)] == ["ingress_parser", "egress_parser"]
    assert [event.header for event in trace.of(ev.Extracted)] == ["hdr.came", "hdr.both"]


def test_a_package_is_known_by_its_name_or_its_blocks(path: PacketPath) -> None:
    assert packet_path("TwoSides", ()) is path
    assert packet_path(None, ("egress_parser", "ingress", "egress")) is PACKET_PATHS.find("PSA_Switch")
    assert packet_path(None, ("parser", "ingress", "egress")) is PACKET_PATHS.find("V1Switch")
    document = {**program(), "__meta__": {"package": "V1Switch"}}
    with pytest.raises(ProgramError, match="there is no deparser deparser"):
        generated(read(document))
    document["__meta__"] = {"package": "Nothing"}
    with pytest.raises(UserError, match="packet path 'Nothing'"):
        generated(read(document))
    document = program()
    document["deparsers"].pop()
    with pytest.raises(ProgramError, match="there is no deparser egress_deparser"):
        generated(read(document))
