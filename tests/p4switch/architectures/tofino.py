"""Programs for TNA and T2NA with one pipeline, block by block, and their packets on the built-in switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from p4switch.compiler import Compiled, compile_program
from p4switch.engine import build, load
from tests.p4switch.architectures.skeletons import filled

SKELETON = """\
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
header h_t { bit<8> kind; bit<8> value; }
header note_t { bit<8> note; bit<8> more; }
header wide_t { bit<32> a; bit<32> b; }
header sum_t { bit<16> a; bit<16> b; bit<16> sum; }
header resubmit_t { bit<64> data; }
struct headers { note_t note; h_t h; h_t extra; wide_t wide; sum_t sum; }
struct metadata {
    bit<8> seen; bit<16> residual; bool wrong; bit<10> session; note_t copied; resubmit_t again; bit<64> port;
}
struct pair_t { bit<32> lo; bit<32> hi; }
struct port_t { bit<8> first; bit<16> second; }
parser IngressParse(packet_in packet, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intrinsic) {
    INGRESS_PARSER
}
control In(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t parsed,
           inout ingress_intrinsic_metadata_for_deparser_t deparsed,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    INGRESS
}
control IngressDeparse(packet_out packet, inout headers hdr, in metadata meta,
                       in ingress_intrinsic_metadata_for_deparser_t deparsed,
                       in ingress_intrinsic_metadata_t intrinsic) {
    INGRESS_DEPARSER
}
parser EgressParse(packet_in packet, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t intrinsic) {
    EGRESS_PARSER
}
control Out(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intrinsic,
            in egress_intrinsic_metadata_from_parser_t parsed,
            inout egress_intrinsic_metadata_for_deparser_t deparsed,
            inout egress_intrinsic_metadata_for_output_port_t port) {
    EGRESS
}
control EgressDeparse(packet_out packet, inout headers hdr, in metadata meta,
                      in egress_intrinsic_metadata_for_deparser_t deparsed) {
    EGRESS_DEPARSER
}
Pipeline(IngressParse(), In(), IngressDeparse(), EgressParse(), Out(), EgressDeparse()) pipe;
Switch(pipe) main;
"""
START = "state start { packet.extract(intrinsic); packet.advance(PORT_METADATA_SIZE);"
BLOCKS = {
    "INGRESS_PARSER": f"{START} packet.extract(hdr.h); transition accept; }}",
    "INGRESS_DEPARSER": "apply { packet.emit(hdr); }",
    "EGRESS_PARSER": "state start { packet.extract(intrinsic); transition accept; }",
    "EGRESS_DEPARSER": "apply { packet.emit(hdr); }",
    "INGRESS": "apply { tm.ucast_egress_port = 2; }",
    "EGRESS": "apply {}",
}

GHOST = """\
Register<bit<32>, bit<11>>(2048) lengths;
Register<bit<32>, bit<1>>(2) updates;
Register<bit<32>, bit<1>>(1) pipes;
control Ghost(in ghost_intrinsic_metadata_t queue) {
    RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) keep = {
        void apply(inout bit<32> value) { value = (bit<32>) queue.qlength; }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(updates) count = {
        void apply(inout bit<32> value) { value = value + 1; }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(pipes) note = {
        void apply(inout bit<32> value) { value = (bit<32>) queue.pipe_id; }
    };
    apply { keep.execute(queue.qid); count.execute(queue.ping_pong); note.execute(0); }
}
"""
WITH_DEPTHS = {
    "INGRESS_PARSER": f"{START} packet.extract(hdr.h); packet.extract(hdr.wide); transition accept; }}",
    "INGRESS": """
    RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) look = {
        void apply(inout bit<32> value, out bit<32> result) { result = value; }
    };
    apply {
        tm.ucast_egress_port = (bit<9>) hdr.h.value;
        tm.qid = hdr.h.kind[6:0];
        hdr.wide.a = look.execute(hdr.h.value[6:3] ++ hdr.h.value[2:0] ++ hdr.h.kind[3:0]);
    }""",
    "EGRESS_PARSER": (
        "state start { packet.extract(intrinsic); packet.extract(hdr.h); packet.extract(hdr.wide); transition accept; }"
    ),
    "EGRESS": "apply { hdr.wide.b = (bit<32>) intrinsic.enq_qdepth; }",
}
"""Blocks for GHOST, in which a packet gets its queue's depth from ingress and from egress."""


def write(folder: Path, **blocks: str) -> Path:
    return filled(folder, SKELETON, BLOCKS, blocks)


def write_with_ghost(folder: Path, ghost: str, **blocks: str) -> Path:
    """Write a program for T2NA whose `ghost` has the control Ghost, and objects that all blocks share."""
    path = write(folder, **blocks)
    text = path.read_text().replace("struct headers {", f"{ghost}struct headers {{")
    path.write_text(text.replace("EgressDeparse()) pipe;", "EgressDeparse(), Ghost()) pipe;"))
    return path


def compiled(folder: Path, arch: str = "tna", **blocks: str) -> Compiled:
    return compile_program(write(folder, **blocks), arch=arch)


def switch(folder: Path, arch: str = "tna", **blocks: str) -> Any:
    return load().Switch(str(build(compiled(folder, arch, **blocks).program)))


def sent(folder: Path, *packets: bytes, arch: str = "tna", **blocks: str) -> list[list[tuple[int, bytes]]]:
    made = switch(folder, arch, **blocks)
    return [made.process(1, packet) for packet in packets]
