"""Base of the domains, and the ranges of types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from p4switch.compiler.types import Bits, Bool, Type, Varbit, width_of

Value = TypeVar("Value")


def width(t: Type) -> int:
    """Return the maximum width in bits of a value of type `t`; 1 for types without width."""
    return t.max_width if isinstance(t, Varbit) else width_of(t) or 1


def is_signed(t: Type) -> bool:
    return isinstance(t, Bits) and t.signed


def limits(t: Bits) -> tuple[int, int]:
    """Return the smallest and the largest value of `t`."""
    if t.signed:
        return -(1 << t.width >> 1), (1 << t.width >> 1) - 1
    return 0, (1 << t.width) - 1


def fits(value: int, t: Bits) -> bool:
    """Return whether `t` can represent `value`."""
    low, high = limits(t)
    return low <= value <= high


def wrap(value: int, t: Type) -> int:
    """Return `value` modulo 2**width as a value of `t`. A bool is 0 or 1, and an `int` is unchanged."""
    if isinstance(t, Bool):
        return int(value != 0)
    if not isinstance(t, Bits):
        return value
    value &= (1 << t.width) - 1
    return value - (1 << t.width) if t.signed and t.width and value >> (t.width - 1) else value


def unsigned(value: int, t: Type) -> int:
    """Return the bits of `value` as an unsigned number; signed types are in two's complement."""
    bits = width_of(t)
    return value if bits is None else value & (1 << bits) - 1


class Domain(ABC, Generic[Value]):
    """Operations on values of type `Bits`, `Bool` and, in some domains, `int`.

    Results are in the range of their type.
    """

    @abstractmethod
    def constant(self, value: int, t: Type) -> Value: ...

    @abstractmethod
    def negate(self, a: Value, t: Type) -> Value: ...

    @abstractmethod
    def invert(self, a: Value, t: Type) -> Value: ...

    @abstractmethod
    def arithmetic(self, op: str, a: Value, b: Value, t: Type) -> Value:
        """Return the result of +, -, *, /, %, &, | or ^, modulo the width of `t`."""

    @abstractmethod
    def shift(self, op: str, a: Value, amount: Value, t: Type) -> Value:
        """Return `a << amount` or `a >> amount`. `amount` is unsigned and may have another width than `a`."""

    @abstractmethod
    def compare(self, op: str, a: Value, b: Value, t: Type) -> Value:
        """Return whether `a op b` for operands of type `t`: ==, !=, <, <=, > or >=."""

    @abstractmethod
    def both(self, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def either(self, a: Value, b: Value) -> Value: ...

    @abstractmethod
    def negation(self, a: Value) -> Value: ...

    @abstractmethod
    def choose(self, condition: Value, yes: Value, no: Value) -> Value: ...

    def clamp(self, a: Value, low: int, high: int, t: Type) -> Value:
        """Return `a` limited to the range from `low` to `high`; `t` can represent all three numbers."""
        least, most = self.constant(low, t), self.constant(high, t)
        below_high = self.choose(self.compare(">", a, most, t), most, a)
        return self.choose(self.compare("<", a, least, t), least, below_high)

    @abstractmethod
    def extract(self, a: Value, high: int, low: int) -> Value:
        """Return bits `high` to `low`, as an unsigned number."""

    @abstractmethod
    def join(self, a: Value, of_a: Type, b: Value, of_b: Type) -> Value:
        """Return the bits of `a` followed by those of `b`, as an unsigned number."""

    @abstractmethod
    def resize(self, a: Value, source: Type, target: Type) -> Value:
        """Return `a` as bits of another width, truncated or sign-extended according to its type."""

    @abstractmethod
    def truth(self, a: Value) -> Value:
        """Return whether a number is not 0."""

    @abstractmethod
    def number(self, a: Value, target: Type) -> Value:
        """Return 1 for true and 0 for false."""
