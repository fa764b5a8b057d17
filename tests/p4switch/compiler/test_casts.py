"""Types that the checker records about the unchanged tree, and casts that `casts` adds to it."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path

import pytest

from p4switch.compiler import ast, types
from p4switch.compiler.casts import insert_casts
from p4switch.compiler.diagnostics import CompileError, Reporter
from p4switch.compiler.facts import Facts
from p4switch.compiler.frontend import parse
from p4switch.compiler.names import resolve
from p4switch.compiler.semantics import check

ROOT = Path(__file__).parents[3]


SHORT_FORMS = """
match_kind { exact }
parser q() { state start { transition accept; } }
parser p(in bit<8> x, in bit<4> y) {
  state start { q.apply(); transition select(x, y) { {1, 2}: next; _: next; } }
  state next { transition select() { default: accept; } }
}
control inner(inout bit<8> b) { apply { b = 1; } }
control c(inout bit<8> b) {
  action a() { }
  table t {
    key = { b: exact; b + 1: exact; }
    actions = { a; }
    default_action = a;
    const entries = { {1, 2}: a; _: a; }
  }
  apply { t.apply(); inner.apply(b); inner.apply(b); }
}
"""


def nodes(program: ast.Program) -> list[ast.Node]:
    found: list[ast.Node] = [*program.declarations]
    for node in found:
        found += ast.parts(node)
    return found


def attributes(node: ast.Node) -> list[object]:
    values = [getattr(node, f.name) for f in dataclasses.fields(node)]
    return [list(map(id, value)) if isinstance(value, list) else value for value in values]


def changed(path: Path) -> list[str]:
    """Return the nodes of the tree of a program that the checker changes, with their lines."""
    program, reporter = parse(path, [ROOT / "p4src"], {})
    reporter.stop_on_errors()
    resolve(program)
    written = {node: attributes(node) for node in nodes(program)}
    check(program, reporter)
    different = [node for node, before in written.items() if attributes(node) != before]
    return [f"{program.source.locate(node.pos)} {node}" for node in different]


@pytest.mark.parametrize("folder", ["p4src", "tests", "examples"])
def test_the_checker_leaves_the_tree_as_it_is_written(folder: str) -> None:
    lines, checked = [], 0
    for path in sorted((ROOT / folder).rglob("*.p4")):
        with suppress(CompileError):  # of a program that cannot be parsed
            lines += changed(path)
            checked += 1
    assert checked
    assert lines == []


def test_the_checker_leaves_short_forms_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "short.p4"
    path.write_text(SHORT_FORMS)
    assert changed(path) == []


class Case:
    """The assignment `target = value;` in a control with variables of several types, checked."""

    def __init__(self, folder: Path, statement: str) -> None:
        path = folder / "program.p4"
        path.write_text(
            "enum bit<8> kind { a = 3, b = 7 }\nenum bit<4> odd { one = 1 }\nstruct pair { bit<8> x; kind k; odd o; }\n"
            "const pair P = { 5, kind.b, ... };\n"
            "control c(inout bit<8> b, inout int<16> i, inout kind k, inout pair s, inout tuple<bit<8>, bool> t) {\n"
            f"  apply {{ {statement} }}\n}}"
        )
        self.program, self.reporter = parse(path, [], {})
        resolve(self.program)
        check(self.program, self.reporter)
        self.reporter.stop_on_errors()
        (assignment,) = (node for node in nodes(self.program) if isinstance(node, ast.Assign))
        self.assignment = assignment

    @property
    def value(self) -> ast.Expr:
        return self.assignment.value

    @property
    def facts(self) -> Facts:
        return self.program.facts

    def after(self) -> str:
        """Return the value after the pass `casts`, with the types of literals and of casts."""
        insert_casts(self.program, Reporter(self.program.source))
        return self.text(self.value)

    def text(self, e: ast.Expr) -> str:
        t = self.facts.types[e]
        if isinstance(e, ast.IntLiteral | ast.BoolLiteral):
            return f"{e.value}:{t}"
        if isinstance(e, ast.EnumRef):
            return f"{t}.{e.decl.name}"
        if isinstance(e, ast.Cast):
            return f"({t}){self.text(e.operand)}"
        if isinstance(e, ast.Binary):
            return f"({self.text(e.left)} {e.op} {self.text(e.right)})"
        if isinstance(e, ast.ListExpr):
            return f"[{', '.join(map(self.text, e.items))}]"
        if isinstance(e, ast.StructExpr):
            return "{" + ", ".join(f"{f.name} = {self.text(f.value)}" for f in e.fields) + "}"
        if isinstance(e, ast.Unary):
            return f"{e.op}{self.text(e.operand)}"
        if isinstance(e, ast.Slice):
            return f"{self.text(e.base)}[{self.text(e.high)}:{self.text(e.low)}]"
        if isinstance(e, ast.WidthSlice):
            return f"{self.text(e.base)}[{self.text(e.low)}+:{self.text(e.width)}]"
        assert isinstance(e, ast.Name)
        return e.name


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("b = 300 - 45;", "255:bit<8>"),
        ("b = b + 3;", "(b + 3:bit<8>)"),
        ("b = b << 3;", "(b << 3:int)"),
        ("b = k;", "(bit<8>)k"),
        ("b = kind.a;", "3:bit<8>"),
        ("k = (kind)7;", "kind.b"),
        ("k = (kind)9;", "(kind)9:bit<8>"),
        ("b = (bit<8>)b;", "b"),
        ("b = (bit<8>)((int)b + 1);", "(b + 1:bit<8>)"),
        ("b = (bit<8>)((int)i + 1);", "((bit<8>)(int<8>)i + 1:bit<8>)"),
        ("b = P.x + (bit<8>)P.k;", "12:bit<8>"),
        ("b = +b;", "b"),
        ("b = true ? b : 7;", "b"),
        ("t = { 1, false || b == 2 };", "[1:bit<8>, (b == 2:bit<8>)]"),
        ("t = { b, ... };", "[b, False:bool]"),
        ("s = { k = k, ... };", "{x = 0:bit<8>, k = k, o = (odd)0:bit<4>}"),
        ("s = { 1, kind.a, odd.one };", "{x = 1:bit<8>, k = kind.a, o = odd.one}"),
        ("b = b / 4;", "(b >> 2:int)"),
        ("b = b % 4;", "(b & 3:bit<8>)"),
        ("b = 4w0 ++ b[2+:4];", "(0:bit<4> ++ b[5:int:2:int])"),
        ("b = (bit<8>)i[b+:8];", "i[b+:8:int]"),
        ("b[2+:4] = 3;", "3:bit<4>"),
        ("i[b+:4] = 3;", "3:bit<4>"),
    ],
)
def test_conversions(tmp_path: Path, statement: str, text: str) -> None:
    assert Case(tmp_path, statement).after() == text


def test_constants_and_conversions_are_facts_first(tmp_path: Path) -> None:
    case = Case(tmp_path, "b = 1 + 2;")
    assert isinstance(case.value, ast.Binary)
    assert (case.facts.constants[case.value], case.facts.types[case.value]) == (3, types.Bits(8))
    assert (case.facts.constants[case.value.left], case.facts.types[case.value.left]) == (1, types.INT)
    case = Case(tmp_path, "b = k;")
    assert isinstance(case.value, ast.Name)
    assert case.facts.types[case.value] == types.Bits(8)
    assert isinstance(case.facts.uncast[case.value], types.Enum)
