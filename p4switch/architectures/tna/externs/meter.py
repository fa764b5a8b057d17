"""`Meter` and `DirectMeter`: the colour of a packet by the rates of a cell or of a table entry (RFC 2698)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.colour_aware import COLOUR, ExecuteAware, result_of
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.counter import adjustment
from p4switch.architectures.v1model.externs import meter
from p4switch.bfrt.fields import Id, Table, data_field, value_type
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.values import EXPRS, Ignored

if TYPE_CHECKING:
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Builder, ExternObject, Lowering, Value, ast

_GREEN, _YELLOW, _RED = 0, 1, 3  # MeterColor_t
_COLOURS = (_GREEN, _YELLOW, _RED)  # indexed by the colour number of the engine's meters
_RATES = {
    "BYTES": (Id.METER_SPEC_CIR_KBPS, Id.METER_SPEC_PIR_KBPS, Id.METER_SPEC_CBS_KBITS, Id.METER_SPEC_PBS_KBITS),
    "PACKETS": (Id.METER_SPEC_CIR_PPS, Id.METER_SPEC_PIR_PPS, Id.METER_SPEC_CBS_PKTS, Id.METER_SPEC_PBS_PKTS),
}
_NO_LIMIT = (1 << 64) - 1


def _publish_rates(extern: ExternObject, table: Table) -> None:
    """Add the rates and bursts to the data of a table."""
    unit = extern.args["type"]
    assert isinstance(unit, ir.Const)
    for each in _RATES[unit.member]:
        table.singleton(data_field(each, f"${each.name}", value_type("uint64", _NO_LIMIT)))
    table.attributes.append("MeterByteCountAdjust")


def _colour_before(call: ast.Call, at: int, to: Lowering) -> tuple[ir.Expr, int]:
    """Return the colour passed as argument `at` of a call, by default green, and the position of the next argument."""
    binding = to.facts.bindings[call]
    if at < len(binding.params) and binding.params[at].name == "color":
        value = to.externs.call_arguments(call)[at]
        assert isinstance(value, EXPRS)
        return to.tables.simple(value), at + 1
    return ir.Const(_GREEN, COLOUR), at


def _results(extern: ExternObject) -> tuple[int, int, int]:
    """Return a meter's values for green, yellow and red."""
    given = [extern.args.get(name, Ignored()) for name in ("green", "yellow", "red")]
    green, yellow, red = (
        each.value if isinstance(each, ir.Const) else colour for each, colour in zip(given, _COLOURS, strict=True)
    )
    return green, yellow, red


@EXTERNS.register("Meter")
class Meter(ExternType):
    operations = (ExecuteAware,)
    stateful = True
    p4info = "METER"
    bfrt = 0x85
    bfrt_of_blocks = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        index = to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0])
        before, at = _colour_before(call, 1, to)
        adjust, results = adjustment(call, at, to), _results(extern)
        return to.externs.result(
            call, lambda place: ExecuteAware(extern.path, index, before, adjust, results, place, call.pos)
        )

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        unit = to.externs.enum_argument(extern, "type").lower()
        to.out.meters.append(ir.Meter(extern.path, to.externs.size_argument(extern), unit, span=extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.meters.add()
        builder.indexed(message, extern, type_argument=0)
        message.spec.unit = builder.unit(message.spec, extern)

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "Meter", extern.number("size"), annotated=False)
        table.key(Id.METER_INDEX, "$METER_INDEX", value_type("uint32"))
        _publish_rates(extern, table)


@EXTERNS.register("DirectMeter")
class DirectMeter(meter.DirectMeter):
    """Direct meter. The program calls `execute`, which is translated like v1model's `read` of a direct meter."""

    bfrt = 0x86

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        before, at = _colour_before(call, 0, to)
        adjust = adjustment(call, at, to)
        if not (isinstance(before, ir.Const) and before.value == _GREEN):
            raise to.error(call, "a colour-aware direct meter is not supported on this target")
        if not (isinstance(adjust, ir.Const) and adjust.value == 0):
            raise to.error(call, "a direct meter that adjusts the byte count is not supported on this target")
        colour = result_of(to.externs.direct_meter_result(extern), _results(extern), COLOUR)
        return fold.make("cast", types.strip_newtype(to.type_of(call)), colour)

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        _publish_rates(extern, table)
