"""`counter`: packets and bytes, in an array of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine


@dataclass(slots=True, eq=False)
class Count(ir.ExternOperation):
    counter: str
    index: ir.Expr
    span: int | None = None
    primitive = "count"
    effects = frozenset({ir.Effect.STATE})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return (self.index,)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return ()

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("counter_array", self.counter), self.index]

    def run(self, machine: Machine) -> None:
        machine.pin(machine.value(self.index))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.counter, access="count")
