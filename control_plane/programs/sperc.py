"""Forwarding with ECMP and s-PERC in front of every link (weighted max-min fair rates): `p4src/sperc.p4`."""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field, field_validator

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from p4switch.errors import UserError

MAX_WEIGHT = 1023
UNIT = 1 << 20  # the value 1 in fixed-point fractions 1/n
CONTROL_PACKET_BYTES = 158  # Ethernet to ICRC


@register("sperc")
class SpercParameters(ProgramParameters):
    """Constants of s-PERC that the thesis leaves open, and that hosts must have with the same values."""

    agrees: ClassVar[tuple[str, ...]] = ("headroom", "round_rtts", "control_share", "tolerance", "digits")

    zero_when_done: ClassVar[tuple[str, ...]] = ("sum_e_of", "num_b_of", "interval_of")

    headroom: float = Field(0.05, ge=0, lt=1)  # share of a link that is not distributed
    round_rtts: float = Field(1.5, gt=0)  # length of a round, in base RTTs of the network
    control_share: float = Field(0.02, gt=0, le=1)  # share of a link for control packets
    tolerance: float = Field(2**-12, ge=0, lt=1)  # share of a link that comparisons tolerate
    digits: int = Field(20, ge=10, le=20)  # significant binary digits of b
    window_entries: int = Field(16, ge=1, le=1024)  # 1RC: number of epochs that a link remembers

    @field_validator("window_entries")
    @classmethod
    def _power_of_two(cls, value: int) -> int:
        if value & (value - 1):
            raise ValueError("should be a power of two")
        return value

    def defines(self) -> dict[str, str]:
        return {"SPERC_WINDOW_ENTRIES": str(self.window_entries), "SPERC_DIGITS": str(self.digits)}

    def entries(self, switch: SwitchView) -> list[Entry]:
        round_ticks = round(self.round_rtts * switch.base_rtt_ns / switch.tick_ns)
        if round_ticks < 1:
            raise UserError(
                f"round_rtts: should make a round of at least a tick of the switch's clock ({switch.tick_ns} ns), "
                f"got {self.round_rtts} of {switch.base_rtt_ns} ns"
            )
        entries = forwarding_entries(switch)
        for port, rate_bps in sorted(switch.port_rates_bps.items()):
            capacity_kbps = round(rate_bps * (1 - self.headroom) / 1000)
            packet_bytes = switch.link_bytes(switch.packet_bytes, port)
            window_scale = math.ceil(switch.base_rtt_ns * 1e-6 / (8 * packet_bytes) * 2**40)
            if window_scale >> 32:
                raise UserError(
                    f"a base RTT of {switch.base_rtt_ns} ns is too long for packets of {packet_bytes} bytes"
                )
            bits = 8 * switch.link_bytes(CONTROL_PACKET_BYTES, port)
            link = {
                "capacity_kbps": capacity_kbps,
                "tolerance_kbps": round(capacity_kbps * self.tolerance),
                "round_ticks": round_ticks,
                "window_scale": window_scale,
                "control_ns": round(bits * 1e9 / (self.control_share * rate_bps)),
            }
            entries.append(TableEntry("fair_share", {"port": Exact(port)}, Action("share", link)))
        for which in ("old", "new"):
            entries += [
                TableEntry(f"{which}_weight", {"n": Exact(n)}, Action(f"divide_by_{which}", {"part": UNIT // n}))
                for n in range(1, MAX_WEIGHT + 1)
            ]
        return entries
