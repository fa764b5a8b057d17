"""Exact integers in C, and the places where they are stored.

The range of a value is known when C is generated. The value gets the narrowest representation that can hold this
range: 64 or 128 bits, signed or not, or an array of limbs (`wide.h`). Code is generated on demand, either for the exact
value, or only for its low bits if it is stored, masked or cast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from p4switch.bits.domain import limits
from p4switch.compiler.types import Bits
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code, Name
from p4switch.engine.cnodes import Declare
from p4switch.engine.emit import Emitter
from p4switch.ir.errors import ProgramError

if TYPE_CHECKING:
    from p4switch.engine.program import Field

MAX_BITS = 16384
_BIG = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "~": "not"}


@dataclass(frozen=True)
class Rep:
    """Representation of integers in C. `limbs` is 0 for native types."""

    c_type: str
    signed: bool
    limbs: int = 0

    @property
    def width(self) -> int:
        return 64 * self.limbs if self.limbs else (64 if "64" in self.c_type else 128)

    @cached_property
    def limits(self) -> tuple[int, int]:
        return limits(Bits(self.width, self.signed))


U64 = Rep("uint64_t", False)
I64 = Rep("int64_t", True)
U128 = Rep("p4_u128", False)
I128 = Rep("p4_i128", True)


def _limbs(width: int) -> Rep:
    return Rep("uint64_t", True, (width + 63) // 64)


def rep_of(low: int, high: int) -> Rep:
    """Return the narrowest representation of a range."""
    for rep in (U64, U128, I64, I128):
        if rep.limits[0] <= low and high <= rep.limits[1]:
            return rep
    width = 1 + max((~v if v < 0 else v).bit_length() for v in (low, high))
    if width > MAX_BITS:
        raise ProgramError(f"an expression needs over {MAX_BITS} bits; expected shifts and products cut to a width")
    return _limbs(width)


def common_rep(*values: Value) -> Rep:
    """Return the narrowest representation that holds each of the values."""
    return rep_of(min(value.low for value in values), max(value.high for value in values))


def low_rep(width: int) -> Rep:
    """Return the representation for the low `width` bits of a value; higher bits are arbitrary."""
    return U64 if width <= 64 else U128 if width <= 128 else _limbs(width)


# --- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value(ABC):
    """Integer from `low` to `high`, computed without side effects."""

    low: int
    high: int

    @property
    def rep(self) -> Rep:
        return rep_of(self.low, self.high)

    @property
    def constant(self) -> int | None:
        return self.low if self.low == self.high else None

    @abstractmethod
    def exact(self, em: Emitter) -> C:
        """Return the value in the representation of its range."""

    def lowest(self, em: Emitter, width: int) -> C:
        """Return the low bits in the representation `low_rep(width)`."""
        return convert(em, self, low_rep(width))

    def condition(self, em: Emitter) -> C:
        """Return whether the value is not 0."""
        if self.constant is not None:
            return cexpr.literal(int(self.constant != 0), "int")
        code, rep = self.exact(em), self.rep
        if rep.limbs:
            return cexpr.call("p4_big_nonzero", "int", code, rep.limbs)
        return cexpr.compared("!=", code, cexpr.literal(0, rep.c_type))


@dataclass(frozen=True)
class Constant(Value):
    def exact(self, em: Emitter) -> C:
        return convert(em, self, self.rep)


@dataclass(frozen=True)
class Computed(Value):
    """Value of a C expression in the representation of its range."""

    code: C

    def exact(self, em: Emitter) -> C:
        return self.code


@dataclass(frozen=True)
class Condition(Value):
    """Bool, as a C expression that is 0 or 1."""

    code: C

    def exact(self, em: Emitter) -> C:
        return cexpr.cast(U64.c_type, self.code)

    def condition(self, em: Emitter) -> C:
        return self.code


@dataclass(frozen=True)
class Modular(Value):
    """Result of an operator whose low bits depend only on the low bits of its operands: + - * & | ^ or ~."""

    op: str
    operands: tuple[Value, ...]

    def exact(self, em: Emitter) -> C:
        rep = common_rep(self, *self.operands)
        return represented(em, _operate(em, self.op, rep, *(convert(em, v, rep) for v in self.operands)), rep, self.rep)

    def lowest(self, em: Emitter, width: int) -> C:
        return _operate(em, self.op, low_rep(width), *(v.lowest(em, width) for v in self.operands))


@dataclass(frozen=True)
class ShiftedLeft(Value):
    value: Value
    amount: int | C

    def exact(self, em: Emitter) -> C:
        return self._shift(em, convert(em, self.value, self.rep), self.rep)

    def lowest(self, em: Emitter, width: int) -> C:
        return self._shift(em, self.value.lowest(em, width), low_rep(width))

    def _shift(self, em: Emitter, code: C, rep: Rep) -> C:
        if rep.limbs:
            return em.wide(rep.limbs, "p4_big_shl", code, rep.limbs, self.amount)
        of_bits = low_rep(rep.width).c_type
        unsigned = cexpr.cast(of_bits, code)
        if not isinstance(self.amount, int):
            moved = cexpr.call(f"p4_shl{rep.width}", of_bits, unsigned, self.amount)
        elif self.amount < rep.width:
            moved = cexpr.shifted("<<", unsigned, self.amount)
        else:
            moved = cexpr.literal(0, of_bits)
        return cexpr.cast(rep.c_type, moved)


@dataclass(frozen=True)
class Masked(Value):
    """Another value with a mask, which is `high`."""

    value: Value

    def exact(self, em: Emitter) -> C:
        width = self.rep.width if self.rep.limbs else self.high.bit_length()
        return self._masked(em, self.value.lowest(em, width), self.rep)

    def lowest(self, em: Emitter, width: int) -> C:
        ones = (1 << width) - 1
        if self.high < ones:
            return super().lowest(em, width)
        code = self.value.lowest(em, width)
        return code if self.high & ones == ones else self._masked(em, code, low_rep(width))

    def _masked(self, em: Emitter, code: C, rep: Rep) -> C:
        return _operate(em, "&", rep, code, convert(em, constant(self.high), rep))


@dataclass(frozen=True)
class SignExtended(Value):
    """Low bits of another value in two's complement."""

    value: Value

    def exact(self, em: Emitter) -> C:
        rep, width = self.rep, self.high.bit_length() + 1
        if rep.limbs:
            return em.wide(rep.limbs, "p4_big_cut", self.value.lowest(em, rep.width), rep.limbs, width, 1)
        return cexpr.call(f"p4_sext{rep.width}", rep.c_type, self.value.lowest(em, width), width)

    def lowest(self, em: Emitter, width: int) -> C:
        return self.value.lowest(em, width) if width <= self.high.bit_length() + 1 else super().lowest(em, width)


