"""Operations whose results are never read: pipelines omit them, except pipelines that record events."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch import ir
from p4switch.compiler import compile_program
from p4switch.engine import generated
from p4switch.ir.graph import code
from p4switch.ir.unread import unread

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers_t {{ h_t h; h_t[2] hs; }}
struct meta_t {{ bit<8> first; bit<8> second; bit<16> hashed; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ pkt.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    register<bit<8>>(4) kept;
    action set(bit<8> given) {{ meta.second = given; }}
    table t {{ key = {{ meta.first: exact; }} actions = {{ set; NoAction; }} }}
    apply {{ {ingress} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def left_out(tmp_path: Path, ingress: str) -> list[str]:
    """Return the targets of the omitted operations, in the order of the program."""
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(ingress=ingress))
    program = compile_program(path).program
    found = unread(program, {("standard_metadata", "egress_spec")})
    return [
        written.name.rpartition(".")[2]
        for block in code(program) for op in block.ops if op in found
        for written in op.writes if isinstance(written, ir.FieldRef)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ingress", "expected"),
    [
        ("meta.first = hdr.h.a;", ["first"]),
        ("meta.first = hdr.h.a; meta.second = meta.first;", ["first", "second"]),
        ("meta.first = hdr.h.a; hdr.h.b = meta.first;", []),
        ("meta.first = hdr.h.a; if (meta.first == 3) { hdr.h.b = 1; }", []),
        ("meta.first = hdr.h.a; t.apply();", ["second"]),
        ("std.egress_spec = 3; std.mcast_grp = 4;", ["mcast_grp"]),
        ("kept.read(meta.first, 0); meta.second = meta.first;", ["second"]),
        ("meta.first = hdr.h.a; kept.write(0, meta.first);", []),
        ("hdr.h.b = hdr.h.a;", []),
        ("meta.first = hdr.h.a; hdr.hs[meta.first].a = 1;", []),
        ("meta.first = hdr.h.a; hdr.hs[meta.first] = hdr.h;", []),
        ("meta.first = hdr.h.a; hdr.hs[meta.first].setValid();", []),
        ("meta.first = hdr.h.a; hdr.hs[meta.first].setInvalid();", []),
        ("meta.first = hdr.h.a; hdr.h.b = hdr.hs[meta.first].a;", []),
        ("meta.first = hdr.h.a; hdr.h = hdr.hs[meta.first];", []),
        ("meta.first = hdr.h.a; if (hdr.hs[meta.first].isValid()) { hdr.h.b = 1; }", []),
    ],
)
def test_what_is_left_out(tmp_path: Path, ingress: str, expected: list[str]) -> None:
    assert left_out(tmp_path, ingress) == expected


def test_pipelines_that_are_traced_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(ingress="meta.first = hdr.h.a;"))
    program = compile_program(path).program
    assert "= p4_ld8(p->H + H_h);" not in generated(program).text
    assert "= p4_ld8(p->H + H_h);" in generated(program, traced=True).text
