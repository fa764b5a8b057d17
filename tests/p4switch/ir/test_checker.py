"""The checker after each pass, on real programs and on IR with one mistake each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import p4src
from p4switch import ir
from p4switch.architectures.v1model.externs.counter import Count
from p4switch.compiler import ast, passes, types
from p4switch.compiler.frontend import parse_and_check
from p4switch.ir.checker import CheckError, check

HEADER = types.Header(ast.HeaderDecl(0, "h_t", [], []), (), [])

SOURCES = Path(p4src.__path__[0])
PARTS = {"head", "main", "pipelines"}  # of programs
PROGRAMS = [
    path
    for path in [*SOURCES.glob("*.p4"), *Path(__file__).parents[1].rglob("*.p4")]
    if path.parent.name != "errors" and path.stem not in PARTS
]
BYTE = ir.Bits(8)
A, B, WIDE = (ir.FieldRef("scalars", n, t) for n, t in (("a", BYTE), ("b", BYTE), ("wide", ir.Bits(16))))
FLAG = ir.FieldRef("scalars", "flag", ir.BOOL)


@pytest.mark.parametrize("path", sorted(PROGRAMS), ids=lambda path: path.stem)
def test_programs_are_right_after_each_pass(path: Path) -> None:
    program = parse_and_check(path, [SOURCES, path.parent])
    assert passes.inspect(program, passes.listed()[-1][0], check=True)


def program(*ops: ir.Operation, end: ir.Terminator | None = None) -> ir.Program:
    start = ir.Block(list(ops), end)
    scalars = {"a": BYTE, "b": BYTE, "wide": ir.Bits(16), "flag": ir.BOOL}
    return ir.Program(scalars=scalars, pipelines=[ir.Pipeline("ingress", start)])


def test_what_is_right_passes() -> None:
    total = ir.Op("+", (A, ir.Const(255, BYTE)), BYTE)
    check(program(ir.Assign(A, total), ir.Assign(WIDE, ir.Op("cast", (A,), ir.Bits(16)))))
    check(program(end=ir.Branch(ir.Op("<", (A, B), ir.BOOL), ir.Block(), ir.Block())))


def _of_action(op: ir.Operation) -> ir.Program:
    action = ir.Action("act", [("x", BYTE)], ir.Block([op]))
    table = ir.Table("t", actions=[action], default=ir.ActionCall(action, [1]))
    return program(end=ir.Apply(table, {}, ir.Block()))


def _call(*args: int) -> ir.Program:
    made = _of_action(ir.Assign(A, ir.Param(0, BYTE)))
    end = made.pipelines[0].start.end
    assert isinstance(end, ir.Apply)
    end.table.default = ir.ActionCall(end.table.actions[0], list(args))
    return made


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: program(ir.Assign(A, WIDE)), "a value of type bit<16> for one of type bit<8>"),
        (lambda: program(ir.Assign(A, ir.FieldRef("scalars", "c", BYTE))), "there is no field scalars.c"),
        (lambda: program(ir.Assign(A, ir.FieldRef("scalars", "wide", BYTE))), "is of type bit<16>, not bit<8>"),
        (lambda: program(ir.Assign(A, ir.Const(256, BYTE))), "256 is no value of type bit<8>"),
        (lambda: program(ir.Assign(A, ir.Op("+", (A, WIDE), BYTE))), "operands of types bit<8>, bit<16>"),
        (lambda: program(ir.Assign(A, ir.Op("+", (A, ir.Const(1, ir.INT)), BYTE))), "operands of types bit<8>, int"),
        (lambda: program(ir.Assign(WIDE, ir.Op("++", (A, WIDE), ir.Bits(16)))), "operands of types bit<8>, bit<16>"),
        (lambda: program(ir.SetValid(ir.HeaderRef(HEADER, "h"))), "there is no h"),
        (lambda: program(ir.Advance(A)), "outside of a parser"),
        (lambda: program(ir.Assign(A, ir.Lookahead(0, 8, BYTE))), "outside of a parser"),
        (lambda: program(Count("c", A)), "there is no c"),
        (lambda: program(ir.Assign(A, ir.Param(0, BYTE))), "there is no parameter 0"),
        (lambda: _of_action(ir.Assign(A, ir.Param(1, BYTE))), "action act: there is no parameter 1"),
        (lambda: program(end=ir.Branch(A, ir.Block(), ir.Block())), "expected a bool"),
        (lambda: _call(), "act takes 1 values, not 0"),
    ],
)
def test_what_is_wrong_does_not(make: Callable[[], ir.Program], message: str) -> None:
    with pytest.raises(CheckError, match=re.escape(message)):
        check(make())


def test_what_an_action_is_given_passes() -> None:
    check(_call(7))
