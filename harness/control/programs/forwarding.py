"""Entries of `p4src/include/forwarding.p4`, which every program includes."""

from __future__ import annotations

import hashlib

from harness.control.programs.base import SwitchView
from harness.control.programs.entries import Action, Entry, Exact, Lpm, TableEntry


def ecmp_salt(device_id: int, seed: int) -> int:
    """A switch's own 32 bits: well mixed, since salts that differ in a few bits leave switches in step."""
    digest = hashlib.blake2s(f"{seed}:{device_id}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def forward(port: int) -> Action:
    return Action("forward", {"port": port})


def forwarding_entries(switch: SwitchView) -> list[Entry]:
    """Routes (an ECMP group for each distinct set of ports) and priorities."""
    entries: list[Entry] = []
    groups: dict[tuple[int, ...], int] = {}
    salt = ecmp_salt(switch.device_id, switch.seed)
    for route in switch.routes:
        if len(route.ports) == 1:
            action = forward(route.ports[0])
        else:
            if route.ports not in groups:
                groups[route.ports] = len(groups) + 1
                members = tuple(forward(port) for port in route.ports)
                entries.append(TableEntry("ecmp_group", {"group_id": Exact(groups[route.ports])}, members))
            action = Action("ecmp", {"group_id": groups[route.ports], "salt": salt})
        prefix = Lpm(int(route.prefix.network_address), route.prefix.prefixlen)
        entries.append(TableEntry("ipv4_lpm", {"dst_addr": prefix}, action))
    for dscp, priority in sorted(switch.priority_of_dscp.items()):
        if priority:
            entries.append(
                TableEntry("dscp_to_priority", {"dscp": Exact(dscp)}, Action("set_priority", {"priority": priority}))
            )
    return entries
