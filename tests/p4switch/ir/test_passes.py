"""Passes that expand operations: a program before and after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch import ir
from p4switch.compiler import passes
from p4switch.compiler.frontend import parse_and_check
from p4switch.ir.checker import CheckError, check
from p4switch.ir.visitor import OperationVisitor

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header one_t {{ bit<8> value; }}
header two_t {{ bit<8> left; bit<8> right; }}
header_union either_t {{ one_t one; two_t two; }}
struct headers_t {{ one_t h; either_t u; two_t[2] items; }}
struct meta_t {{ bit<8> seen; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    two_t[2] own;
    state start {{ pkt.extract(hdr.h); transition {parser} }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ {ingress} }} }}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
INNER = """
parser Q(packet_in pkt) { two_t[2] own; state start { pkt.extract(own.next); transition accept; } }
parser P("""


def texts(tmp_path: Path, *names: str, parser: str = "accept;", ingress: str = "") -> list[str]:
    """Return the program after each of the passes. The checker has run after each."""
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM.format(parser=parser, ingress=ingress))
    return [passes.inspect(parse_and_check(path), name, check=True) for name in names]


def test_a_slice_is_assigned_with_the_other_bits_of_the_number(tmp_path: Path) -> None:
    before, after = texts(tmp_path, passes.LOWER, "slices", ingress="meta.seen[5:2] = 4w9;")
    assert "scalars.userMetadata.seen, 5, 2, 4w9)" in before
    assert "assign_slice" not in after
    assert "scalars.userMetadata.seen = ((scalars.userMetadata.seen & 8w195) | 8w36)" in after


def test_a_header_is_filled_field_by_field(tmp_path: Path) -> None:
    swap = "hdr.items[0] = { hdr.items[0].right, 3 };"
    before, after = texts(tmp_path, "slices", "header-values", ingress=swap)
    assert "fill_header(items[0], [" in before
    start = after.index("    items[0].setValid()\n")
    assert [line.strip() for line in after[start:].splitlines()[1:3]] == [
        "items[0].left = scalars.I.tmp",
        "items[0].right = 8w3",
    ]


@pytest.mark.parametrize(
    ("statement", "composite", "spelled"),
    [
        ("hdr.u.one.setInvalid();", "invalidate(u.one, u.two)", ["u.one.setInvalid()", "u.two.setInvalid()"]),
        ("hdr.u.one = hdr.h;", "assign_header(u.one, h, u.two)", ["u.two.setInvalid()", "u.one = h"]),
        ("hdr.h.setInvalid();", "invalidate(h)", ["h.setInvalid()"]),
    ],
)
def test_at_most_one_member_of_a_union_is_valid(
    tmp_path: Path, statement: str, composite: str, spelled: list[str]
) -> None:
    before, after = texts(tmp_path, "header-values", "unions", ingress=statement)
    assert f"    {composite}\n" in before
    ingress = after[after.index("\ningress\n") :]
    assert [line.strip() for line in ingress.splitlines()[3 : 3 + len(spelled)]] == spelled


def test_a_stack_is_rewound_only_where_it_may_have_moved_on(tmp_path: Path) -> None:
    before, once = texts(tmp_path, "unions", "rewinds")
    assert before.count("rewind(P.own)") == 1
    assert "P.own.pop_front" not in once
    states = "again; } state again { q.apply(pkt); transition select(meta.seen) { 1: again; default: accept; }"
    path = tmp_path / "loop.p4"
    outer = PROGRAM.format(parser=states, ingress="").replace("    two_t[2] own;\n", "    Q() q;\n")
    path.write_text(outer.replace("parser P(", INNER))
    looping = passes.inspect(parse_and_check(path), "rewinds", check=True)
    assert looping.count("P.q.own.pop_front(2)") == 1


BYTE = ir.Bits(8)
OWN = ir.FieldRef("scalars", "a", BYTE)


def test_what_a_pass_spells_out_is_gone_after_it() -> None:
    op = ir.AssignSlice(OWN, 3, 0, ir.Const(1, ir.Bits(4)))
    program = ir.Program(scalars={"a": BYTE}, pipelines=[ir.Pipeline("ingress", ir.Block([op]))])
    check(program)
    with pytest.raises(CheckError, match="a pass before has spelled these out"):
        check(program, {ir.AssignSlice})


def test_every_composite_operation_is_gone_in_the_end() -> None:
    assert {kind for each in passes.PASSES for kind in each.gone} == set(ir.CompositeOperation.__subclasses__())


def test_a_tool_does_not_pass_over_a_composite_operation() -> None:
    with pytest.raises(AssertionError, match="a pass spells assign_slice out"):
        OperationVisitor.composite(None, ir.AssignSlice(OWN, 3, 0, OWN))  # type: ignore[arg-type]  # without a tool
