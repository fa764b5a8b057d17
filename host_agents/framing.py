"""Bytes that links charge for frames.

This module is not compiled, because scenarios are read before the compiled hosts are in place.
"""

from __future__ import annotations

from typing import Final

FLIT_BYTES: Final = 16  # smallest charge for a frame if headers are not charged


def link_bytes(frame_bytes: int, overhead_bytes: int) -> int:
    """Return the bytes that a link charges for a frame, Ethernet to ICRC, with this overhead.

    A negative overhead reduces the charge.
    """
    return max(frame_bytes + overhead_bytes, FLIT_BYTES)
