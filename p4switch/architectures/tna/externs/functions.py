"""Stateless functions: `max`, `min`, `funnel_shift_right`, `sizeInBits`, `sizeInBytes`, `port_metadata_unpack`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.core.externs.packet_in import look_ahead
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.package import TnaSwitch
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.values import EXPRS

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Value, ast


def _numbers(call: ast.Call, to: Lowering) -> list[ir.Expr]:
    values = to.externs.call_arguments(call)
    numbers = [v for v in values if isinstance(v, EXPRS)]
    if len(numbers) != len(values):
        raise to.error(call, "a number is expected here")
    return numbers


def _first_if(op: str, call: ast.Call, to: Lowering) -> Value:
    """Return the first argument if the comparison `op` of the two is true, else the second."""
    t = types.strip_newtype(to.type_of(call))
    first, second = (to.copies.saved(fold.make("cast", t, each)) for each in _numbers(call, to))
    return to.copies.snapshot(fold.make("?:", t, fold.make(op, ir.BOOL, first, second), first, second))


@EXTERNS.register("max")
class Max(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        return _first_if(">", call, to)


@EXTERNS.register("min")
class Min(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        return _first_if("<", call, to)


@EXTERNS.register("funnel_shift_right")
class FunnelShiftRight(ExternFunction):
    """The lower half of two concatenated numbers, shifted right by a constant."""

    def lower(self, call: ast.Call, to: Lowering) -> None:
        place, *given = to.externs.call_arguments(call)
        t = to.resolve(to.facts.bindings[call].param_types[1])
        high, low, amount = (value for value in given if isinstance(value, EXPRS))
        if not isinstance(amount, ir.Const):
            raise to.error(call, "the shift of funnel_shift_right has to be a compile-time constant")
        width = types.width_of(t) or 1
        if not 0 <= amount.value <= width:
            raise to.error(call, f"the shift of funnel_shift_right has to be 0 to {width}, not {amount.value}")
        both = fold.make("++", ir.Bits(2 * width), high, low)
        to.copies.assign(place, fold.slice_(both, amount.value + width - 1, amount.value), call.pos)


def _bits(call: ast.Call, to: Lowering) -> int:
    t = to.resolve(to.facts.bindings[call].param_types[0])
    width = types.width_of(t)
    if width is None:
        raise to.error(call, f"the size of type {t} is not known when the program is compiled")
    return width


@EXTERNS.register("sizeInBits")
class SizeInBits(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        return fold.const(_bits(call, to), ir.Bits(32))


@EXTERNS.register("sizeInBytes")
class SizeInBytes(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        return fold.const(-(-_bits(call, to) // 8), ir.Bits(32))


@EXTERNS.register("port_metadata_unpack")
class PortMetadataUnpack(ExternFunction):
    """Reading of the port metadata, which is next in the packet.

    The result is its first bits. The parser skips all of the port metadata.
    """

    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        assert isinstance(to.package, TnaSwitch)
        value = look_ahead(call, to)
        to.emit(ir.Advance(fold.const(to.package.port_metadata_bits, ir.Bits(32)), call.pos))
        return value
