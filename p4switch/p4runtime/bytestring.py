"""Byte strings of P4Runtime (specification, "Bytestrings") and of the engine.

Those of the engine are big-endian and exactly ceil(width / 8) bytes long.
"""
from __future__ import annotations


def size(width: int) -> int:
    """Return the number of bytes of a field of `width` bits."""
    return (width + 7) // 8


def canonical(value: int) -> bytes:
    """Return the shortest byte string, of at least one byte, that can hold an unsigned value."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def shortest(value: bytes) -> bytes:
    """Return the `canonical` form of a byte string that holds an unsigned value."""
    return value.lstrip(b"\0") or b"\0"


def parse(value: bytes, width: int) -> int:
    """Return the unsigned value of a string of any length.

    Raises ValueError if it is empty or wider than `width` bits.
    """
    if not value:
        raise ValueError("empty byte string")
    number = int.from_bytes(value, "big")
    if number >> width:
        raise ValueError(f"value {number:#x} does not fit in {width} bits")
    return number


def parse_signed(value: bytes, width: int) -> int:
    """Return the two's complement value of a byte string of any length.

    Raises ValueError like `parse`.
    """
    if not value:
        raise ValueError("empty byte string")
    number = int.from_bytes(value, "big", signed=True)
    if not -(1 << (width - 1)) <= number < 1 << (width - 1):
        raise ValueError(f"value {number} does not fit in {width} bits, signed")
    return number


def canonical_signed(value: int) -> bytes:
    """Return the shortest byte string that can hold a value in two's complement."""
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes(size(bits), "big", signed=True)
