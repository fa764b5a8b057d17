"""Every error of the compiler names file and line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from p4switch import compiler
from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError

PACKAGE = Path(compiler.__file__).parent
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header one_t { bit<8> f; }
header two_t { bit<16> f; }
header_union union_t { one_t one; two_t two; }
struct headers_t { one_t[3] s; one_t h; union_t[2] u; }
struct meta_t { bit<8> v; bool b; }
PARTS
parser P(packet_in pk, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pk.extract(hdr.s.next);
        PARSER
        SELECT
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    LOCALS
    apply {
        INGRESS
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pk, in headers_t hdr) { apply { pk.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
TABLE = """
    table t {
        key = { hdr.h.f: exact; }
        actions = { NoAction; }
    }
"""
APPLIED_TWICE = """
        if (hdr.h.f == 1) {
            if (t.apply().hit) { meta.v = 1; } else { meta.v = 3; }
        } else {
            switch (t.apply().action_run) { NoAction: { meta.v = 2; } }
        }
"""
GIVEN = """
control inner(inout one_t h)(bit<8> low) {
    table t {
        key = { h.f: range; }
        actions = { NoAction; }
        const entries = {
            low .. 4: NoAction;
        }
    }
    apply { t.apply(); }
}
"""


@pytest.mark.parametrize(
    ("place", "code", "line", "message"),
    [
        ("PARSER", "meta.v = hdr.s.next.f;", "", "'next' of stack"),
        ("PARSER", "hdr.s.next.f = 1;", "", "'next' of stack"),
        ("PARSER", "if (hdr.s.next.f == 1) { meta.v = 1; }", "", "'next' of stack"),
        ("PARSER", "if (hdr.s.next.isValid()) { meta.v = 1; }", "", "'next' of stack"),
        ("PARSER", "hdr.s.next.setValid();", "", "'next' of stack"),
        ("PARSER", "verify(hdr.s.next.isValid(), error.NoMatch);", "", "'next' of stack"),
        ("PARSER", "hdr.s.next = hdr.h;", "", "'next' of a stack cannot be copied"),
        ("PARSER", "hdr.s.next = { 1 };", "", "'next' of a stack cannot be assigned to"),
        ("PARSER", "meta.v = hdr.u.last.one.f + 1;", "", "'last' of union stack"),
        ("PARSER", "pk.advance((bit<32>)hdr.u.last.one.f);", "", "'last' of union stack"),
        ("SELECT", "transition select(hdr.s.next.f) { 1: accept; }", "", "'next' of stack"),
        ("TWICE", "", "table t {", "applied both for its hit or miss and for its action"),
        ("GIVEN", "", "low .. 4: NoAction;", "the range 9 .. 4 is empty"),
    ],
)
def test_what_the_target_cannot_do_is_refused_at_its_line(
    place: str, code: str, line: str, message: str, tmp_path: Path
) -> None:
    parts = dict.fromkeys(("PARTS", "PARSER", "LOCALS", "INGRESS"), "")
    parts["SELECT"] = "transition accept;"
    parts[place] = code
    if place == "TWICE":
        parts |= {"LOCALS": TABLE, "INGRESS": APPLIED_TWICE}
    elif place == "GIVEN":
        parts |= {"PARTS": GIVEN, "LOCALS": "inner(9) i;", "INGRESS": "i.apply(hdr.h);"}
    text = PROGRAM
    for name, part in parts.items():
        text = text.replace(name, part)
    path = tmp_path / "program.p4"
    path.write_text(text)
    with pytest.raises(CompileError, match=message) as caught:
        compile_program(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.location.file == str(path)
    assert diagnostic.line_text.strip() == (line or code)
    assert text.splitlines()[diagnostic.location.line - 1] == diagnostic.line_text


def test_a_program_without_a_package_is_refused_in_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    path.write_text("#include <core.p4>\n\nheader h_t { bit<8> a; }\n")
    with pytest.raises(CompileError, match="no package is instantiated") as caught:
        compile_program(path)
    assert caught.value.diagnostics[0].location[:2] == (str(path), 3)


# Places that create an error without a position, or that add the position.
GIVE_A_PLACE = {
    ("diagnostics.py", "CompileError"),  # the reporter, which gets every error with its position
    ("midend/lowering.py", "CompileError"),
    ("midend/whole.py", "CompileError"),
    ("bmv2/source.py", "CompileError"),
    ("passes/__init__.py", "CompileError"),
    ("preprocessor.py", "CompileError"),
    ("preprocessor.py", "UserError"),  # the requested file cannot be read, so there is no line
    ("__init__.py", "UserError"),  # programs of the architecture have no such file
}


def test_no_error_is_raised_without_a_place() -> None:
    """All `UserError`s of the compiler are raised with a place, or are caught and get one."""
    made: set[tuple[str, str]] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("CompileError", "UserError")
            ):
                made.add((str(path.relative_to(PACKAGE)), node.func.id))
            if isinstance(node, ast.ClassDef) and any(getattr(b, "id", "") == "UserError" for b in node.bases):
                assert node.name == "CompileError", f"{path}: {node.name} could be told without a place"
    assert made == GIVE_A_PLACE
