"""`meter`: the colour of a packet by the rates of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.v1model import EXTERNS
from p4switch.engine import cexpr
from p4switch.ir.errors import ProgramError

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject, Lowering, Machine, Pipeline, Statements, ast


@dataclass(slots=True, eq=False)
class ExecuteMeter(ir.ExternOperation):
    meter: str = field(metadata=ir.named("meter_array"))
    index: ir.Expr = field(metadata=ir.READ)
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "execute_meter"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        number, meter = to.program.meter(self.meter)
        if meter.table:
            raise ProgramError(f"execute_meter on the direct meter {meter.name}")
        at = to.index("uint64_t", self.index)
        with to.within(at, meter.size):
            color = to.em.temp("uint64_t", to.program.metered(number, at), "color")
            to.touch("meter", meter.name, at, cexpr.cast("int64_t", color))
            to.store(to.x.place(self.target), color)

    def run(self, machine: Machine) -> None:
        meter = machine.meters[self.meter]
        index = machine.inside(self.index, meter.size, f"an index outside of '{meter.name}'")
        colour = machine.out.meters[meter.name, index] = machine.colour(("meter", meter.name, index), id(self))
        machine.assign(self.target, machine.number(colour))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.meter, access="count")


@EXTERNS.register("meter")
class Meter(ExternType):
    operations = (ExecuteMeter,)
    stateful = True
    p4info = "METER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute_meter": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index_value, result = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, index_value)
        to.externs.into(call, 1, result, lambda place: ExecuteMeter(extern.path, index, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        unit = to.externs.enum_argument(extern, "type")
        to.out.meters.append(ir.Meter(extern.path, to.externs.size_argument(extern), unit, span=extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.meters.add()
        builder.indexed(message, extern)
        message.spec.unit = builder.unit(message.spec, extern)


@EXTERNS.register("direct_meter")
class DirectMeter(ExternType):
    """Direct meter: the table writes the colour to a field when an entry is hit."""

    stateful = direct = True
    p4info = "DIRECT_METER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.copies.assign(to.externs.call_arguments(call)[0], to.externs.direct_meter_result(extern), call.pos)

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        table, unit = to.externs.table_of(extern), to.externs.enum_argument(extern, "type").lower()
        if table is not None:
            result = to.externs.direct_meter_result(extern)
            to.out.meters.append(ir.Meter(extern.path, table.size, unit, table.name, result, extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.direct_meters.add()
        builder.of_table(message, extern)
        message.spec.unit = builder.unit(message.spec, extern)
