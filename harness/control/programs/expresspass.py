"""Forwarding with ECMP, ExpressPass's limit on the credits of every link: `p4src/expresspass.p4`.

Source: Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters", SIGCOMM 2017.
"""

from __future__ import annotations

from pydantic import Field

from harness.control.programs.base import ProgramParameters, SwitchView, register
from harness.control.programs.entries import Action, Entry, Exact, TableEntry
from harness.control.programs.forwarding import forwarding_entries

CREDIT_BYTES = 62  # Ethernet to ICRC
_UNIT = 1 << 16  # of a tick


@register("expresspass")
class ExpressPassParameters(ProgramParameters):
    """A credit takes its own time and that of the full data packet that it draws: 84 of 84 + 1538 bytes on Ethernet."""

    burst_credits: int = Field(8, ge=1, le=1024)  # that a link lets through at once

    def entries(self, switch: SwitchView) -> list[Entry]:
        entries = forwarding_entries(switch)
        both_bytes = CREDIT_BYTES + switch.packet_bytes + 2 * switch.frame_overhead_bytes
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            credit_ticks = round(both_bytes * 8e9 / rate_bps / float(switch.tick_ns) * _UNIT)
            limit = {"credit_ticks": credit_ticks, "ahead_ticks": credit_ticks * (self.burst_credits - 1)}
            entries.append(TableEntry("credit_limit", {"port": Exact(port)}, Action("limit", limit)))
        return entries
