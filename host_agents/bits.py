"""Rings with a bit for each packet number; a SACK carries a map of 64 of these bits.

A ring is a vector of words, whose length is a power of two. Each word has the bits of 32 packets.
Packets whose numbers differ by a multiple of the ring's size share a bit.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from host_agents.wire import SACK_BITS

_WORD: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000


def ring(packets: int) -> vec[i64]:
    """Return an empty ring for `packets` packets, a power of two, or for those of a map if that is more."""
    return vec[i64]([0] * (max(packets, SACK_BITS) >> 5))


def bit_of(number: i64) -> i64:
    """Return the bit of a packet in its word.

    In compiled code the shift of a small literal, or of a variable with its value, has only as many
    bits as a C int. Therefore words are shifted to the right, here and below.
    """
    top: i64 = _SIGN
    return top >> (31 - (number & 31))


def insert(words: vec[i64], number: i64) -> None:
    """Set the bit of a packet."""
    words[(number >> 5) & (len(words) - 1)] |= bit_of(number)


def remove(words: vec[i64], number: i64) -> None:
    """Clear the bit of a packet."""
    words[(number >> 5) & (len(words) - 1)] &= ~bit_of(number)


def map_of(words: vec[i64], first: i64) -> i64:
    """Return the bits of the 64 packets from `first` on as a signed number."""
    mask: i64 = len(words) - 1
    word: i64 = first >> 5
    shift: i64 = first & 31
    middle = words[(word + 1) & mask]
    low = (words[word & mask] >> shift | middle << (32 - shift)) & _WORD
    high = (middle >> shift | words[(word + 2) & mask] << (32 - shift)) & _WORD
    return ((high ^ _SIGN) - _SIGN) << 32 | low


def lowest(bits: i64, count: i64) -> i64:
    """Return the lowest `count` bits of a map."""
    if count >= SACK_BITS:
        return bits
    if count <= 0:
        return 0
    word: i64 = _WORD
    if count <= 32:
        return bits & (word >> (32 - count))
    return bits & ((word >> (SACK_BITS - count)) << 32 | word)
