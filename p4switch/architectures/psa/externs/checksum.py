"""`InternetChecksum` and `Checksum`: sums of a packet's fields, kept from call to call.

The sum is a variable of the block that contains the object, and the methods become additions of P4-16. The sum
therefore starts at zero whenever the block is applied, as PSA requires. Every target supports such additions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.compiler import types
from p4switch.compiler.midend import fold

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast

_WORD = ir.Bits(16)
_WIDE = ir.Bits(32)
_WORDS_TOGETHER = 16  # number of words added in one expression


class OnesComplementSum(ExternType):
    """Sum of 16-bit words in one's complement; the checksum is its complement (RFC 1071)."""

    in_parsers = True

    def begin(self, extern: ExternObject, to: Lowering) -> None:
        to.emit(ir.Assign(sum_of(extern, to), fold.const(0, _WORD), extern.node.pos))

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"clear": self._clear, "get": self._get}

    def _clear(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.emit(ir.Assign(sum_of(extern, to), fold.const(0, _WORD), call.pos))

    def _get(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        complement = fold.make("~", _WORD, sum_of(extern, to))
        t = types.strip_newtype(to.type_of(call))
        return to.copies.snapshot(fold.make("cast", t, complement))


@EXTERNS.register("InternetChecksum")
class InternetChecksum(OnesComplementSum):
    @property
    def methods(self) -> Mapping[str, Method]:
        more: dict[str, Method] = {
            "add": lambda call, extern, to: add_to_sum(call, extern, to, negated=False),
            "subtract": lambda call, extern, to: add_to_sum(call, extern, to, negated=True),
            "get_state": self._get_state,
            "set_state": self._set_state,
        }
        return {**super().methods, **more}

    def _get_state(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        return to.copies.snapshot(sum_of(extern, to))

    def _set_state(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.copies.assign(sum_of(extern, to), to.externs.call_arguments(call)[0], call.pos)


@EXTERNS.register("Checksum")
class Checksum(OnesComplementSum):
    """Checksum with an algorithm whose state is a sum."""

    def begin(self, extern: ExternObject, to: Lowering) -> None:
        algorithm = to.externs.enum_argument(extern, "hash")
        if algorithm != "ONES_COMPLEMENT16":
            raise to.error(extern.node, f"a Checksum with {algorithm} is not supported: expected ONES_COMPLEMENT16")
        super().begin(extern, to)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {**super().methods, "update": lambda call, extern, to: add_to_sum(call, extern, to, negated=False)}


def sum_of(extern: ExternObject, to: Lowering) -> ir.FieldRef:
    """Return the variable that holds the sum of an object."""
    name = f"{extern.path}.$sum"
    if name not in to.out.scalars:
        to.storage.allocate(_WORD, name)
    return ir.FieldRef("scalars", name, _WORD)


def add_to_sum(call: ast.Call, extern: ExternObject, to: Lowering, negated: bool) -> None:
    """Add the fields passed to a call to the sum of an object, or subtract them."""
    fields = to.externs.fields_of(to.externs.call_arguments(call)[0], call)
    widths = [types.width_of(field.type) for field in fields]
    if None in widths or any(isinstance(field.type, types.Varbit) for field in fields):
        raise to.error(call, "only fields of fixed width can be added to a checksum on this target")
    if sum(width or 0 for width in widths) % 16:
        raise to.error(call, f"the data has {sum(width or 0 for width in widths)} bits: expected a multiple of 16")
    place, total = sum_of(extern, to), fold.make("cast", _WIDE, sum_of(extern, to))
    for count, word in enumerate(_words([to.tables.simple(field) for field in fields]), start=1):
        added = fold.make("~", _WORD, word) if negated else word
        total = fold.make("+", _WIDE, total, fold.make("cast", _WIDE, added))
        if count % _WORDS_TOGETHER == 0:
            total = to.copies.saved(total)
    for _ in range(2):
        total = to.copies.saved(total)
        low = fold.make("&", _WIDE, total, fold.const(0xFFFF, _WIDE))
        total = fold.make("+", _WIDE, low, fold.make(">>", _WIDE, total, fold.const(16, ir.Bits(8))))
    to.emit(ir.Assign(place, fold.make("cast", _WORD, to.copies.saved(total)), call.pos))


def _words(fields: list[ir.Expr]) -> Iterator[ir.Expr]:
    """Yield the concatenated fields as words of 16 bits."""
    word: ir.Expr | None = None
    filled = 0
    for field in fields:
        left = types.width_of(field.type) or 0
        number = field if isinstance(field.type, types.Bits) else fold.make("cast", ir.Bits(left), field)
        while left:
            take = min(left, 16 - filled)
            piece = fold.slice_(number, left - 1, left - take)
            filled += take
            word = piece if word is None else fold.make("++", ir.Bits(filled), word, piece)
            left -= take
            if filled == 16:
                yield word
                word, filled = None, 0
