"""Checksums and hashes by BMv2's names: CRCs, and the Internet checksum for values of any domain."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p4switch.bits.domain import Domain, Value
from p4switch.bits.integers import INTEGERS
from p4switch.compiler.types import Bits


@dataclass(frozen=True)
class Crc:
    """CRC of `width` bits.

    A `reflected` CRC processes the lowest bit of a byte first, and its register is reversed.
    """

    width: int
    polynomial: int
    initial: int
    final: int
    reflected: bool

    def step(self, byte: int) -> int:
        """Return the register after processing `byte`. The register is zero before that."""
        if self.reflected:
            register, polynomial = byte, reflect(self.polynomial, self.width)
            for _ in range(8):
                register = register >> 1 ^ (polynomial if register & 1 else 0)
            return register
        register = byte << self.width - 8
        for _ in range(8):
            register = register << 1 ^ (self.polynomial if register >> self.width - 1 & 1 else 0)
        return register & (1 << self.width) - 1

    def of(self, data: bytes) -> int:
        value = self.initial
        for byte in data:
            if self.reflected:
                value = self.step((value ^ byte) & 0xFF) ^ value >> 8
            else:
                value = self.step((value >> self.width - 8 ^ byte) & 0xFF) ^ value << 8
                value &= (1 << self.width) - 1
        return value ^ self.final


def reflect(value: int, width: int) -> int:
    """Return the `width` bits of `value` in reverse order."""
    return int(f"{value:0{width}b}"[::-1], 2)


CRCS = {
    "crc8_custom": Crc(8, 0x07, 0, 0, False),
    "crc16": Crc(16, 0x8005, 0, 0, True),
    "crc16_custom": Crc(16, 0x8005, 0, 0, True),
    "crcCCITT": Crc(16, 0x1021, 0xFFFF, 0, False),
    "crc32": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc32_custom": Crc(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True),
    "crc64_custom": Crc(64, 0x1B, 0, 0, True),
}
"""CRCs by BMv2's names. Custom CRCs have BMv2's initial parameters."""
DRAWN = "random"
"""Name of the algorithm that ignores its input and returns random numbers."""
_NAMED = re.compile(r"crc(\d+)_([0-9a-f]+)_([0-9a-f]+)_([0-9a-f]+)_([rp])")


def crc_name(width: int, polynomial: int, initial: int, final: int, *, reflected: bool) -> str:
    """Return the name of a CRC with these parameters."""
    return f"crc{width}_{polynomial:x}_{initial:x}_{final:x}_{'r' if reflected else 'p'}"


def crc_of(name: str) -> Crc | None:
    """Return the CRC with a name of BMv2 or of `crc_name`; None if the name is not that of a CRC."""
    match = _NAMED.fullmatch(name)
    if match is None:
        return CRCS.get(name)
    width, (polynomial, initial, final) = int(match[1]), (int(match[i], 16) for i in (2, 3, 4))
    if not 8 <= width <= 64 or max(polynomial, initial, final) >> width:
        return None
    return Crc(width, polynomial, initial, final, match[5] == "r")


def internet_checksum(domain: Domain[Value], data: Value, bits: int) -> Value:
    """Return the Internet checksum (RFC 1071) of `bits` bits, which are at most 2**16 words.

    Zeros at the end fill up the last word.
    """
    word, wide = Bits(16), Bits(32)
    fill = -bits % 16
    if fill:
        data = domain.join(data, Bits(bits), domain.constant(0, Bits(fill)), Bits(fill))
    total = domain.constant(0, wide)
    for low in range(0, bits + fill, 16):
        total = domain.arithmetic("+", total, domain.resize(domain.extract(data, low + 15, low), word, wide), wide)
    for _ in range(2):
        kept = domain.arithmetic("&", total, domain.constant(0xFFFF, wide), wide)
        total = domain.arithmetic("+", kept, domain.shift(">>", total, domain.constant(16, wide), wide), wide)
    return domain.invert(domain.extract(total, 15, 0), word)


def xor_words(data: bytes, size: int) -> int:
    """Return the exclusive or of all words of `size` bytes. Zeros fill up the last word."""
    padded = data + bytes(-len(data) % size)
    result = 0
    for i in range(0, len(padded), size):
        result ^= int.from_bytes(padded[i : i + size], "big")
    return result


INTERNET_CHECKSUM: Final = "csum16"
_OTHERS: dict[str, Callable[[bytes], int]] = {
    INTERNET_CHECKSUM: lambda data: internet_checksum(INTEGERS, int.from_bytes(data, "big"), 8 * len(data)),
    "xor8": lambda data: xor_words(data, 1),
    "xor16": lambda data: xor_words(data, 2),
    "xor32": lambda data: xor_words(data, 4),
    "identity": lambda data: int.from_bytes(data[:8], "big"),
}


def hashed(algorithm: str, data: int, bits: int) -> int | None:
    """Return the hash of `bits` bits, padded with zeros; None if the algorithm is unknown."""
    octets = (data << -bits % 8).to_bytes(-(-bits // 8), "big")
    crc = crc_of(algorithm)
    if crc is not None:
        return crc.of(octets)
    return _OTHERS[algorithm](octets) if algorithm in _OTHERS else None
