"""`Checksum`: the Internet checksum, which parsers verify or begin and deparsers complete.

In a parser the sum is a variable of the parser, as in PSA. A parser may pass the sum on, so that the deparser can
update a checksum from the changed fields alone. A deparser computes the checksum over the fields of valid headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa.externs.checksum import add_to_sum, sum_of
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.hash import HashGet
from p4switch.architectures.tna.package import TnaSwitch
from p4switch.architectures.v1model.externs.hash import calculation
from p4switch.bits.checksums import INTERNET_CHECKSUM
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.values import EXPRS
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Machine, Statements, Value, ast

_WORD = ir.Bits(16)
_POSITION = ir.Bits(32)
_ONES = 0xFFFF
_AT = cexpr.node("at")  # the C variable with the number of bytes that the parser has consumed


@dataclass(slots=True, eq=False)
class Position(ir.ExternOperation):
    """`target` is set to the number of bytes that the parser has consumed so far, plus 1."""

    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "_Checksum_position"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        to.store(to.x.place(self.target), to.em.temp("uint64_t", _AT + 1))

    def run(self, machine: Machine) -> None:
        machine.assign(self.target, machine.number(machine.packet.position // 8 + 1, self.target.type))


@dataclass(slots=True, eq=False)
class SubtractTaken(ir.ExternOperation):
    """Subtraction from the sum `target` of the bytes that the parser consumed since `position`.

    Nothing is subtracted if `position` is 0.
    """

    target: ir.Place = field(metadata=ir.CHANGED)
    position: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "_Checksum_subtract_taken"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        em, place = to.em, to.x.place(self.target)
        since = em.temp("uint32_t", to.x.low(self.position, 32))
        with em.when(cexpr.both("&&", since, since - 1 < _AT)):
            left = em.temp("uint32_t", place.low(em, 16))
            bytes_of = ("front", "front_len", "frame", since - 1, _AT)
            to.store(place, em.temp("uint64_t", cexpr.call("p4_csum_without", "", left, *bytes_of)))

    def run(self, machine: Machine) -> None:
        since = machine.value(self.position).number
        if since:
            machine.assign(self.target, machine.sum_without(self.target, since - 1))


def _package(to: Lowering) -> TnaSwitch:
    assert isinstance(to.package, TnaSwitch)
    return to.package


@EXTERNS.register("Checksum")
class Checksum(ExternType):
    operations = (Position, SubtractTaken)
    in_parsers = True

    def begin(self, extern: ExternObject, to: Lowering) -> None:
        if to.site.parses:
            to.emit(ir.Assign(sum_of(extern, to), fold.const(0, _WORD), extern.node.pos))

    @property
    def methods(self) -> Mapping[str, Method]:
        return {
            "add": lambda call, extern, to: add_to_sum(call, extern, to, negated=False),
            "subtract": lambda call, extern, to: add_to_sum(call, extern, to, negated=True),
            "verify": self._verify,
            "get": self._get,
            "subtract_all_and_deposit": self._deposit,
            "update": self._update,
        }

    def _verify(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        """Return whether the checksum is wrong. As on the chip, the sum of correct data is 0 or all ones."""
        total = to.copies.saved(sum_of(extern, to))
        wrong = [fold.make("!=", ir.BOOL, total, fold.const(right, _WORD)) for right in (0, _ONES)]
        return to.copies.snapshot(fold.make("&&", ir.BOOL, *wrong))

    def _get(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        return to.copies.snapshot(sum_of(extern, to))

    def _deposit(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        """Subtract the bytes that the parser extracts after this call, at the end of the parser (`TnaSwitch.lower`)."""
        (place,) = to.externs.call_arguments(call)
        if not isinstance(place, ir.FieldRef):
            raise to.error(call, "the residual has to be deposited in a field")
        to.copies.assign(place, sum_of(extern, to), call.pos)
        name = f"{extern.path}.$position"
        if name not in to.out.scalars:
            to.storage.allocate(_POSITION, name)
        position = ir.FieldRef("scalars", name, _POSITION)
        to.emit(Position(position, call.pos))
        _package(to).at_end.append(SubtractTaken(place, position, call.pos))

    def _update(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        to.externs.only_in(call, "ingress_deparser", "egress_deparser")
        data, *flags = to.externs.call_arguments(call)
        hashing = calculation(INTERNET_CHECKSUM, data, call, to)
        checksum = to.externs.result(call, lambda place: HashGet(place, hashing, 0, call.pos))
        zeros_as_ones = flags[0] if flags else None
        if not isinstance(zeros_as_ones, EXPRS):
            return checksum
        assert isinstance(checksum, EXPRS)
        is_zero = fold.make("==", ir.BOOL, checksum, fold.const(0, _WORD))
        wanted = fold.make("&&", ir.BOOL, zeros_as_ones, is_zero)
        return to.copies.snapshot(fold.make("?:", _WORD, wanted, fold.const(_ONES, _WORD), checksum))
