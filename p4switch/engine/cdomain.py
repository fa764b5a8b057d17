"""Domain of `p4switch.bits.operators` whose values are exact integers in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4switch.bits.domain import Domain, width, wrap
from p4switch.compiler.types import INT, Bits, Bool, Type
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C
from p4switch.engine.emit import Emitter
from p4switch.engine.value import (
    MAX_BITS,
    U64,
    Chosen,
    Computed,
    Condition,
    Masked,
    Modular,
    Rep,
    ShiftedLeft,
    Value,
    common_rep,
    constant,
    convert,
    flag,
    named,
    rep_of,
    represented,
    wrapped,
)

_BEYOND = 1 << MAX_BITS  # bound of the ranges of values that are too large for any representation
_MAX_SHIFT = 1 << 32  # longer shifts have the same result


def _reach(low: int, high: int) -> tuple[int, int]:
    """Return a range, or the range from -`_BEYOND` to `_BEYOND` if it is too large for any representation."""
    return (low, high) if low > -_BEYOND and high < _BEYOND else (-_BEYOND, _BEYOND)


def _product(a: Value, b: Value) -> tuple[int, int]:
    products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(products), max(products)


def _bitwise(a: Value, b: Value) -> tuple[int, int]:
    bits = max((~v if v < 0 else v).bit_length() for v in (a.low, a.high, b.low, b.high))
    return 0 if a.low >= 0 and b.low >= 0 else -(1 << bits), (1 << bits) - 1


_RANGES: Mapping[str, Callable[[Value, Value], tuple[int, int]]] = {
    "+": lambda a, b: (a.low + b.low, a.high + b.high),
    "-": lambda a, b: (a.low - b.high, a.high - b.low),
    "*": _product,
    "|": _bitwise,
    "^": _bitwise,
}
"""Range of the exact result of each operator."""


class CValues(Domain[Value]):
    """Domain of the integers that a C function computes. Its statements are added to `em`.

    The result of a division by 0 is 0. A negative operand of a division counts as 0.
    """

    def __init__(self, em: Emitter) -> None:
        self.em = em

    def constant(self, value: int, t: Type) -> Value:
        return constant(wrap(value, t))

    def negate(self, a: Value, t: Type) -> Value:
        return self.arithmetic("-", constant(0), a, t)

    def invert(self, a: Value, t: Type) -> Value:
        return self.resize(Modular(~a.high, ~a.low, "~", (a,)), INT, t)

    def arithmetic(self, op: str, a: Value, b: Value, t: Type) -> Value:
        if op in "/%":
            return self._divided(op, a, b)
        if op == "&":
            return _masked(a, b)
        return self.resize(Modular(*_reach(*_RANGES[op](a, b)), op, (a, b)), INT, t)

    def _divided(self, op: str, a: Value, b: Value) -> Value:
        em = self.em
        a, b = (self.clamp(v, 0, max(v.high, 0), INT) for v in (a, b))
        low, high = 0, a.high if op == "/" else max(0, min(a.high, b.high - 1))
        rep = common_rep(a, b)
        x, y = convert(em, a, rep), convert(em, b, rep)
        if rep.limbs:
            quotient, remainder = em.array(rep.limbs), em.array(rep.limbs)
            em.call("p4_big_divide", quotient, remainder, x, y, rep.limbs)
            code = quotient if op == "/" else remainder
        elif b.constant:
            code = cexpr.binary(op, x, y)
        else:
            divisor = em.temp(rep.c_type, y)
            code = cexpr.chosen(divisor, cexpr.binary(op, x, divisor), 0, rep.c_type)
        return self._computed(low, high, code, rep)

    def shift(self, op: str, a: Value, amount: Value, t: Type) -> Value:
        amount = self.clamp(amount, 0, _MAX_SHIFT, INT)
        by = cexpr.cast(U64.c_type, amount.exact(self.em)) if amount.constant is None else amount.constant
        if op == ">>":
            return self._shifted_right(a, by)
        most = min(amount.high, MAX_BITS)
        low, high = _reach(min(a.low, a.low << most), max(a.high, a.high << most))
        return self.resize(ShiftedLeft(low, high, a, by), INT, t)

    def _shifted_right(self, a: Value, by: int | C) -> Value:
        rep, code = a.rep, a.exact(self.em)
        if isinstance(by, int):
            low, high = a.low >> by, a.high >> by
        else:
            low, high = min(a.low, 0), max(a.high, -1)
        if rep.limbs:
            moved = self.em.wide(rep.limbs, "p4_big_sar", code, rep.limbs, by)
        elif isinstance(by, int):
            moved = cexpr.shifted(">>", code, min(by, rep.width - 1))  # longer shifts also give copies of the sign
        else:
            moved = cexpr.call(f"p4_s{'a' if rep.signed else 'h'}r{rep.width}", rep.c_type, code, by)
        return self._computed(low, high, moved, rep)

    def _computed(self, low: int, high: int, code: C, rep: Rep) -> Value:
        """Return a value from `low` to `high`. The representation of its code may have a larger range."""
        return Computed(low, high, represented(self.em, code, rep, rep_of(low, high)))

    def compare(self, op: str, a: Value, b: Value, t: Type) -> Value:
        if isinstance(t, Bool):
            return flag(cexpr.compared(op, *(cexpr.negated(v.condition(self.em)) for v in (a, b))))
        rep = common_rep(a, b)
        x, y = convert(self.em, a, rep), convert(self.em, b, rep)
        if rep.limbs:
            x, y = cexpr.call("p4_big_cmp", "int", x, y, rep.limbs), cexpr.literal(0, "int")
        return flag(cexpr.compared(op, x, y))

    def clamp(self, a: Value, low: int, high: int, t: Type) -> Value:
        if a.low >= low and a.high <= high:
            return a
        result = a = named(self.em, a)
        least, most = constant(low), constant(high)
        if a.high > high:
            above = self.compare(">", a, most, t).condition(self.em)
            result = Chosen(min(a.low, high), high, above, most, a)
        if a.low < low:
            below = self.compare("<", a, least, t).condition(self.em)
            result = Chosen(low, max(result.high, low), below, least, result)
        return result

    def both(self, a: Value, b: Value) -> Value:
        return flag(cexpr.both("&&", a.condition(self.em), b.condition(self.em)))

    def either(self, a: Value, b: Value) -> Value:
        return flag(cexpr.both("||", a.condition(self.em), b.condition(self.em)))

    def negation(self, a: Value) -> Value:
        return flag(cexpr.negated(a.condition(self.em)))

    def choose(self, condition: Value, yes: Value, no: Value) -> Value:
        test = condition.condition(self.em)
        if isinstance(yes, Condition) or isinstance(no, Condition):
            return flag(cexpr.chosen(test, yes.condition(self.em), no.condition(self.em), "int"))
        return Chosen(min(yes.low, no.low), max(yes.high, no.high), test, yes, no)

    def extract(self, a: Value, high: int, low: int) -> Value:
        return wrapped(self._shifted_right(a, low), Bits(high - low + 1)) if low else wrapped(a, Bits(high + 1))

    def join(self, a: Value, of_a: Type, b: Value, of_b: Type) -> Value:
        high, low = wrapped(a, Bits(width(of_a))), wrapped(b, Bits(width(of_b)))
        return self.arithmetic("|", self.shift("<<", high, constant(width(of_b)), INT), low, INT)

    def resize(self, a: Value, source: Type, target: Type) -> Value:
        return wrapped(a, target) if isinstance(target, Bits) else a

    def truth(self, a: Value) -> Value:
        return flag(a.condition(self.em))

    def number(self, a: Value, target: Type) -> Value:
        return a if a.constant is not None else Computed(a.low, a.high, a.exact(self.em))


def _masked(a: Value, b: Value) -> Value:
    """Return `a & b`."""
    for mask, value in ((b.constant, a), (a.constant, b)):
        if mask is not None and mask > 0 and mask & mask + 1:
            return Masked(0, mask, value)
        if mask is not None and mask >= 0:
            return wrapped(value, Bits(mask.bit_length()))
    limit = [v.high for v in (a, b) if v.low >= 0]
    low, high = (0, min(limit)) if limit else _reach(*_bitwise(a, b))
    return Modular(low, high, "&", (a, b))
