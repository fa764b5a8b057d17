"""`meter`: the colour of a packet by the rates of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine


@dataclass(slots=True, eq=False)
class ExecuteMeter(ir.ExternOperation):
    meter: str
    index: ir.Expr
    target: ir.FieldRef
    span: int | None = None
    primitive = "execute_meter"
    effects = frozenset({ir.Effect.STATE})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return (self.index,)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return (self.target,)

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("meter_array", self.meter), self.index, self.target]

    def run(self, machine: Machine) -> None:
        meter = machine.meters[self.meter]
        index = machine.inside(self.index, meter.size, f"an index outside of '{meter.name}'")
        colour = machine.out.meters[meter.name, index] = machine.colour(("meter", meter.name, index), id(self))
        machine.assign(self.target, machine.number(colour))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.meter, access="count")
