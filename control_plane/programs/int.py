"""Forwarding with ECMP, per-hop telemetry (INT) for HPCC: `p4src/int.p4`."""

from __future__ import annotations

from typing import ClassVar

from control_plane.programs.base import ProgramParameters, SwitchView, register
from control_plane.programs.entries import Action, Entry, Exact, TableEntry
from control_plane.programs.forwarding import forwarding_entries
from host_agents.headers import LINK_RATES_BPS
from p4switch.errors import UserError
from topologies.path_ids import path_ids

LINK_RATE_CODES = {int(rate_bps): code for code, rate_bps in enumerate(LINK_RATES_BPS) if rate_bps > 0.0}


@register("int")
class IntParameters(ProgramParameters):
    """Empty set of parameters; the entries for telemetry records are computed from the switch."""

    telemetry: ClassVar[bool] = True
    architectures: ClassVar[tuple[str, ...]] = ("v1model", "tna", "t2na")

    def check_link_rate(self, rate_bps: int) -> None:
        link_rate_code(rate_bps)

    def entries(self, switch: SwitchView) -> list[Entry]:
        return [*forwarding_entries(switch), *telemetry_entries(switch)]


def telemetry_entries(switch: SwitchView) -> list[Entry]:
    """Return the entries of `p4src/include/telemetry.p4`: the records' properties of each port's link."""
    entries: list[Entry] = []
    links = {} if switch.network is None else path_ids(switch.network).links[switch.name]
    for port, rate_bps in sorted(switch.port_rates_bps.items()):
        params = {
            "link_rate_code": link_rate_code(rate_bps),
            "link_id": links.get(port, 0),
            "tick_ns_q8": tick_ns_q8(switch),
            "frame_overhead_bytes": switch.overhead_word(port),
        }
        entries.append(TableEntry("port_telemetry", {"port": Exact(port)}, Action("telemetry", params)))
    return entries


def link_rate_code(rate_bps: int) -> int:
    """Return the code of a link rate in INT records.

    Raises UserError for a rate that the wire format does not have.
    """
    if rate_bps not in LINK_RATE_CODES:
        known = ", ".join(f"{rate / 1e9:g}" for rate in sorted(LINK_RATE_CODES))
        text = f"link rate {rate_bps / 1e9:g} Gb/s has no code in the INT record"
        raise UserError(f"{text}; expected one of {known} Gb/s")
    return LINK_RATE_CODES[rate_bps]


def tick_ns_q8(switch: SwitchView) -> int:
    """Return the model time of a clock tick in 1/256 ns.

    Raises UserError if the result rounds to 0 or does not fit.
    """
    scaled = round(switch.tick_ns * 256)
    if not 0 < scaled < 1 << 32:
        raise UserError(f"a tick of {float(switch.tick_ns):g} ns is out of range; expected 1/256 ns to 16 ms")
    return scaled
