"""Extern type outside of p4cc: each cell of a `Tally` has a sum of numbers and the number of summands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.v1model import EXTERNS
from p4switch.engine import cexpr
from p4switch.engine.objects import values

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Machine, Statements, ast


@dataclass(slots=True, eq=False)
class Add(ir.ExternOperation):
    """Addition of a number. Beyond the last cell it has no effect, and `target` keeps its value."""

    tally: str = field(metadata=ir.named("extern"))
    index: ir.Expr = field(metadata=ir.READ)
    value: ir.Expr = field(metadata=ir.READ)
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "tally_add"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        tally, at = to.program.object(self.tally), to.index("uint32_t", self.index)
        with to.within(at, tally.size):
            cell = tally.cells[at]
            added = cexpr.binary("&", to.x.low(self.value, 16), cexpr.literal(0xFFFF))
            to.em.set(cell.dot("sum"), added, "+=")
            to.em.set(cell.dot("times"), 1, "+=")
            to.tell(self, tally.name, at, cell)
            to.store(to.x.place(self.target), cexpr.widened(cell.dot("sum")))

    @staticmethod
    def told(data: bytes) -> str:
        cell = values(Tally, data)
        return f"{cell['sum']} of {cell['times']}"

    def run(self, machine: Machine) -> None:
        (size,) = (extern.attributes["size"] for extern in machine.program.externs if extern.name == self.tally)
        cell = self.tally, machine.pin(machine.value(self.index))
        if isinstance(size, ir.Const) and cell[1] >= size.value:
            return
        before = machine.cells.get(cell, machine.number(0))
        after = machine.number(before.number + machine.pin(machine.value(self.value)) & 0xFFFFFFFF)
        machine.cells[cell] = after
        machine.assign(self.target, after)


@EXTERNS.register("Tally")
class Tally(ExternType):
    stateful = True
    operations = (Add,)
    cell = (("sum", 32), ("times", 64))

    @staticmethod
    def cells(attributes: Mapping[str, int]) -> int:
        return attributes["size"]

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"add": self._add}

    def _add(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index, value, result = to.externs.call_arguments(call)
        at, added = to.externs.scalar_argument(call, 0, index), to.externs.scalar_argument(call, 1, value)
        to.externs.into(call, 2, result, lambda place: Add(extern.path, at, added, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        size = {"size": ir.Const(to.externs.size_argument(extern), ir.ENUM_TYPE)}
        to.out.externs.append(ir.ExternInstance(extern.path, "Tally", size, extern.node.pos))
