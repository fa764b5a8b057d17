"""Forwarding with ECMP, ExpressPass's limit on the credits of every link: `p4src/expresspass.p4`.

Source: Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters", SIGCOMM 2017.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from harness.control.programs.base import ProgramParameters, SwitchView, register
from harness.control.programs.entries import Action, Entry, Exact, TableEntry
from harness.control.programs.forwarding import forwarding_entries

CREDIT_BYTES = 62  # Ethernet to ICRC, of the smallest
_UNIT = 1 << 16  # of a tick


@register("expresspass")
class ExpressPassParameters(ProgramParameters):
    """Rate limit of credits.

    A credit of mean size takes its own time and that of the full data packet that it draws (84 of 84 + 1538
    bytes on Ethernet), a larger one more.
    """

    agrees: ClassVar[tuple[str, ...]] = ("credit_spread_bytes",)

    burst_credits: int = Field(8, ge=1, le=1024)  # that a link lets through at once
    credit_spread_bytes: int = Field(8, ge=0, le=64)  # by which credits differ in size

    def entries(self, switch: SwitchView) -> list[Entry]:
        entries = forwarding_entries(switch)
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            sizes = [switch.link_bytes(CREDIT_BYTES + more, port) for more in range(self.credit_spread_bytes + 1)]
            credit_bytes = sum(sizes) / len(sizes)
            both_bytes = credit_bytes + switch.link_bytes(switch.packet_bytes, port)
            credit_ticks = both_bytes * 8e9 / rate_bps / float(switch.tick_ns) * _UNIT
            byte_ticks = round(credit_ticks / credit_bytes)  # a burst is of bytes with this time, not the exact one
            limit = {
                "byte_ticks": byte_ticks,
                "overhead_bytes": switch.overhead_bytes(port) & 0xFFFF_FFFF,
                "ahead_ticks": round(byte_ticks * credit_bytes * (self.burst_credits - 1)),
            }
            entries.append(TableEntry("credit_limit", {"port": Exact(port)}, Action("limit", limit)))
        return entries
