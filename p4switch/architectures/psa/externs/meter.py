"""`Meter` and `DirectMeter`: the colour of a packet, by the rates of a cell or of a table entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.colour_aware import COLOUR, ExecuteAware, emit_result, result_of, run_metered
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs import meter
from p4switch.compiler.midend import fold

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject, Lowering, Machine, Statements, Value, ast

_RATES = 2
_RED, _GREEN, _YELLOW = range(3)  # PSA_MeterColor_t
_COLOURS = (_GREEN, _YELLOW, _RED)  # indexed by the colour number of BMv2's meters


@dataclass(slots=True, eq=False)
class Execute(meter.ExecuteMeter):
    primitive = "_Meter_execute"

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("extern", self.meter), self.index, self.target]

    def emit(self, to: Statements) -> None:
        number, array = to.program.meter(self.meter)
        at = to.index("uint64_t", self.index)
        with to.within(at, array.size):
            emit_result(to, array.name, at, to.program.metered(number, at), _COLOURS, self.target)

    def run(self, machine: Machine) -> None:
        run_metered(self, machine, _COLOURS)


def _counted(colour: ir.Expr) -> ir.Expr:
    """Return the meters' colour number for a value of PSA_MeterColor_t."""
    yellow, green = (fold.make("==", ir.BOOL, colour, fold.const(each, colour.type)) for each in (_YELLOW, _GREEN))
    not_green = fold.make("?:", COLOUR, yellow, fold.const(1, COLOUR), fold.const(2, COLOUR))
    return fold.make("?:", COLOUR, green, fold.const(0, COLOUR), not_green)


def _is_blind(call: ast.Call, at: int, to: Lowering) -> bool:
    """Return whether the packet is known to be green before the meter."""
    if len(to.facts.bindings[call].bound) <= at:
        return True
    colour = to.externs.call_arguments(call)[at]
    return isinstance(colour, ir.Const) and colour.value == _GREEN


@EXTERNS.register("Meter")
class Meter(ExternType):
    operations = (Execute, ExecuteAware)
    stateful = True
    p4info = "METER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        values = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, values[0])
        if _is_blind(call, 1, to):
            return to.externs.result(call, lambda place: Execute(extern.path, index, place, call.pos))
        before, all_bytes = _counted(to.externs.scalar_argument(call, 1, values[1])), ir.Const(0, ir.Bits(32))
        return to.externs.result(
            call, lambda place: ExecuteAware(extern.path, index, before, all_bytes, _COLOURS, place, call.pos)
        )

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        size, unit = to.externs.size_argument(extern, "n_meters"), to.externs.enum_argument(extern, "type").lower()
        to.out.meters.append(ir.Meter(extern.path, size, unit, span=extern.node.pos))
        number = ir.Bits(32)
        attributes: dict[str, ir.Const | str] = {
            "is_direct": ir.Const(0, number),
            "n_meters": ir.Const(size, number),
            "rate_count": ir.Const(_RATES, number),
            "type": unit,
        }
        to.out.externs.append(ir.ExternInstance(extern.path, "Meter", attributes, extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.meters.add()
        builder.indexed(message, extern, size_argument="n_meters")
        message.spec.unit = builder.unit(message.spec, extern)


@EXTERNS.register("DirectMeter")
class DirectMeter(meter.DirectMeter):
    """Direct meter. The program calls `execute`, which is translated like v1model's `read` of a direct meter."""

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        if not _is_blind(call, 0, to):
            raise to.error(call, "a colour-aware direct meter is not supported on this target")
        return result_of(to.externs.direct_meter_result(extern), _COLOURS, ir.ENUM_TYPE)
