"""Compile-time arithmetic. Operations that are undefined or take too much memory raise ConstantError."""

from __future__ import annotations

from p4switch.bits import operators
from p4switch.bits.integers import INTEGERS
from p4switch.compiler.types import Bits, Type

MAX_INT_BITS = 1 << 14
"""Maximum width of a compile-time integer in bits."""


class ConstantError(Exception):
    """Failure of a compile-time operation, with its reason."""


def arithmetic(op: str, left: int, right: int, t: Type) -> int:
    """Return `left op right` for operands of type `t`.

    Raises ConstantError if the result is not defined or too large.
    """
    if op in ("/", "%") and right == 0:
        raise ConstantError("division by zero")
    if op in ("/", "%") and (left < 0 or right < 0):
        raise ConstantError(f"{op!r} is not defined for negative numbers")
    if op == "<<" and right > MAX_INT_BITS and not isinstance(t, Bits):
        raise ConstantError(f"shift by {right} is too far")
    value = operators.binary(INTEGERS, op, t, t, left, right)
    if value.bit_length() > MAX_INT_BITS:
        raise ConstantError(f"the value takes more than {MAX_INT_BITS} bits")
    return value
