"""Domain of Python integers in the range of their type; bools are 0 and 1."""

from __future__ import annotations

import operator
from collections.abc import Callable

from p4switch.bits.domain import Domain, unsigned, width, wrap
from p4switch.compiler.types import Bits, Type

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Integers(Domain[int]):
    """Domain of Python integers. Division by zero raises ZeroDivisionError."""

    def constant(self, value: int, t: Type) -> int:
        return wrap(value, t)

    def negate(self, a: int, t: Type) -> int:
        return wrap(-a, t)

    def invert(self, a: int, t: Type) -> int:
        return wrap(~a, t)

    def arithmetic(self, op: str, a: int, b: int, t: Type) -> int:
        return wrap(_ARITHMETIC[op](a, b), t)

    def shift(self, op: str, a: int, amount: int, t: Type) -> int:
        if not isinstance(t, Bits):
            return a << amount if op == "<<" else a >> amount
        amount = min(amount, t.width)  # a longer shift has the same result: 0, or copies of the sign
        return wrap(a << amount if op == "<<" else a >> amount, t)

    def compare(self, op: str, a: int, b: int, t: Type) -> int:
        return int(_COMPARISONS[op](a, b))

    def both(self, a: int, b: int) -> int:
        return int(bool(a and b))

    def either(self, a: int, b: int) -> int:
        return int(bool(a or b))

    def negation(self, a: int) -> int:
        return int(not a)

    def choose(self, condition: int, yes: int, no: int) -> int:
        return yes if condition else no

    def extract(self, a: int, high: int, low: int) -> int:
        return a >> low & (1 << (high - low + 1)) - 1

    def join(self, a: int, of_a: Type, b: int, of_b: Type) -> int:
        return unsigned(a, of_a) << width(of_b) | unsigned(b, of_b)

    def resize(self, a: int, source: Type, target: Type) -> int:
        return wrap(a, target)

    def truth(self, a: int) -> int:
        return int(a != 0)

    def number(self, a: int, target: Type) -> int:
        return a


INTEGERS = Integers()