@dataclass(frozen=True)
class Chosen(Value):
    test: C
    yes: Value
    no: Value

    def exact(self, em: Emitter) -> C:
        rep = common_rep(self, self.yes, self.no)
        code = cexpr.chosen(self.test, convert(em, self.yes, rep), convert(em, self.no, rep), rep.c_type)
        return represented(em, code, rep, self.rep)

    def lowest(self, em: Emitter, width: int) -> C:
        yes, no = self.yes.lowest(em, width), self.no.lowest(em, width)
        return cexpr.chosen(self.test, yes, no, low_rep(width).c_type)


def constant(number: int) -> Constant:
    return Constant(number, number)


def flag(code: Code) -> Condition:
    """Return a bool."""
    return Condition(0, 1, cexpr.node(code, "int"))


def wrapped(value: Value, t: Bits) -> Value:
    """Return `value` modulo 2**width as a value of `t`. A value in the range of the type is returned unchanged."""
    low, high = limits(t)
    if low <= value.low and value.high <= high:
        return value
    return SignExtended(low, high, value) if t.signed else Masked(low, high, value)


def of_bits(code: C, width: int, *, signed: bool, alone: bool = True) -> Value:
    """Return the value of the low `width` bits of `code`, which is in `low_rep(width)`.

    With `alone`, the higher bits of `code` are 0.
    """
    low, high = low_rep(width).limits
    if alone and high >> width - 1:
        low, high = 0, (1 << width) - 1
    return wrapped(Computed(low, high, code), Bits(width, signed))


