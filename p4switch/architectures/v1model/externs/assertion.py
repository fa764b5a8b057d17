"""`assert` and `assume`: a condition that must hold for every packet, and one that is assumed to hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler.midend.values import EXPRS
from p4switch.engine import cexpr
from p4switch.engine.cexpr import String

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Pipeline, Prover, State, Statements, ast


class _Assertion(ir.ExternOperation, abstract=True):
    __slots__ = ()
    condition: ir.Expr

    def emit(self, to: Statements) -> None:
        text = String(to.source(self.span, "an assertion of the program"))
        with to.em.when(cexpr.call("P4_UNLIKELY", "int", cexpr.negated(to.x.bool(self.condition)))):
            to.em.call("p4_assert_failed", "sw", text)
            to.em.trace("LOG", "P4_NO_POINT", 1, 0, text, cexpr.size_of(text) - 1)

    def run(self, machine: Machine) -> None:
        condition = machine.value(self.condition)
        broken = machine.code.assertion(self.span)
        own = broken if condition.number else 0
        machine.flip(id(self), condition, own, own if condition.number else machine.code.all)
        if not condition.number:
            machine.fail(self.span if ir.Effect.ASSERT in self.effects else None)

    def prove(self, prover: Prover, state: State) -> None:
        prover.require(self.condition, state)

    def fit(self, pipeline: Pipeline) -> None:
        """Add nothing, because a chip does not check the condition."""


@dataclass(slots=True, eq=False)
class Assert(_Assertion):
    condition: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "assert"
    effects = frozenset({ir.Effect.ASSERT})


@dataclass(slots=True, eq=False)
class Assume(_Assertion):
    condition: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "assume"
    effects = frozenset({ir.Effect.ASSUME})


@EXTERNS.register("assert")
class AssertFunction(ExternFunction):
    operations = (Assert,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        condition = to.externs.call_arguments(call)[0]
        assert isinstance(condition, EXPRS)
        to.emit(Assert(condition, call.pos))


@EXTERNS.register("assume")
class AssumeFunction(ExternFunction):
    operations = (Assume,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        condition = to.externs.call_arguments(call)[0]
        assert isinstance(condition, EXPRS)
        to.emit(Assume(condition, call.pos))
