"""Colour-aware meters (RFC 2698), and colours in architectures that number them in their own way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from p4switch import ir
from p4switch.architectures.v1model.externs import counter
from p4switch.compiler.midend import fold
from p4switch.engine import cexpr
from p4switch.engine.cexpr import Rows

if TYPE_CHECKING:
    from p4switch.architectures.v1model.externs.meter import ExecuteMeter
    from p4switch.compiler import types
    from p4switch.tool_types import C, Machine, Pipeline, Statements

COLOUR: Final = ir.Bits(8)


@dataclass(slots=True, eq=False)
class ExecuteAware(ir.ExternOperation):
    """Execution of a meter that takes the packet's present colour into account.

    The meter counts the packet's bytes minus `adjust`. `before` is the colour of the packet before
    the meter: 0 is green, 1 yellow, anything else red. `results` are the program's numbers for
    green, yellow and red; `target` is set to the number of the colour after the meter.
    """

    meter: str = field(metadata=ir.named("meter_array"))
    index: ir.Expr = field(metadata=ir.READ)
    before: ir.Expr = field(metadata=ir.READ)
    adjust: ir.Expr = field(metadata=ir.READ)
    results: tuple[int, int, int] = field(metadata=ir.numbers(COLOUR, 3))
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "_Meter_execute_aware"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        number, array = to.program.meter(self.meter)
        at = to.index("uint64_t", self.index)
        with to.within(at, array.size):
            before = to.em.temp("uint32_t", to.x.low(self.before, 8), "before")
            size = counter.less(to.x.low(self.adjust, 32))
            counted = to.program.metered(number, at, size, cexpr.chosen(before > 1, 2, before, "uint32_t"))
            emit_result(to, array.name, at, counted, self.results, self.target)

    def run(self, machine: Machine) -> None:
        run_metered(self, machine, self.results, machine.pin(machine.value(self.before)))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.meter, access="count")


def emit_result(
    to: Statements, meter: str, index: C, counted: C, results: tuple[int, int, int], target: ir.Place
) -> None:
    """Write C that sets `target` to the number in `results` of the engine's colour `counted`."""
    colour = to.em.temp("uint64_t", Rows(results, "uint64_t")[counted], "color")
    to.touch("meter", meter, index, cexpr.cast("int64_t", colour))
    to.store(to.x.place(target), colour)


def run_metered(
    operation: ExecuteMeter | ExecuteAware, machine: Machine, results: tuple[int, int, int], before: int = 0
) -> None:
    """Execute a meter in the test generator, which chooses the colour from `results`.

    A packet that arrives with the colour `before` leaves with the same colour or a worse one.
    """
    array = machine.meters[operation.meter]
    index = machine.inside(operation.index, array.size, f"an index outside of '{array.name}'")
    colour = machine.out.meters[array.name, index] = machine.colour(("meter", array.name, index), id(operation))
    machine.assign(operation.target, machine.number(results[max(colour, min(before, len(results) - 1))]))


def result_of(counted: ir.Expr, results: tuple[int, int, int], t: types.Type) -> ir.Expr:
    """Return the number in `results`, with type `t`, of the colour that a direct meter has written."""
    green, yellow, red = (fold.const(each, t) for each in results)
    is_green, is_yellow = (fold.make("==", ir.BOOL, counted, fold.const(each, counted.type)) for each in (0, 1))
    return fold.make("?:", t, is_green, green, fold.make("?:", t, is_yellow, yellow, red))
