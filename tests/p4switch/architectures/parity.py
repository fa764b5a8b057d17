"""Extern function outside of p4cc: `parity` returns whether a number has an odd number of ones."""

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
class Parity(ir.ExternOperation):
    target: ir.Place = field(metadata=ir.WRITTEN)
    value: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "parity"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        value = cexpr.low_part(to.x.low(self.value, 16), 16)
        ones = cexpr.cast("uint64_t", cexpr.call("__builtin_popcountll", "int", value))
        to.store(to.x.place(self.target), cexpr.low_part(ones, 1))

    def run(self, machine: Machine) -> None:
        number = machine.pin(machine.value(self.value))
        machine.assign(self.target, machine.number(number.bit_count() & 1))


@EXTERNS.register("parity")
class ParityFunction(ExternFunction):
    operations = (Parity,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        result, value = to.externs.call_arguments(call)
        number = to.externs.scalar_argument(call, 1, value)
        to.externs.into(call, 0, result, lambda place: Parity(place, number, call.pos))
