"""Forged frames."""

from __future__ import annotations

import random

from host_agents import wire


def forged(frame: bytes, rng: random.Random) -> bytes:
    """Return `frame` with another opcode and other bytes behind its UDP header, which may be fewer or more.

    Lengths and checksum are consistent.
    """
    out = bytearray(frame[: rng.choice((54, 55, 56, 58, 62, 64, 70, len(frame)))])
    out += rng.randbytes(rng.choice((0, 0, 0, 2, 8, 40)))
    out[wire.BTH] = rng.randrange(256)
    for _ in range(rng.randrange(4)):
        out[rng.randrange(wire.BTH + 1, len(out))] = rng.randrange(256)
    out[wire.BECN + 1 : wire.BECN + 4] = frame[wire.BECN + 1 : wire.BECN + 4]  # the destination queue pair
    length = len(out) - wire.ETHERNET_BYTES + rng.choice((0, 4, 4, 1000))
    out[wire.TOTAL_LENGTH : wire.TOTAL_LENGTH + 2] = length.to_bytes(2, "big")
    out[wire.UDP_LENGTH : wire.UDP_LENGTH + 2] = (length - wire.IPV4_BYTES).to_bytes(2, "big")
    out[24:26] = bytes(2)
    out[24:26] = wire.ip_checksum(bytes(out[14:34])).to_bytes(2, "big")
    return bytes(out)
