"""`random`: a random number between two bounds, both included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.architectures.v1model.externs.register import RegisterRead
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Pipeline, Prover, State, Statements, ast


@dataclass(slots=True, eq=False)
class Random(ir.ExternOperation):
    """Random number. v1model does not define the result for signed numbers or for bounds in the wrong order."""

    target: ir.Place = field(metadata=ir.WRITTEN)
    low: ir.Expr = field(metadata=ir.READ)
    high: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "modify_field_rng_uniform"
    effects = ir.NOTHING
    draws = True

    def stored(self, register: str) -> RegisterRead:
        return RegisterRead(self.target, register, ir.Const(0, ir.Bits(32)), self.span)

    def emit(self, to: Statements) -> None:
        place = to.x.place(self.target)
        high = to.em.temp("uint64_t", to.x.low(self.high, 64), "high")
        low = to.x.low(self.low, 64)
        drawn = cexpr.call("p4_random", "uint64_t", "sw", low, high)
        with to.em.block() if low.value == 0 else to.em.when(cexpr.compared("<=", low, high)):
            to.store(place, drawn)

    def run(self, machine: Machine) -> None:
        machine.assign(self.target, machine.drawn(self.target.type, self.low, self.high, self.span))

    def prove(self, prover: Prover, state: State) -> None:
        prover.assign(self.target, prover.drawn(self.target.type, self.low, self.high, state), state)

    def fit(self, pipeline: Pipeline) -> None:
        constant = None
        if isinstance(self.low, ir.Const) and isinstance(self.high, ir.Const):
            constant = self.high.value - self.low.value + 1
        pipeline.step(self, self.primitive, kind="random", constant=constant)


@EXTERNS.register("random")
class RandomFunction(ExternFunction):
    operations = (Random,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        result, low, high = to.externs.call_arguments(call)
        least, most = to.externs.scalar_argument(call, 1, low), to.externs.scalar_argument(call, 2, high)
        to.externs.into(call, 0, result, lambda place: Random(place, least, most, call.pos))