def named(em: Emitter, value: Value) -> Value:
    """Return an equal value that can be used several times at the cost of one computation."""
    if value.constant is not None:
        return value
    code, rep = value.exact(em), value.rep
    if not rep.limbs:
        code = em.temp(rep.c_type, code)
    elif not isinstance(code, Name):
        code = em.temp("uint64_t *", code)
    return Computed(value.low, value.high, code)


def convert(em: Emitter, value: Value, rep: Rep) -> C:
    """Return the value in another representation, or its low bits if that representation is narrower."""
    if value.constant is not None:
        return em.limbs(rep.limbs, value.constant) if rep.limbs else cexpr.literal(value.constant, rep.c_type)
    return represented(em, value.exact(em), value.rep, rep)


def represented(em: Emitter, code: C, rep: Rep, wanted: Rep) -> C:
    """Return code of one representation in another one, or its low bits if that one is narrower."""
    if rep == wanted:
        return code
    if wanted.limbs and rep.limbs:
        return em.wide(wanted.limbs, "p4_big_resize", wanted.limbs, code, rep.limbs)
    if wanted.limbs:
        return em.wide(wanted.limbs, "p4_big_i128" if rep.signed else "p4_big_u128", wanted.limbs, code)
    if rep.limbs:
        code = code.limb(0) if wanted.width == 64 else cexpr.call("p4_big_low", U128.c_type, code)
    return cexpr.cast(wanted.c_type, code)


def _operate(em: Emitter, op: str, rep: Rep, *operands: C) -> C:
    """Return the low bits of an operation on operands of one representation."""
    if rep.limbs:
        return em.wide(rep.limbs, f"p4_big_{_BIG[op]}", *operands, rep.limbs)
    return cexpr.unary(op, *operands) if len(operands) == 1 else cexpr.binary(op, *operands)


