"""`Lpf` and `DirectLpf`: low-pass filters over numbers that packets supply, or over their rate.

A filter is a first-order low pass with separate time constants for rising and falling input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.filters import (
    MOST_BITS,
    cell_and_input,
    cells_of,
    declare_cells,
    declare_direct_cells,
    entry_and_input,
    now_ns,
)
from p4switch.bfrt.fields import data_field, value_type
from p4switch.engine import cexpr
from p4switch.engine.objects import values

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import ExternObject, Lowering, Machine, Pipeline, Statements, Value, ast

_INDEX, _TYPE, _GAIN, _DECAY, _SCALE = 65560, 65567, 65568, 65569, 65570  # ids of the fields in bf-rt.json


@dataclass(slots=True, eq=False)
class ExecuteLpf(ir.ExternOperation):
    """`target` is set to the filter's output for the input `value`. An index beyond the last cell has no effect."""

    filter: str = field(metadata=ir.named("extern"))
    index: ir.Expr = field(metadata=ir.READ)
    value: ir.Expr = field(metadata=ir.READ)
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "_Lpf_execute"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        array, at = to.program.object(self.filter), to.index("uint32_t", self.index)
        with to.within(at, array.size):
            cell, place = array.cells[at], to.x.place(self.target)
            value = to.em.temp("uint32_t", to.x.low(self.value, MOST_BITS), "value")
            filtered = to.em.temp("uint64_t", cexpr.call("P4_LPF", "uint64_t", cell, value, now_ns()), "filtered")
            to.tell(self, array.name, at, cell)
            most = cexpr.literal((1 << min(place.width, MOST_BITS)) - 1)
            to.store(place, cexpr.chosen(filtered < most, filtered, most, "uint64_t"))

    @staticmethod
    def told(data: bytes) -> str:
        return f"value {values(Lpf, data)['value'] / 2**32:.3f}"

    def run(self, machine: Machine) -> None:
        """Return the input unchanged.

        Cells have no time constants in a test, and a filter without time constants has no memory.
        """
        machine.inside(self.index, cells_of(machine, self.filter), f"an index outside of '{self.filter}'")
        machine.assign(self.target, machine.resized(self.value, self.target.type))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.filter, access="count")


@EXTERNS.register("Lpf")
class Lpf(ExternType):
    """Low-pass filter. A cell that is all zeros returns its input.

    If `rate` is 1, the filter computes a rate: the sum of the inputs per `decay_ps`, averaged.
    Otherwise it computes the average of the inputs. Results are shifted right by `scale`. `value` is
    in units of 2^-32.
    """

    operations = (ExecuteLpf,)
    stateful = True
    bfrt = 0x89
    cell = (("value", 64), ("since_ns", 64), ("gain_ps", 64), ("decay_ps", 64), ("rate", 8), ("scale", 8))

    @staticmethod
    def cells(attributes: Mapping[str, int]) -> int:
        return attributes["size"]

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        at, value = cell_and_input(call, to)
        return to.externs.result(call, lambda place: ExecuteLpf(extern.path, at, value, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        declare_cells(extern, "Lpf", to.externs.size_argument(extern), to)

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "Lpf", extern.number("size"))
        table.key(_INDEX, "$LPF_INDEX", value_type("uint32"))
        _publish_fields(table)


def _publish_fields(table: Table) -> None:
    """Add the fields of a filter to the data of a table."""
    kinds = value_type("string", choices=["RATE", "SAMPLE"])
    table.singleton(data_field(_TYPE, "$LPF_SPEC_TYPE", kinds), mandatory=True)
    for number, name in ((_GAIN, "GAIN_TIME_CONSTANT_NS"), (_DECAY, "DECAY_TIME_CONSTANT_NS")):
        table.singleton(data_field(number, f"$LPF_SPEC_{name}", value_type("float")), mandatory=True)
    table.singleton(data_field(_SCALE, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", value_type("uint32")), mandatory=True)


@EXTERNS.register("DirectLpf")
class DirectLpf(ExternType):
    """Low-pass filter with one cell for each entry of the table to which it is attached."""

    stateful = direct = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        entry, value = entry_and_input(extern, call, to)
        return to.externs.result(call, lambda place: ExecuteLpf(extern.path, entry, value, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        declare_direct_cells(extern, "Lpf", to)

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        _publish_fields(table)
