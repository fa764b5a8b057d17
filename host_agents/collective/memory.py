"""Memory of a member: 32-bit big-endian numbers, integers or float32, and their encoding as lanes.

float32 numbers are sent as fixed point, so that sums are the same in any order: the error is at
most n 2^-(fraction_bits + 1) for n members, and half a unit in the last place of the float32
result, as long as nothing is clipped.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from host_agents.collective.packets import ADDRESS_UNIT_BYTES, IDENTITIES, LANES, PAYLOAD_BYTES
from host_agents.errors import HostError

_MOST: Final = 0x7FFFFFFF
_LEAST: Final = -0x80000000
_PADDING: Final = {operator: identity.to_bytes(4, "big") * LANES for operator, identity in IDENTITIES.items()}


class Memory:
    """A host's memory; it has integers if `fraction_bits` is below 0.

    `clipped` counts numbers that fixed point cannot represent; NaN becomes 0.
    """

    def __init__(self, contents: bytes, fraction_bits: int = -1) -> None:
        if len(contents) % 4:
            raise HostError(f"memory of {len(contents)} bytes: expected whole numbers of 4 bytes")
        self.contents = bytearray(contents)
        self.clipped = 0
        self._scale = 0.0 if fraction_bits < 0 else 2.0**fraction_bits

    def has(self, address: int, size_bytes: int) -> bool:
        """Return whether the range at the address fits in memory and in a packet."""
        return (
            size_bytes <= PAYLOAD_BYTES
            and size_bytes % 4 == 0
            and address * ADDRESS_UNIT_BYTES + size_bytes <= len(self.contents)
        )

    def read(self, address: int, size_bytes: int) -> bytes:
        start = address * ADDRESS_UNIT_BYTES
        return bytes(self.contents[start : start + size_bytes])

    def write(self, address: int, value: bytes) -> None:
        start = address * ADDRESS_UNIT_BYTES
        self.contents[start : start + len(value)] = value

    def lanes(self, address: int, size_bytes: int, operator: int) -> bytes:
        """Return the numbers at the address as a contribution, padded with the operator's identity."""
        value = self.read(address, size_bytes)
        if self._scale > 0.0:
            value = self._fixed(value)
        return value + _PADDING[operator][len(value) :]

    def numbers(self, lanes: bytes) -> bytes:
        """Return the result of a reduction in the format of the memory."""
        if self._scale <= 0.0:
            return lanes
        count = len(lanes) // 4
        return struct.pack(f">{count}f", *[lane / self._scale for lane in struct.unpack(f">{count}i", lanes)])

    def _fixed(self, value: bytes) -> bytes:
        count = len(value) // 4
        fixed = []
        for number in struct.unpack(f">{count}f", value):
            scaled = number * self._scale
            if math.isnan(scaled):
                self.clipped += 1
                fixed.append(0)
            elif not _LEAST <= scaled <= _MOST:
                self.clipped += 1
                fixed.append(_MOST if scaled > 0 else _LEAST)
            else:
                fixed.append(min(round(scaled), _MOST))  # to the nearest, halves to even
        return struct.pack(f">{count}i", *fixed)


def padded(value: bytes) -> bytes:
    """Return a value without reduction as a payload, padded with zeros."""
    return value + bytes(PAYLOAD_BYTES - len(value))
