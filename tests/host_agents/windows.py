"""Growth of a window by one packet in a round trip."""

from __future__ import annotations


def grown(packets: float, acks: int) -> float:
    """Return the window in packets after this number of ACKs, each of which adds its part of a packet."""
    for _ in range(acks):
        packets += 1 / packets
    return packets
