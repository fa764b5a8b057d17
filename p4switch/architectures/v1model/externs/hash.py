"""`hash`: a checksum of fields, brought into a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine


@dataclass(slots=True, eq=False)
class Hash(ir.ExternOperation):
    """`target` becomes `base` and the hash modulo `size`; `base` where `size` is 0."""

    target: ir.FieldRef
    base: ir.Expr
    calculation: ir.Calculation
    size: ir.Expr
    span: int | None = None
    primitive = "modify_field_with_hash_based_offset"
    effects = ir.NOTHING

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return *self.calculation.inputs, self.base, self.size

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return (self.target,)

    @property
    def arguments(self) -> list[ir.Argument]:
        return [self.target, self.base, ir.Named("calculation", self.calculation.name), self.size]

    def run(self, machine: Machine) -> None:
        hashed = machine.hashed(self.calculation, ("hash", self.span))
        modulus, low = machine.value(self.size).number, machine.value(self.base).number
        machine.assign(self.target, machine.number(low + (hashed % modulus if modulus else 0), self.target.type))

    def fit(self, pipeline: Pipeline) -> None:
        constant = self.size.value if isinstance(self.size, ir.Const) else None
        label = f"hash {self.calculation.algorithm}"
        pipeline.step(self, self.primitive, kind="hash", label=label, constant=constant, ahead=True)
