"""Packet captures of each interface: `INTERFACE_in.pcap` and `INTERFACE_out.pcap`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from scapy.utils import RawPcapWriter

from p4switch.output_file import check_folder, check_writable
from p4switch.trace import Event
from p4switch.trace.events import Received, Transmitted

_ETHERNET = 1


class Captures:
    """Trace listener that writes packet captures.

    Time stamps are in nanoseconds since the arrival of the first packet.

    Raises UserError for a folder in which the files cannot be written.
    """

    def __init__(self, folder: Path, interfaces: Mapping[int, str], tick_ns: int) -> None:
        check_folder(folder, "--pcap")
        folder.mkdir(parents=True, exist_ok=True)
        self._tick_ns = tick_ns
        self._origin_ns: int | None = None
        self._files: dict[tuple[int, type[Event]], RawPcapWriter] = {}
        for port, interface in interfaces.items():
            for kind, direction in ((Received, "in"), (Transmitted, "out")):
                file = folder / f"{interface}_{direction}.pcap"
                check_writable(file, "--pcap")
                writer = RawPcapWriter(str(file), linktype=_ETHERNET, nano=True, sync=True)
                writer.write_header(None)
                self._files[port, kind] = writer

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Received | Transmitted):
            return
        writer = self._files.get((event.port, type(event)))
        if writer is None:
            return  # the CPU port
        now_ns = event.time * self._tick_ns
        if self._origin_ns is None:
            self._origin_ns = time.time_ns() - now_ns
        seconds, nanoseconds = divmod(self._origin_ns + now_ns, 1_000_000_000)
        writer.write_packet(event.frame, sec=seconds, usec=nanoseconds, wirelen=event.length)
