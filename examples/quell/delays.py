"""Inputs of delays.p4: its own table beside those of forwarding and marking."""

from __future__ import annotations

from p4cc.programs import Action, Entry, Exact, ProgramParameters, SwitchView, TableEntry, parameters, register


@register("delays")
class Delays(ProgramParameters):
    contains = ("ecn",)

    kmin_bytes: int = 400_000
    kmax_bytes: int = 1_600_000

    def entries(self, switch: SwitchView) -> list[Entry]:
        marking = parameters("ecn", {"kmin_bytes": self.kmin_bytes, "kmax_bytes": self.kmax_bytes})
        speeds = [
            TableEntry(
                "port_speed",
                {"port": Exact(port)},
                Action("measure", {"ps": switch.cell_bytes * 8 * 10**12 // rate_bps}),
            )
            for port, rate_bps in switch.port_rates_bps.items()
        ]
        return [*marking.entries(switch), *speeds]
