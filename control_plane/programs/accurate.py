"""Forwarding with ECMP, ACCurate's contention points (max-min fair rates): `p4src/accurate.p4`."""

from __future__ import annotations

import random
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, MulticastGroup, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from p4switch.errors import UserError

MOST_KBPS = (1 << 32) - 1  # limit of rates in the program and in flow rate packets
NO_SHIFT = 63  # a shift that leaves nothing
MAX_PORT = 255  # the number of a multicast group encodes two ports

SHORT_CIRCUIT_INSTANCE = 1

# Shifts (up, down) for the test CR > threshold x FSR, where the threshold is 2^up + 2^-down.
SHORT_CIRCUIT_SHIFTS = {
    1.0: (0, NO_SHIFT),
    1.25: (0, 2),
    1.5: (0, 1),
    2.0: (1, NO_SHIFT),
    3.0: (1, 0),
    4.0: (2, NO_SHIFT),
}


@register("accurate")
class AccurateParameters(ProgramParameters):
    """Constants of ACCurate.

    The defaults are the paper's, except for `rule` (papers/accurate/README.md gives the reason).
    """

    agrees: ClassVar[tuple[str, ...]] = ("period_ns",)

    alpha: float = Field(0.05, ge=0, lt=1)  # share of a link that is kept free for FRPs and to drain queues
    period_ns: int = Field(20_000, gt=0)  # RRP, from one fair share to the next
    # Each switch's clock is ahead of the common one by `clock_offset_ns`, plus a random error of up
    # to `clock_error_ns` either way, which is drawn for each switch.
    clock_offset_ns: int = 0
    clock_error_ns: int = Field(0, ge=0)  # largest error of a switch's clock, either way; drawn for each switch
    # Rule that decides which flows count as bottlenecked at a link: corrected, or as published.
    rule: Literal["corrected", "published"] = "corrected"
    short_circuit_threshold: float = 2.0  # factor of change from which on a rate is announced at once

    @field_validator("short_circuit_threshold")
    @classmethod
    def _representable(cls, value: float) -> float:
        if value not in SHORT_CIRCUIT_SHIFTS:
            raise ValueError(f"should be one of {', '.join(f'{t:g}' for t in SHORT_CIRCUIT_SHIFTS)}")
        return value

    @property
    def common_period_ns(self) -> int:
        return self.period_ns

    def check_link_rate(self, rate_bps: int) -> None:
        if rate_bps > 1000 * MOST_KBPS:
            raise UserError(
                f"accurate: link rate {rate_bps / 1e9:g} Gb/s; expected at most {MOST_KBPS / 1e6:.2f} Gb/s, as rates "
                "are 32 bits of kb/s"
            )

    def entries(self, switch: SwitchView) -> list[Entry]:
        entries = forwarding_entries(switch)
        ports = sorted(switch.port_rates_bps)
        if ports and ports[-1] > MAX_PORT:
            raise UserError(
                f"switch {switch.device_id} uses port {ports[-1]}; expected at most {MAX_PORT} with accurate"
            )
        ahead_ns = self.clock_offset_ns
        if self.clock_error_ns:
            rng = random.Random(f"clock {switch.seed} {switch.device_id}")
            ahead_ns += rng.randint(-self.clock_error_ns, self.clock_error_ns)
        for port in ports:
            action = self._contend(switch, port, ahead_ns)
            entries.append(TableEntry("contention_point", {"port": Exact(port)}, action))
            entries += [
                MulticastGroup(ingress << 8 | port, ((port, 0), (ingress, SHORT_CIRCUIT_INSTANCE)))
                for ingress in ports
                if ingress != port
            ]
        return entries

    def _contend(self, switch: SwitchView, port: int, ahead_ns: int) -> Action:
        period_ticks = round(self.period_ns / switch.tick_ns)
        if period_ticks < 1:
            raise UserError(
                f"period_ns {self.period_ns} is less than a tick of the switch's clock ({switch.tick_ns} ns)"
            )
        up, down = SHORT_CIRCUIT_SHIFTS[self.short_circuit_threshold]
        return Action(
            "contend",
            {
                "capacity_kbps": capacity_kbps(switch.port_rates_bps[port], self.alpha),
                "period_ticks": period_ticks,
                "phase_ticks": round(ahead_ns / switch.tick_ns) % period_ticks,
                "corrected": int(self.rule == "corrected"),
                "short_circuit_up": up,
                "short_circuit_down": down,
            },
        )


def capacity_kbps(rate_bps: int, alpha: float) -> int:
    """Return C (1 - alpha), the rate that a contention point distributes."""
    return round(rate_bps * (1 - alpha) / 1000)
