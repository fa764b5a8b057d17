"""Names are resolved before any expression has a type."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.compiler import ast
from p4switch.compiler.frontend import parse
from p4switch.compiler.names import Names, resolve


def resolved(tmp_path: Path, text: str) -> tuple[Names, list[ast.Node]]:
    """Return the names of a program, and all nodes of its tree."""
    path = tmp_path / "program.p4"
    path.write_text(text)
    program, reporter = parse(path, [], {})
    assert not reporter.failed
    resolve(program)
    nodes: list[ast.Node] = [*program.declarations]
    for node in nodes:
        nodes += ast.parts(node)
    return program.facts.names, nodes


def test_a_use_stands_for_the_innermost_declaration_before_it(tmp_path: Path) -> None:
    names, nodes = resolved(
        tmp_path,
        "const bit<8> a = 1;\ncontrol c(inout bit<8> x) {\n  bit<8> a = a;\n"
        "  apply { x = a; { bit<8> a = 3; x = a + .a; } }\n}",
    )
    constant, local = (next(d for d in nodes if isinstance(d, kind)) for kind in (ast.ConstDecl, ast.VarDecl))
    inner = next(d for d in nodes if isinstance(d, ast.VarDecl) and d is not local)
    uses = sorted((n for n in nodes if isinstance(n, ast.Name) and n.name == "a"), key=lambda n: n.pos)
    assert [names.decls[use] for use in uses] == [(constant,), (local,), (inner,), (constant,)]


def test_an_overload_is_not_known_before_its_declaration(tmp_path: Path) -> None:
    names, nodes = resolved(
        tmp_path, "extern void f();\naction one() { f(); }\nextern void f(bool b);\naction two() { f(); }"
    )
    first, second = (n for n in nodes if isinstance(n, ast.ExternFunctionDecl))
    calls = sorted((n for n in nodes if isinstance(n, ast.Name)), key=lambda n: n.pos)
    assert [names.decls[call] for call in calls] == [(first,), (first, second)]


def test_types_actions_states_and_match_kinds_are_names(tmp_path: Path) -> None:
    names, nodes = resolved(
        tmp_path,
        "match_kind { exact }\nheader h_t {}\naction NoAction() {}\n"
        "parser p(h_t h) { state start { transition next; } state next { transition reject; } }\n"
        "control c(h_t h, bool b) { table t { key = { b: exact; } actions = { NoAction; } } apply {} }",
    )
    stands_for = {type(use).__name__: [d.name for d in names.decls[use]] for use in nodes if use in names.decls}
    assert stands_for == {
        "NamedTypeExpr": ["h_t"],
        "Transition": ["reject"],
        "TableDecl": ["NoAction"],
        "ActionRef": ["NoAction"],
        "TableKey": ["exact"],
        "Name": ["b"],
    }


def test_what_is_known_ends_at_the_use(tmp_path: Path) -> None:
    names, nodes = resolved(tmp_path, "const int one = 1;\nconst int two = tree;\nconst int three = 3;")
    unknown = next(n for n in nodes if isinstance(n, ast.Name))
    assert names.decls[unknown] == ()
    assert list(names.known(unknown)) == ["one"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("const int a = 1;\nconst int a = 2;", "'a' is already declared (line 1)"),
        ("action f(bool b) {\n bool b; }", "'b' hides a parameter of that name (line 1)"),
        ("parser p() { state start { transition accept; }\n state start { transition accept; } }",
         "'start' is already declared (line 1)"),
        ("error { a }\nerror { a }", "'a' is already declared (line 1)"),
    ],
)  # fmt: skip
def test_a_name_that_is_taken_is_kept_for_the_checker(tmp_path: Path, text: str, wrong: str) -> None:
    names, _ = resolved(tmp_path, text)
    assert list(names.wrong.values()) == [wrong]
