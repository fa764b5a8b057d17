"""Arithmetic on compile-time integers (language specification, sections 8.5 to 8.9)."""

from __future__ import annotations

from p4switch.compiler.types import Bits, Type

MAX_INT_BITS = 1 << 14
"""Largest compile-time integer, in bits."""


class ConstantError(Exception):
    """Why the operation has no value."""


def fits(value: int, t: Bits) -> bool:
    """Whether `t` can represent `value`."""
    low, high = limits(t)
    return low <= value <= high


def limits(t: Bits) -> tuple[int, int]:
    """Smallest and largest value of `t`."""
    if t.signed:
        return -(1 << t.width >> 1), (1 << t.width >> 1) - 1
    return 0, (1 << t.width) - 1


def wrap(value: int, t: Bits) -> int:
    """`value` modulo 2**width, as a value of `t`."""
    value &= (1 << t.width) - 1
    if t.signed and t.width and value >> (t.width - 1):
        value -= 1 << t.width
    return value


def unary(op: str, value: int, t: Type) -> int:
    if op == "-":
        value = -value
    elif op == "~":
        value = ~value
    return wrap(value, t) if isinstance(t, Bits) else value


def arithmetic(op: str, left: int, right: int, t: Type) -> int:
    """`left op right` for the operators that give a value of the operands' type `t`. Raises ConstantError."""
    if op in ("/", "%"):
        if right == 0:
            raise ConstantError("division by zero")
        if left < 0 or right < 0:
            raise ConstantError(f"{op!r} is not defined for negative numbers")
        return left // right if op == "/" else left % right
    if op == "<<":
        return _shift_left(left, right, t)
    if op == ">>":
        return left >> min(right, MAX_INT_BITS * 2)
    if op in ("+", "|+|"):
        value = left + right
    elif op in ("-", "|-|"):
        value = left - right
    elif op == "*":
        value = left * right
    elif op == "&":
        value = left & right
    elif op == "|":
        value = left | right
    else:
        value = left ^ right
    if isinstance(t, Bits):
        if op[0] == "|" and len(op) == 3:
            low, high = limits(t)
            return max(low, min(high, value))
        return wrap(value, t)
    return _bounded(value)


def _shift_left(left: int, right: int, t: Type) -> int:
    if isinstance(t, Bits):
        return 0 if right >= t.width else wrap(left << right, t)
    if right > MAX_INT_BITS:
        raise ConstantError(f"shift by {right} is too far")
    return _bounded(left << right)


def _bounded(value: int) -> int:
    if value.bit_length() > MAX_INT_BITS:
        raise ConstantError(f"the value takes more than {MAX_INT_BITS} bits")
    return value


def compare(op: str, left: int, right: int) -> bool:
    if op == "==":
        return left == right
    if op == "!=":
        return left != right
    if op == "<":
        return left < right
    if op == "<=":
        return left <= right
    if op == ">":
        return left > right
    return left >= right
