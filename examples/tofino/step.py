"""Entries of step.p4: routes with their groups of ports, and a queue for each DSCP."""

from __future__ import annotations

from p4cc.programs import (
    Action,
    Entry,
    Exact,
    Lpm,
    ProgramParameters,
    SwitchView,
    TableEntry,
    register,
)


@register("step")
class Step(ProgramParameters):
    threshold_bytes: int = 40_000  # queue from which on packets are marked

    def defines(self) -> dict[str, str]:
        return {"THRESHOLD_CELLS": str(self.threshold_bytes // 80)}

    def entries(self, switch: SwitchView) -> list[Entry]:
        entries: list[Entry] = []
        groups: dict[tuple[int, ...], int] = {}
        for route in switch.routes:
            action = Action("send", {"port": route.ports[0]})
            if len(route.ports) > 1:
                action = Action("spread", {"group": groups.setdefault(route.ports, len(groups) + 1)})
            prefix = Lpm(int(route.prefix.network_address), route.prefix.prefixlen)
            entries.append(TableEntry("routes", {"dst_addr": prefix}, action))
        for ports, group in groups.items():
            members = tuple(Action("send", {"port": port}) for port in ports)
            entries.append(TableEntry("members", {"group": Exact(group)}, members))
        for dscp, priority in switch.priority_of_dscp.items():
            entries.append(
                TableEntry("queues", {"dscp": Exact(dscp)}, Action("set_queue", {"queue": priority}))
            )
        return entries
