"""Forwarding with ECMP and ExpressPass's limit on the credits of every link: `p4src/expresspass.p4`.

Source: Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters", SIGCOMM 2017.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, MeterLimit, TableEntry
from control_plane.programs.forwarding import forwarding_entries

CREDIT_BYTES = 62  # size of the smallest credit, Ethernet to ICRC
FCS_BYTES = 4  # a chip's meter counts the FCS, but no other byte that a link charges beyond the frame
_UNIT = 1 << 16  # fixed-point units in a tick of the clock, for times


@register("expresspass")
class ExpressPassParameters(ProgramParameters):
    """Rate limit of credits.

    A credit of mean size takes its own transmission time plus that of the full data packet that it
    triggers (84 of 84 + 1538 bytes on Ethernet); a larger credit takes more.
    """

    architectures: ClassVar[tuple[str, ...]] = ("v1model", "tna", "t2na")
    agrees: ClassVar[tuple[str, ...]] = ("credit_spread_bytes",)

    burst_credits: int = Field(8, ge=1, le=1024)  # number of credits that a link may send in one burst
    credit_spread_bytes: int = Field(8, ge=0, le=64)  # largest difference of credits in size

    def entries(self, switch: SwitchView) -> list[Entry]:
        entries = forwarding_entries(switch)
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            sizes = [switch.link_bytes(CREDIT_BYTES + more, port) for more in range(self.credit_spread_bytes + 1)]
            credit_bytes = sum(sizes) / len(sizes)
            both_bytes = credit_bytes + switch.link_bytes(switch.packet_bytes, port)
            if switch.front_panel is not None:
                entries.append(self._meter(port, rate_bps / 8 / both_bytes))
                continue
            credit_ticks = both_bytes * 8e9 / rate_bps / float(switch.tick_ns) * _UNIT
            byte_ticks = round(credit_ticks / credit_bytes)  # the burst is computed from this rounded time
            limit = {
                "byte_ticks": byte_ticks,
                "overhead_bytes": switch.overhead_word(port),
                "ahead_ticks": round(byte_ticks * credit_bytes * (self.burst_credits - 1)),
            }
            entries.append(TableEntry("credit_limit", {"port": Exact(port)}, Action("limit", limit)))
        return entries

    def _meter(self, port: int, credits_per_s: float) -> MeterLimit:
        """Return the limit of a chip's meter, which passes a credit if all its bytes are left of the burst."""
        least_bytes = CREDIT_BYTES + FCS_BYTES
        mean_bytes = least_bytes + self.credit_spread_bytes / 2
        burst_bytes = max(round(mean_bytes * self.burst_credits), least_bytes + self.credit_spread_bytes)
        return MeterLimit("credit_rate", port, round(mean_bytes * credits_per_s), burst_bytes)
