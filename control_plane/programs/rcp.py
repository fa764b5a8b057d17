"""Forwarding with ECMP and RCP's rate of every link: `p4src/rcp.p4`.

Source: Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from p4switch.errors import UserError

_WORD = 1 << 32


@register("rcp")
class RcpParameters(ProgramParameters):
    """Constants of RCP.

    `alpha` and `beta` are those of published scripts; other scripts have (0.4, 0.4) and (0.4, 1).
    """

    alpha: float = Field(0.1, gt=0, le=10)  # share of the spare capacity that is distributed in an RTT
    beta: float = Field(1.0, ge=0, le=10)  # share of the queue that is drained in an RTT
    interval_base_rtts: float = Field(0.25, gt=0, le=1)  # least time between two updates of the rate
    min_share: float = Field(0.001, gt=0, le=1)  # lowest announced rate, as a share of the link's
    data_priority: Annotated[int, Field(ge=0, le=7)] = 3  # the class whose queue is counted

    def entries(self, switch: SwitchView) -> list[Entry]:
        rtt_ticks = round(switch.base_rtt_ns / switch.tick_ns)
        interval_ticks = round(self.interval_base_rtts * switch.base_rtt_ns / switch.tick_ns)
        if interval_ticks < 1:
            raise UserError(
                f"interval_base_rtts: should make at least a tick of the switch's clock ({switch.tick_ns} ns), "
                f"got {self.interval_base_rtts} of {switch.base_rtt_ns} ns"
            )
        entries = forwarding_entries(switch)
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            bdp_bytes = max(1, round(switch.bdp_bytes(port)))
            bytes_per_tick = rate_bps * float(switch.tick_ns) / 8e9
            link = {
                "capacity_kbps": rate_bps // 1000,
                "min_kbps": max(1, round(rate_bps * self.min_share / 1000)),
                "capacity": round(bytes_per_tick * (1 << 16)),
                "bdp_bytes": bdp_bytes,
                "inverse_bdp": min(_WORD - 1, _WORD // bdp_bytes),
                "interval_ticks": interval_ticks,
                "rtt_ticks": rtt_ticks,
                "alpha": round(self.alpha * (1 << 16)),
                "beta_per_rtt": round(self.beta * _WORD / rtt_ticks),
                "priority": self.data_priority,
                "overhead_bytes": switch.overhead_bytes(port) & (_WORD - 1),
            }
            for name in ("capacity_kbps", "capacity", "bdp_bytes", "beta_per_rtt"):
                if link[name] >= _WORD:
                    raise UserError(f"rcp: {name} of port {port} is {link[name]}; expected less than 2^32")
            entries.append(TableEntry("rate_control", {"port": Exact(port)}, Action("control_rate", link)))
        return entries
