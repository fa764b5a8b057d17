"""Captures of a run with Ultra Ethernet's headers instead of RoCEv2's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scapy.error import Scapy_Exception
from scapy.utils import RawPcapNgReader

from harness.measure.pcap import write_pcap
from host_agents.errors import PacketError
from p4switch.errors import UserError
from wireformats.uet import translated


def translate(capture: Path, out: Path) -> tuple[int, int]:
    """Translate the frames of `capture` (pcap-ng, with its times and interfaces) to Ultra Ethernet in `out`.

    Returns the number of frames that have a counterpart, and of those that have none and are left
    out. Raises UserError for a file that is no such capture, or that has truncated frames.
    """
    kept: list[tuple[int, str, bytes]] = []
    left_out = 0
    try:
        with RawPcapNgReader(str(capture)) as reader:
            packets: Iterable[tuple[bytes, Any]] = reader
            for number, (frame, meta) in enumerate(packets, start=1):
                try:
                    changed = translated(frame)
                except PacketError as error:
                    raise UserError(f"{capture}: frame {number}: {error}") from None
                if changed is None:
                    left_out += 1
                    continue
                time_ns = ((meta.tshigh << 32) + meta.tslow) * 10**9 // meta.tsresol
                kept.append((time_ns, (meta.ifname or b"link").decode(errors="replace"), changed))
    except (Scapy_Exception, OSError) as error:
        raise UserError(f"{capture}: expected a capture as of p4cc run --pcap: {error}") from None
    write_pcap(out, kept)
    return len(kept), left_out
