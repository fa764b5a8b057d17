"""Bytes that links charge for frames.

Not compiled: scenarios are read before the compiled hosts are in place.
"""

from __future__ import annotations

from typing import Final

FLIT_BYTES: Final = 16  # a frame at least, where headers are not charged


def link_bytes(frame_bytes: int, overhead_bytes: int) -> int:
    """Return the bytes that a link charges for a frame, Ethernet to ICRC, with this overhead (negative: less)."""
    return max(frame_bytes + overhead_bytes, FLIT_BYTES)
