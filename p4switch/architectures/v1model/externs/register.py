"""`register`: an array of cells that keep what was written to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine


def _cell(machine: Machine, name: str, index: ir.Expr) -> tuple[str, int]:
    size = machine.registers[name].size
    return name, machine.inside(index, size, f"an index outside of register '{name}'")


@dataclass(slots=True, eq=False)
class RegisterRead(ir.ExternOperation):
    target: ir.FieldRef
    register: str
    index: ir.Expr
    span: int | None = None
    primitive = "register_read"
    effects = frozenset({ir.Effect.STATE})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return (self.index,)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return (self.target,)

    @property
    def arguments(self) -> list[ir.Argument]:
        return [self.target, ir.Named("register_array", self.register), self.index]

    def run(self, machine: Machine) -> None:
        cell = _cell(machine, self.register, self.index)
        if cell not in machine.cells:
            found = machine.input(f"register {cell[0]} {cell[1]}", machine.registers[self.register].width)
            machine.cells[cell] = found
            machine.out.registers[cell] = found.number
        machine.assign(self.target, machine.cells[cell])

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.access(self, self.register, "read", self.index)


@dataclass(slots=True, eq=False)
class RegisterWrite(ir.ExternOperation):
    register: str
    index: ir.Expr
    value: ir.Expr
    span: int | None = None
    primitive = "register_write"
    effects = frozenset({ir.Effect.STATE})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return self.index, self.value

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return ()

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("register_array", self.register), self.index, self.value]

    def run(self, machine: Machine) -> None:
        cell = _cell(machine, self.register, self.index)
        machine.cells[cell] = machine.resized(self.value, ir.Bits(machine.registers[self.register].width))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.access(self, self.register, "write", self.index, self.value)
