"""The operation of a colour-aware meter (RFC 2698), which several architectures have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.engine.statements import Statements
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine

COLOUR: Final = ir.Bits(8)


@dataclass(slots=True, eq=False)
class ExecuteAware(ir.ExternOperation):
    """A meter of the packet's bytes, less `adjust`, which knows the packet's colour.

    `before` is the colour with which the packet comes: 0 is green, 1 yellow, anything else red. `target` becomes
    that of `results` (green, yellow, red) which its colour has after the meter.
    """

    meter: str
    index: ir.Expr
    before: ir.Expr
    adjust: ir.Expr
    results: tuple[int, int, int]
    target: ir.Place
    span: int | None = None
    primitive = "_Meter_execute_aware"
    effects = frozenset({ir.Effect.STATE})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return self.index, self.before, self.adjust

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return (self.target,)

    @property
    def arguments(self) -> list[ir.Argument]:
        results = [ir.Const(each, COLOUR) for each in self.results]
        return [ir.Named("meter_array", self.meter), self.index, self.before, self.adjust, *results, self.target]

    @classmethod
    def read(cls, arguments: Arguments) -> ExecuteAware:
        meter, index, before, adjust = arguments.name(), arguments.value(), arguments.value(), arguments.value()
        results = arguments.number(), arguments.number(), arguments.number()
        return cls(meter, index, before, adjust, results, arguments.place(), arguments.span)

    def emit(self, to: Statements) -> None:
        number, array = to.program.meter(self.meter)
        at = to.index("uint64_t", self.index)
        with to.within(at, array.size):
            before = to.em.temp("uint32_t", to.x.low(self.before, 8), "before")
            size = f"p->ingress_len - (uint32_t)({to.x.low(self.adjust, 32).bare})"
            counted = to.program.metered(number, at, size, f"{before} > 1 ? 2 : {before}")
            results = ", ".join(map(str, self.results))
            colour = to.em.temp("uint64_t", f"(const uint64_t[]){{{results}}}[{counted}]", "color")
            to.touch("meter", "METER", array.name, at, f"(int64_t){colour}", "NULL, 0")
            to.store(to.x.place(self.target), colour)

    def run(self, machine: Machine) -> None:
        array = machine.meters[self.meter]
        index = machine.inside(self.index, array.size, f"an index outside of '{array.name}'")
        colour = machine.out.meters[array.name, index] = machine.colour(("meter", array.name, index), id(self))
        machine.assign(self.target, machine.number(self.results[colour]))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.meter, access="count")
