"""Captures as pcap-ng with nanosecond timestamps.

Each direction of a link is an interface, and frames are whole. Dissectors need payload and ICRC,
which `host_agents.wire.materialize` makes for the frames of the virtual world.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from scapy.utils import RawPcapNgWriter

ETHERNET = 1  # link type
_INTERFACE_NAME, _TIME_RESOLUTION, _END = 2, 9, 0  # options of an interface description block


class NanosecondWriter(RawPcapNgWriter):
    """scapy's writer with the option for nanosecond timestamps (if_tsresol 9)."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.tsresol = 10**9
        self.linktype = ETHERNET
        self.sync = False

    def _write_block_idb(self, linktype: int, ifname: bytes | None = None) -> None:
        name = ifname or b"none"
        body = struct.pack("<HHI", linktype, 0, 0)
        options = struct.pack("<HH", _INTERFACE_NAME, len(name)) + self._add_padding(name)
        options += struct.pack("<HHBxxx", _TIME_RESOLUTION, 1, 9) + struct.pack("<HH", _END, 0)
        self.f.write(self.build_block(struct.pack("<I", 1), body, options=options))

    def frame(self, time_ns: int, interface: str, frame: bytes) -> None:
        # A float of seconds is too imprecise for nanoseconds. scapy only multiplies by tsresol.
        seconds: Any = Decimal(time_ns) / 10**9
        self._write_packet(frame, ETHERNET, sec=seconds, ifname=interface.encode())


def write_pcap(path: Path, frames: Iterable[tuple[int, str, bytes]]) -> None:
    """Write (time_ns, interface, frame) records in the given order."""
    writer = NanosecondWriter(path)
    with contextlib.closing(writer):
        writer.write_header(None)
        for time_ns, interface, frame in frames:
            writer.frame(time_ns, interface, frame)
