"""`truncate`: the packet is cut to a maximum length when it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Statements, ast


@dataclass(slots=True, eq=False)
class Truncate(ir.ExternOperation):
    """Truncation to `length` bytes."""

    length: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "truncate"
    effects = frozenset({ir.Effect.TRUNCATE})

    def emit(self, to: Statements) -> None:
        limit = to.em.temp("uint32_t", to.x.low(self.length, 32))
        so_far = cexpr.packet("truncate")
        to.em.set(so_far, cexpr.chosen(limit < so_far, limit, so_far, "uint32_t"))

    def run(self, machine: Machine) -> None:
        length, marks = machine.pin(machine.value(self.length)), machine.marks
        marks.truncate = length if marks.truncate is None else min(length, marks.truncate)


@EXTERNS.register("truncate")
class TruncateFunction(ExternFunction):
    operations = (Truncate,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "ingress", "egress")
        to.emit(Truncate(to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0]), call.pos))