# --- places ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Storage of a fixed width: a header field, a metadata field, action data or a register cell."""

    width: int
    signed: bool

    def low(self, em: Emitter, width: int) -> C:
        """Return the low `width` bits in the representation `low_rep(width)`.

        A narrower value is sign-extended or zero-extended.
        """
        return self.load(em).lowest(em, width)

    def load(self, em: Emitter) -> Value:
        raise NotImplementedError

    def bits(self, em: Emitter) -> Value:
        """Return the bits as an unsigned number."""
        return wrapped(self.load(em), Bits(self.width))

    def store(self, em: Emitter, code: Code) -> None:
        """Store the low bits of `code`, which is in `low_rep(self.width)`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Native(Place):
    """Metadata field, action data or register cell: a native integer, or limbs if it has more than 64 bits."""

    code: C

    @property
    def memory(self) -> tuple[C, C]:
        """Address and size."""
        return self.code.address if self.width <= 64 else self.code, cexpr.size_of(self.code)

    def load(self, em: Emitter) -> Value:
        if self.width <= 64:
            code = cexpr.widened(self.code)
        else:
            code = cexpr.call("p4_big_low", "p4_u128", self.code) if self.width <= 128 else self.code
        return of_bits(code, self.width, signed=self.signed)

    def store(self, em: Emitter, code: Code) -> None:
        value = cexpr.node(code)
        if self.width <= 64:
            whole = self.width in (8, 16, 32, 64)
            em.set(self.code, value if whole else cexpr.low_part(value, self.width))
        elif self.width <= 128:
            em.call("p4_big_u128", self.code, 2, cexpr.low_part(value, self.width))
        else:
            em.call("p4_big_cut", self.code, value, (self.width + 63) // 64, self.width, 0)


def storage_bytes(width: int) -> int:
    """Return how many bytes a `Native` of that width takes."""
    return next((w // 8 for w in (8, 16, 32, 64) if width <= w), (width + 63) // 64 * 8)


def c_member(width: int, name: str) -> Declare:
    """Return the declaration of a struct's member for a `Native`."""
    if width <= 64:
        return Declare(f"uint{8 * storage_bytes(width)}_t", name)
    return Declare("uint64_t", name, size=(width + 63) // 64)


def struct_bytes(widths: Sequence[int]) -> int:
    """Return the size of a struct of `Native` members of these widths."""
    size, align = 0, 1
    for width in widths:
        member = storage_bytes(width)
        unit = min(member, 8)
        size = -(-size // unit) * unit + member
        align = max(align, unit)
    return -(-size // align) * align


@dataclass(frozen=True)
class InHeader(Place):
    """Field of a packet header, which is in network order at `base` plus the field's bit offset."""

    base: C
    field: Field

    @property
    def _bytes(self) -> tuple[int, int, int]:
        """The field's first byte, its number of bytes, and the number of bits after the field in the last byte."""
        first, last = self.field.bit // 8, (self.field.bit + self.width - 1) // 8
        return first, last - first + 1, (last + 1) * 8 - self.field.bit - self.width

    def load(self, em: Emitter) -> Value:
        first, span, below = self._bytes
        aligned = self.field.bit % 8 == 0
        if span <= 8:
            size = next(s for s in (1, 2, 4, 8) if span <= s)
            loaded = cexpr.call(f"p4_ld{8 * size}", "uint64_t", self.base + first)
            code = cexpr.shifted(">>", loaded, 8 * (size - span) + below)
            return of_bits(code, self.width, signed=self.signed, alone=aligned)
        if self.width <= 64:
            code = cexpr.call("p4_get_bits", "uint64_t", self.base, self.field.bit, self.width)
        elif self.width == 128 and aligned:
            code = cexpr.call("p4_ld128", "p4_u128", self.base + first)
        else:
            count = (self.width + 63) // 64
            code = em.wide(count, "p4_big_get", count, self.base, self.field.bit, self.width)
            code = cexpr.call("p4_big_low", "p4_u128", code) if count == 2 else code
        return of_bits(code, self.width, signed=self.signed)

    def store(self, em: Emitter, code: Code) -> None:
        first, span, below = self._bytes
        aligned = self.field.bit % 8 == 0 and below == 0
        value = cexpr.node(code)
        if self.width > 64:
            if self.width == 128 and aligned:
                em.call("p4_st128", self.base + first, value)
                return
            if self.width <= 128:
                value = em.wide(2, "p4_big_u128", 2, value)
            em.call("p4_big_put", self.base, self.field.bit, self.width, value)
        elif aligned:
            if span not in (1, 2, 4, 8):
                value = em.temp("uint64_t", value)
            rest = span
            for size in (8, 4, 2, 1):
                while rest >= size:
                    rest -= size
                    part = cexpr.shifted(">>", value, 8 * rest)
                    em.call(f"p4_st{8 * size}", self.base + (first + span - rest - size), part)
        elif span <= 8:
            size = next(s for s in (1, 2, 4, 8) if span <= s)
            shift = 8 * (size - span) + below
            mask = (1 << self.width) - 1 << shift
            keep = ~mask & (1 << 8 * size) - 1
            at = self.base + first
            kept = cexpr.binary("&", cexpr.call(f"p4_ld{8 * size}", "uint64_t", at), cexpr.literal(keep))
            put = cexpr.binary("&", cexpr.shifted("<<", value, shift), cexpr.literal(mask))
            em.call(f"p4_st{8 * size}", at, cexpr.binary("|", kept, put))
        else:
            em.call("p4_put_bits", self.base, self.field.bit, self.width, value)
