"""`ParserCounter`: a signed 8-bit counter that a parser can branch on.

Like the sum of a checksum, it is a variable of the parser, and its methods become operations of P4-16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.values import EXPRS

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast

_WIDTH = 8
_BYTE = ir.Bits(_WIDTH)
_SIGN = _WIDTH - 1
_EXPONENT_BITS = 3  # width of the mask argument in TNA, where mask n stands for the n + 1 lowest bits


@EXTERNS.register("ParserCounter")
class ParserCounter(ExternType):
    in_parsers = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {
            "set": self._set,
            "increment": lambda call, extern, to: self._add("+", call, extern, to),
            "decrement": lambda call, extern, to: self._add("-", call, extern, to),
            "is_zero": self._is_zero,
            "is_negative": self._is_negative,
        }

    def _set(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        """Set the counter to a number, or to a field that is rotated right, masked and increased by a constant.

        The result is truncated to the counter's width.
        """
        field, *more = _numbers(call, to)
        low = fold.make("cast", _BYTE, field)
        if more:
            most, rotation, mask, added = (_constant(each, call, to) for each in more)
            wide = ir.Bits(max(_WIDTH, types.width_of(field.type) or 0))
            known = fold.make("<=", ir.BOOL, fold.make("cast", wide, field), fold.const(most, wide))
            to.emit(ir.Verify(known, to.error_value("StackOutOfBounds"), call.pos))
            if types.width_of(more[2].type) == _EXPONENT_BITS:
                mask = (2 << mask) - 1
            by = rotation % _WIDTH
            right = fold.make(">>", _BYTE, low, fold.const(by, _BYTE))
            left = fold.make("<<", _BYTE, low, fold.const(_WIDTH - by, _BYTE))
            masked = fold.make("&", _BYTE, fold.make("|", _BYTE, right, left), fold.const(mask, _BYTE))
            low = fold.make("+", _BYTE, masked, fold.const(added, _BYTE))
        to.emit(ir.Assign(_counter(extern, to), to.copies.saved(low), call.pos))

    def _add(self, op: str, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        (value,) = _numbers(call, to)
        counter = _counter(extern, to)
        to.emit(ir.Assign(counter, to.copies.saved(fold.make(op, _BYTE, counter, value)), call.pos))

    def _is_zero(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        return to.copies.snapshot(fold.make("==", ir.BOOL, _counter(extern, to), fold.const(0, _BYTE)))

    def _is_negative(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        sign = fold.slice_(_counter(extern, to), _SIGN, _SIGN)
        return to.copies.snapshot(fold.make("==", ir.BOOL, sign, fold.const(1, ir.Bits(1))))


def _counter(extern: ExternObject, to: Lowering) -> ir.FieldRef:
    """Return the variable that holds the counter."""
    name = f"{extern.path}.$counter"
    if name not in to.out.scalars:
        to.storage.allocate(_BYTE, name)
    return ir.FieldRef("scalars", name, _BYTE)


def _numbers(call: ast.Call, to: Lowering) -> list[ir.Expr]:
    """Return the arguments of a call. Raises CompileError for an argument that is not an unsigned number."""
    values = to.externs.call_arguments(call)
    numbers = [v for v in values if isinstance(v, EXPRS) and isinstance(types.strip_newtype(v.type), types.Bits)]
    if len(numbers) < len(values):
        raise to.error(call, "a parser counter counts with numbers alone")
    return numbers


def _constant(value: ir.Expr, call: ast.Call, to: Lowering) -> int:
    if not isinstance(value, ir.Const):
        raise to.error(call, "maximum, rotation, mask and addend of a parser counter have to be constants")
    return value.value
