"""Results of the front end in the tree and the facts, as documented in the modules `ast` and `facts`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import CompileError
from p4switch.compiler.facts import CallKind, Facts
from p4switch.compiler.frontend import parse_and_check

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "p4src").glob("*.p4"))


def check(tmp_path: Path, text: str, **defines: str) -> ast.Program:
    path = tmp_path / "program.p4"
    path.write_text(text)
    return parse_and_check(path, defines=defines)


def body(program: ast.Program, name: str = "c") -> list[ast.Statement]:
    control = next(d for d in program.declarations if isinstance(d, ast.ControlDecl) and d.name == name)
    return control.body.statements


def values_and_facts(tmp_path: Path, locals_: str, statements: str) -> tuple[list[ast.Expr], Facts]:
    """Return the right-hand sides of the assignments in `statements`, and the facts about the program."""
    program = check(
        tmp_path,
        "#include <core.p4>\nenum bit<8> ser { a = 3, b = 7 }\ntype bit<8> port;\nstruct S { bit<8> x; bit<16> y; }\n"
        f"const S K = {{ 5, 6 }};\nconst int N = 3;\n{locals_}\n"
        f"control c(inout bit<8> b, inout bit<16> w, inout int<8> i, inout bool f, inout S s) "
        f"{{ apply {{ {statements} }} }}",
    )
    return [s.value for s in body(program) if isinstance(s, ast.Assign)], program.facts


def values(tmp_path: Path, locals_: str, statements: str) -> list[ast.Expr]:
    return values_and_facts(tmp_path, locals_, statements)[0]


REFERENCES = frozenset(
    [
        *("type_expr", "type_arg_exprs", "element_expr", "underlying_expr", "returns", "type_params", "decl"),
        *("func", "args", "default", "annotations", "entries_annotations"),
    ]
)
"""Attributes that refer to nodes elsewhere in the tree, or to the text instead of its meaning."""


def nodes(node: object, facts: Facts) -> Iterator[ast.Node]:
    if isinstance(node, list):
        for item in node:
            yield from nodes(item, facts)
    elif isinstance(node, dict):
        yield from nodes(list(node.values()), facts)
    elif isinstance(node, ast.Node) and not isinstance(node, ast.TypeExpr):
        yield node
        for f in dataclasses.fields(node):
            is_action_label = isinstance(node, ast.SwitchCase) and f.name == "label" and node in facts.actions
            if f.name not in REFERENCES and not is_action_label:
                yield from nodes(getattr(node, f.name, None), facts)
        if node in facts.bindings:
            yield from nodes([facts.bindings[node].receiver, facts.bindings[node].bound], facts)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_every_expression_of_our_programs_is_typed_and_resolved(path: Path) -> None:
    program = parse_and_check(path, [ROOT / "p4src" / "include"])
    seen = 0
    facts = program.facts
    for node in nodes(list(program.declarations), facts):
        if isinstance(node, ast.Expr):
            seen += 1
            unfinished = (types.Unknown, types.Meta, types.AnonRecord, types.Callable)
            assert not isinstance(facts.types[node], unfinished), program.source.locate(node.pos)
        if isinstance(node, ast.Name):
            assert node in facts.decls
        if isinstance(node, ast.Call):
            call = facts.bindings[node]
            if call.kind is CallKind.BUILTIN:  # methods of headers and stacks have no declaration
                assert len(call.bound) == len(node.args)
            else:
                assert len(call.bound) == len(call.params) == len(call.param_types)
            assert isinstance(call.kind, CallKind)
    assert seen > 100
    assert program.main is not None
    assert isinstance(facts.types[program.main], types.Package)


def test_literals_take_their_width_from_the_context(tmp_path: Path) -> None:
    (left, right), facts = values_and_facts(tmp_path, "", "b = 5; w = w + 1;")
    assert isinstance(left, ast.IntLiteral)
    assert (left.value, facts.types[left]) == (5, types.Bits(8))
    assert isinstance(right, ast.Binary)
    assert facts.types[right.right] == types.Bits(16)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("8w200 + 100", 44),
        ("8w200 |+| 100", 255),
        ("8w3 |-| 5", 0),
        ("-1", 255),
        ("~8w0x0f", 0xF0),
        ("(bit<8>)16w0x1234", 0x34),
        ("16w0x1234[15:8]", 0x12),
        ("16w0x1234[4+:8]", 0x23),
        ("4w0xa ++ 4w0x5", 0xA5),
        ("8w1 << 3", 8),
        ("8w1 << 9", 0),
        ("8w0x80 >> 7", 1),
        ("7 / 2 * 10 % 7", 2),
        ("(bit<8>)(int<8>)-1", 255),
        ("N > 2 ? 1 : 0", 1),
        ("K.x + 1", 6),
        ("ser.b", 7),
        ("(bit<8>)ser.a", 3),
        ("(bit<8>)(bit<1>)true", 1),
        ("{ 8w1, 8w2 }[1]", 2),
        ("(bit<8>)s.minSizeInBits()", 24),
        ("(bit<8>)s.y.maxSizeInBytes()", 2),
    ],
)
def test_what_is_known_at_compile_time_is_folded(tmp_path: Path, expression: str, expected: int) -> None:
    (value,), facts = values_and_facts(tmp_path, "", f"b = {expression};")
    assert isinstance(value, ast.IntLiteral)
    assert (value.value, facts.types[value]) == (expected, types.Bits(8))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("8w255 > 3", True), ("N == 3 && !false", True), ("ser.a == ser.b", False), ('"a" ++ "b" == "ab"', None),
     ("error.NoMatch != error.NoError", True), ("static_assert(N == 3)", True), ("-1 < 0", True)],
)  # fmt: skip
def test_comparisons_are_folded(tmp_path: Path, expression: str, expected: bool | None) -> None:
    (value,) = values(tmp_path, "", f"f = {expression};")
    assert (value.value if isinstance(value, ast.BoolLiteral) else None) == expected


def test_implicit_casts_are_explicit(tmp_path: Path) -> None:
    (value,), facts = values_and_facts(tmp_path, "bit<8> g(in ser e) { bit<8> r; r = e; return r; }", "b = g(ser.a);")
    assert isinstance(value, ast.Call)
    assert isinstance(facts.bindings[value].bound[0], ast.EnumRef)
    program = check(tmp_path, "enum bit<8> E { a = 1 } control c(in E e, out bit<8> b) { apply { b = e; } }")
    (assign,) = body(program)
    assert isinstance(assign, ast.Assign)
    assert isinstance(assign.value, ast.Cast)
    assert assign.value.implicit


def test_initialisers_are_complete_and_in_order(tmp_path: Path) -> None:
    first, second, third = values(tmp_path, "", "s = { y = 2, x = 1 }; s = { 7, ... }; s = ...;")
    for value, expected in ((first, [1, 2]), (second, [7, 0]), (third, [0, 0])):
        assert isinstance(value, ast.StructExpr)
        assert [f.name for f in value.fields] == ["x", "y"]
        assert [f.value.value for f in value.fields if isinstance(f.value, ast.IntLiteral)] == expected


def test_arguments_are_bound_to_parameters(tmp_path: Path) -> None:
    text = "void f(in bit<8> x, in bit<8> y = 4, out bit<8> z) { z = x; }"
    program = check(tmp_path, text + "control c(inout bit<8> b) { apply { f(z = b, x = 1); } }")
    (statement,) = body(program)
    assert isinstance(statement, ast.CallStatement)
    call = program.facts.bindings[statement.call]
    assert call.kind == CallKind.FUNCTION
    assert [p.name for p in call.params] == ["x", "y", "z"]
    x, y, z = call.bound
    assert isinstance(x, ast.IntLiteral)
    assert isinstance(y, ast.IntLiteral)
    assert isinstance(z, ast.Name)
    assert (x.value, y.value) == (1, 4)


def test_type_arguments_are_inferred(tmp_path: Path) -> None:
    text = "extern void f<T, U>(in T x, out U y); extern T g<T>();"
    program = check(tmp_path, text + "control c(inout bit<8> b, inout bit<4> n) { apply { f(b, n); b = g(); } }")
    first, second = body(program)
    assert isinstance(first, ast.CallStatement)
    type_args = program.facts.bindings[first.call].type_args
    assert {p.name: t for p, t in type_args.items()} == {"T": types.Bits(8), "U": types.Bits(4)}
    assert isinstance(second, ast.Assign)
    assert program.facts.types[second.value] == types.Bits(8)


def test_calls_on_a_type_have_an_instance(tmp_path: Path) -> None:
    program = check(
        tmp_path, "control d(inout bit<8> x) { apply { } } control c(inout bit<8> b) { apply { d.apply(b); } }"
    )
    control = next(d for d in program.declarations if isinstance(d, ast.ControlDecl) and d.name == "c")
    (instance,) = control.locals
    assert isinstance(instance, ast.Instantiation)
    assert instance.name == "d_inst"
    (statement,) = control.body.statements
    assert isinstance(statement, ast.CallStatement)
    receiver = program.facts.bindings[statement.call].receiver
    assert isinstance(receiver, ast.Name)
    assert program.facts.decls[receiver] is instance


def test_compound_assignment_is_rewritten(tmp_path: Path) -> None:
    plus, shift, saturating = values(tmp_path, "", "b += 1; w >>= 2; b |+|= 3;")
    for value, op in ((plus, "+"), (shift, ">>"), (saturating, "|+|")):
        assert isinstance(value, ast.Binary)
        assert value.op == op


def test_division_by_a_power_of_two_is_a_shift(tmp_path: Path) -> None:
    quotient, rest = values(tmp_path, "", "b = b / 8; b = b % 8;")
    assert isinstance(quotient, ast.Binary)
    assert isinstance(rest, ast.Binary)
    assert (quotient.op, rest.op) == (">>", "&")


def test_a_slice_of_an_enum_is_one_of_its_representation(tmp_path: Path) -> None:
    (cast,), facts = values_and_facts(tmp_path, "", "b = (bit<8>)((ser)b)[2+:4];")
    assert isinstance(cast, ast.Cast)
    assert isinstance(cast.operand, ast.Slice)
    assert facts.types[cast.operand] == types.Bits(4)
    assert facts.types[cast.operand.base] == types.Bits(8)


def test_slices_that_move(tmp_path: Path) -> None:
    (read, written), facts = values_and_facts(tmp_path, "", "b = w[b+:8]; w[b+:4] = 3;")
    assert isinstance(read, ast.WidthSlice)
    assert facts.types[read] == types.Bits(8)
    assert isinstance(written, ast.IntLiteral)
    assert facts.types[written] == types.Bits(4)


def test_table(tmp_path: Path) -> None:
    program = check(
        tmp_path,
        "#include <v1model.p4>\ncontrol c(inout bit<8> b) { action a(inout bit<8> x, bit<8> y) { x = y; }\n"
        'table t { key = { b: ternary @name("k"); } actions = { a(b); NoAction; } const default_action = a(b, 1);\n'
        "size = 64; entries = { const priority = 3: 5 &&& 7: a(b, 2); 6: NoAction(); } } apply { t.apply(); } }",
    )
    control = next(d for d in program.declarations if isinstance(d, ast.ControlDecl))
    table = control.locals[1]
    assert isinstance(table, ast.TableDecl)
    assert table.keys[0].match_kind == "ternary"
    assert table.keys[0].annotations[0].string == "k"
    assert [program.facts.actions[a].name for a in table.actions] == ["a", "NoAction"]
    assert [b is None for b in program.facts.bindings[table.actions[0]].bound] == [False, True]
    assert table.default_action is not None
    assert table.const_default_action
    assert table.entries is not None
    first, second = table.entries
    assert isinstance(first.keysets[0], ast.Mask)
    assert isinstance(first.priority, ast.IntLiteral)
    assert first.priority.value == 3
    assert (first.const, second.const) == (True, False)
    size = table.properties["size"].value
    assert isinstance(size, ast.IntLiteral)
    assert size.value == 64


def test_annotations(tmp_path: Path) -> None:
    program = check(
        tmp_path,
        '@name("x") @free(some :text: "quoted") @fields(1, N) @list[1, "two"] @pairs[a = 1 + 1] @bare\n'
        "@pragma old 3 four\nconst bit<8> c = 1;".replace("@name", "const int N = 4;\n@name", 1),
    )
    decl = program.declarations[1]
    assert isinstance(decl, ast.ConstDecl)
    by_name = {a.name: a for a in decl.annotations}
    assert by_name["name"].string == "x"
    assert by_name["free"].tokens == ["some", ":", "text", ":", '"quoted"']
    assert by_name["free"].args is None
    assert [a.value for a in by_name["fields"].args or [] if isinstance(a, ast.IntLiteral)] == [1, 4]
    assert by_name["list"].structured
    assert by_name["pairs"].pairs is not None
    value = by_name["pairs"].pairs["a"]
    assert isinstance(value, ast.IntLiteral)
    assert value.value == 2
    assert by_name["old"].tokens == ["3", "four"]


@pytest.mark.parametrize(("version", "port"), [("20180101", "bit<9>"), ("20200408", "bit<9>")])
def test_v1model_versions(tmp_path: Path, version: str, port: str) -> None:
    index = "<bit<8>>" if version == "20200408" else ""
    program = check(
        tmp_path,
        f"#include <v1model.p4>\ncontrol c() {{ counter{index}(16, CounterType.bytes) k; apply {{ k.count(3); }} }}",
        V1MODEL_VERSION=version,
    )
    record = next(d for d in program.declarations if getattr(d, "name", "") == "standard_metadata_t")
    assert isinstance(record, ast.StructDecl)
    struct = program.facts.types[record]
    assert isinstance(struct, types.Struct)
    assert str(struct.fields[0].type) == port
    (statement,) = body(program)
    assert isinstance(statement, ast.CallStatement)
    assert program.facts.bindings[statement.call].param_types == [types.Bits(8 if index else 32)]


def test_errors_in_order(tmp_path: Path) -> None:
    program = check(tmp_path, "#include <v1model.p4>\nerror { Mine }")
    assert [program.facts.values[m] for m in program.errors.values()] == list(range(8))
    assert list(program.errors)[-1] == "Mine"


def test_a_number_is_a_value_of_a_type_made_of_bits(tmp_path: Path) -> None:
    """Check that constants, arguments and entries convert, and operands do not, as in p4c."""
    program = check(
        tmp_path,
        "#include <core.p4>\ntype bit<12> vrf_t;\nconst vrf_t DEFAULT = 0;\n"
        "control c(inout vrf_t v, inout bit<8> b) {"
        " action set(vrf_t x) { v = x; }"
        " table t { key = { v : exact; } actions = { set; } const entries = { 7 : set(5); } }"
        " apply { v = 4097; if (b == 0) { v = DEFAULT; } set(3); t.apply(); } }",
    )
    (assigned, *_) = [s.value for s in body(program) if isinstance(s, ast.Assign)]
    assert isinstance(assigned, ast.IntLiteral)
    assert (str(program.facts.types[assigned]), assigned.value) == ("vrf_t", 1), "4097 does not fit into 12 bits"
    with pytest.raises(CompileError, match="vrf_t and int 3 cannot be compared"):
        check(
            tmp_path,
            "type bit<12> vrf_t;\ncontrol c(in vrf_t v, out bool b) { apply { b = v == 3; } }",
        )
