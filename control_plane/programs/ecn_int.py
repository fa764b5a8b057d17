"""Forwarding with ECMP, RED/ECN marking and per-hop telemetry (INT) in one program: `p4src/ecn_int.p4`."""

from __future__ import annotations

from typing import ClassVar

from control_plane.programs.base import SwitchView, register
from control_plane.programs.ecn import EcnParameters
from control_plane.programs.entries import Entry
from control_plane.programs.int import link_rate_code, telemetry_entries


@register("ecn_int")
class EcnIntParameters(EcnParameters):
    """Parameters of `ecn`; the entries for telemetry records are computed from the switch."""

    contains: ClassVar[tuple[str, ...]] = ("ecn", "int")
    telemetry: ClassVar[bool] = True

    def check_link_rate(self, rate_bps: int) -> None:
        link_rate_code(rate_bps)

    def entries(self, switch: SwitchView) -> list[Entry]:
        return [*super().entries(switch), *telemetry_entries(switch)]
