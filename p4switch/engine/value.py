"""Integers of any width in C.

BMv2 computes without limit of width and cuts when it stores. Here every expression has a range, known when C is
generated, and gets the narrowest representation that holds it: 64 or 128 bits, signed or not, or an array of limbs.
Where only the low bits of a result matter (they are stored, masked or cast) they are all that is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code
from p4switch.engine.emit import Emitter
from p4switch.ir.errors import ProgramError

if TYPE_CHECKING:
    from p4switch.engine.program import Field

MAX_BITS = 16384


def bits(low: int, high: int) -> int:
    """Return the number of bits that the range needs in two's complement."""
    return max(low.bit_length() if low >= 0 else (~low).bit_length(), high.bit_length() if high >= 0 else 0) + 1


@dataclass(frozen=True)
class Rep:
    """A C representation; `limbs` is 0 for native types."""

    c_type: str
    signed: bool
    limbs: int = 0

    @property
    def width(self) -> int:
        return 64 * self.limbs if self.limbs else (64 if "64" in self.c_type else 128)


U64 = Rep("uint64_t", False)
I64 = Rep("int64_t", True)
U128 = Rep("p4_u128", False)
I128 = Rep("p4_i128", True)


def rep_of(low: int, high: int) -> Rep:
    """Return the narrowest representation of a range."""
    if low >= 0:
        if high < 1 << 64:
            return U64
        if high < 1 << 128:
            return U128
    elif low >= -(1 << 63) and high < 1 << 63:
        return I64
    elif low >= -(1 << 127) and high < 1 << 127:
        return I128
    width = bits(low, high)
    if width > MAX_BITS:
        raise ProgramError(f"an expression needs {width} bits; at most {MAX_BITS} are computed with")
    return Rep("uint64_t", True, (width + 63) // 64)


@dataclass(frozen=True)
class Value:
    """A C expression without side effects, and the range of what it may be."""

    code: C
    low: int
    high: int

    @property
    def rep(self) -> Rep:
        return rep_of(self.low, self.high)

    @property
    def constant(self) -> int | None:
        return self.low if self.low == self.high else None


def literal(value: int, rep: Rep) -> C:
    """Return a native constant."""
    if rep.width == 64:
        return cexpr.literal(value, rep.c_type)
    high, low = value >> 64 & (1 << 64) - 1, value & (1 << 64) - 1
    return C(f"({rep.c_type})((p4_u128)0x{high:x}ull << 64 | 0x{low:x}ull)", rep.c_type, value=value)


def constant(em: Emitter, value: int) -> Value:
    """Return a constant of any size."""
    rep = rep_of(value, value)
    if not rep.limbs:
        return Value(literal(value, rep), value, value)
    name = em.name()
    limbs = ", ".join(f"0x{value >> 64 * i & (1 << 64) - 1:x}ull" for i in range(rep.limbs))
    em.declare(f"static const uint64_t {name}[{rep.limbs}] = {{{limbs}}}")
    return Value(C(name), value, value)


def convert(em: Emitter, value: Value, rep: Rep) -> C:
    """Return the value in a representation that holds its range."""
    if value.constant is not None and not rep.limbs:
        return literal(value.constant, rep)
    have = value.rep
    if have == rep:
        return value.code
    if not rep.limbs:
        assert not have.limbs
        return cexpr.cast(rep.c_type, value.code)
    name = em.limbs(rep.limbs)
    if have.limbs:
        em.do(f"p4_big_resize({name}, {rep.limbs}, {value.code}, {have.limbs})")
    else:
        em.do(f"p4_big_{'i128' if have.signed else 'u128'}({name}, {rep.limbs}, {value.code.bare})")
    return C(name)


def low_rep(width: int) -> Rep:
    """Return the representation for the low `width` bits of a value; higher bits are arbitrary."""
    return U64 if width <= 64 else U128 if width <= 128 else Rep("uint64_t", False, (width + 63) // 64)


def low_bits(em: Emitter, value: Value, width: int) -> C:
    """Return the low bits of a value in the representation `low_rep(width)`."""
    rep = low_rep(width)
    have = value.rep
    if rep.limbs:
        return convert(em, value, Rep("uint64_t", True, rep.limbs))
    if have.limbs:
        return C(f"{value.code}[0]" if rep == U64 else f"p4_big_low({value.code})", rep.c_type)
    if value.constant is not None:
        return literal(value.constant & (1 << rep.width) - 1, rep)
    return cexpr.cast(rep.c_type, value.code)


def cut(code: C, width: int) -> C:
    """Return a native low part with the rest cleared."""
    rep = low_rep(width)
    return code if width == rep.width else cexpr.binary("&", code, literal((1 << width) - 1, rep))


def from_low(em: Emitter, code: C, width: int, signed: bool) -> Value:
    """Return the value of which `code` has the low bits."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    rep = low_rep(width)
    if rep.limbs:
        want = rep_of(low, high).limbs
        name = em.limbs(want)
        source = str(code)
        if want > rep.limbs:
            source = em.limbs(want)
            em.do(f"p4_big_resize({source}, {want}, {code}, {rep.limbs})")
        em.do(f"p4_big_cut({name}, {source}, {want}, {width}, {int(signed)})")
        return Value(C(name), low, high)
    if not signed:
        return Value(cut(code, width), low, high)
    signed_type = "int64_t" if rep.width == 64 else "p4_i128"
    return Value(cexpr.call(f"p4_sext{rep.width}", signed_type, code, width), low, high)


# --- places ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Something of a fixed width that can be read, and mostly written."""

    width: int
    signed: bool

    def low(self, em: Emitter, width: int) -> C:
        """Return the low `width` bits in the representation `low_rep(width)`.

        A narrower value is sign-extended or zero-extended.
        """
        return low_bits(em, self.load(em), width)

    def load(self, em: Emitter) -> Value:
        raise NotImplementedError

    def store(self, em: Emitter, code: Code) -> None:
        """Store the low bits that `code` has in `low_rep(self.width)`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Native(Place):
    """Metadata, action data, registers: a native integer, or limbs beyond 64 bits."""

    code: str

    @property
    def memory(self) -> str:
        """Address and size."""
        if self.width <= 64:
            return f"&{self.code}, sizeof {self.code}"
        return f"{self.code}, {(self.width + 63) // 64 * 8}"

    def load(self, em: Emitter) -> Value:
        if self.width <= 64:
            if self.signed:
                return from_low(em, C(self.code, "uint64_t"), self.width, True)
            return Value(cexpr.widened(self.code), 0, (1 << self.width) - 1)
        if self.width <= 128:
            return from_low(em, C(f"p4_big_low({self.code})", "p4_u128"), self.width, self.signed)
        return from_low(em, C(self.code), self.width, self.signed)

    def store(self, em: Emitter, code: Code) -> None:
        value = cexpr.node(code)
        if self.width <= 64:
            em.do(f"{self.code} = {(value if self.width in (8, 16, 32, 64) else cut(value, self.width)).bare}")
        elif self.width <= 128:
            em.do(f"p4_big_u128({self.code}, 2, {cut(value, self.width).bare})")
        else:
            em.do(f"p4_big_cut({self.code}, {value}, {(self.width + 63) // 64}, {self.width}, 0)")


def c_storage(width: int) -> str:
    """Return a cast to the native type that `Native` values of up to 64 bits have."""
    return f"(uint{next(w for w in (8, 16, 32, 64) if width <= w)}_t)"


def storage_bytes(width: int) -> int:
    """Return how many bytes a `Native` of that width takes."""
    return next((w // 8 for w in (8, 16, 32, 64) if width <= w), (width + 63) // 64 * 8)


def c_member(width: int, name: str) -> str:
    """Return the declaration of a struct's member for a `Native`."""
    if width <= 64:
        return f"{c_storage(width)[1:-1]} {name};"
    return f"uint64_t {name}[{(width + 63) // 64}];"


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
    """A field of a packet header, in network order at `base` + its bit offset."""

    base: str
    field: Field

    @property
    def _bytes(self) -> tuple[int, int, int]:
        """First byte, how many, and the bits below the field in the last."""
        first, last = self.field.bit // 8, (self.field.bit + self.width - 1) // 8
        return first, last - first + 1, (last + 1) * 8 - self.field.bit - self.width

    def load(self, em: Emitter) -> Value:
        first, span, below = self._bytes
        if self.width <= 64:
            if span <= 8:
                size = next(s for s in (1, 2, 4, 8) if span <= s)
                shift = 8 * (size - span) + below
                loaded = C(f"p4_ld{8 * size}({self._at(first)})", "uint64_t")
                code, exact = cexpr.shifted(">>", loaded, shift), self.field.bit % 8 == 0
            else:
                code, exact = C(f"p4_get_bits({self.base}, {self.field.bit}, {self.width})", "uint64_t"), True
            if self.signed or not exact:
                return from_low(em, code, self.width, self.signed)
            return Value(code, 0, (1 << self.width) - 1)
        if self.width == 128 and self.field.bit % 8 == 0:
            return from_low(em, C(f"p4_ld128({self._at(first)})", "p4_u128"), 128, self.signed)
        count = (self.width + 63) // 64
        name = em.limbs(count)
        em.do(f"p4_big_get({name}, {count}, {self.base}, {self.field.bit}, {self.width})")
        low_bits = C(f"p4_big_low({name})", "p4_u128") if count == 2 else C(name)
        return from_low(em, low_bits, self.width, self.signed)

    def _at(self, byte: int) -> str:
        """Return the address of a byte of the header."""
        return f"{self.base} + {byte}" if byte else self.base

    def store(self, em: Emitter, code: Code) -> None:
        first, span, below = self._bytes
        aligned = self.field.bit % 8 == 0 and below == 0
        value = cexpr.node(code)
        if self.width > 64:
            if self.width == 128 and aligned:
                em.do(f"p4_st128({self._at(first)}, {value.bare})")
                return
            if self.width <= 128:
                name = em.limbs(2)
                em.do(f"p4_big_u128({name}, 2, {value.bare})")
                value = C(name)
            em.do(f"p4_big_put({self.base}, {self.field.bit}, {self.width}, {value})")
        elif aligned:
            if span not in (1, 2, 4, 8):
                value = C(em.temp("uint64_t", value.bare), "uint64_t")
            rest = span
            for size in (8, 4, 2, 1):
                while rest >= size:
                    rest -= size
                    part = cexpr.shifted(">>", value, 8 * rest).bare
                    em.do(f"p4_st{8 * size}({self._at(first + span - rest - size)}, {part})")
        elif span <= 8:
            size = next(s for s in (1, 2, 4, 8) if span <= s)
            shift = 8 * (size - span) + below
            mask = (1 << self.width) - 1 << shift
            keep = ~mask & (1 << 8 * size) - 1
            at = self._at(first)
            kept = cexpr.binary("&", C(f"p4_ld{8 * size}({at})", "uint64_t"), cexpr.literal(keep))
            put = cexpr.binary("&", cexpr.shifted("<<", value, shift), cexpr.literal(mask))
            em.do(f"p4_st{8 * size}({at}, {cexpr.binary('|', kept, put).bare})")
        else:
            em.do(f"p4_put_bits({self.base}, {self.field.bit}, {self.width}, {value.bare})")
