"""Entries of `p4src/include/forwarding.p4`, which every program includes, and of its load balancer."""

from __future__ import annotations

import hashlib

from control_plane.programs.base import SwitchView
from control_plane.programs.entries import Action, Entry, Exact, Lpm, MulticastGroup, PortGroup, TableEntry
from topologies.groups import ADDRESSES
from topologies.routing import Route

_WHOLE_NETWORK = 0  # used in place of a switch's number, which begins at 1
TABLES = frozenset({"ipv4_lpm", "dscp_to_priority"})


def salt_of(device_id: int, seed: int) -> int:
    """Return the 32-bit salt of a switch.

    It is well mixed, because similar salts would make switches choose alike.
    """
    digest = hashlib.blake2s(f"{seed}:{device_id}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def forward(port: int) -> Action:
    return Action("forward", {"port": port})


def forwarding_entries(switch: SwitchView) -> list[Entry]:
    """Return routes, multicast groups and priorities.

    There is a group of ports for each distinct set of ports of equal cost.
    """
    entries: list[Entry] = []
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    salt = salt_of(switch.device_id, switch.seed)
    for route in switch.routes:
        if len(route.ports) == 1 and not route.detours:
            action = forward(route.ports[0])
        else:
            ways = route.ports, route.detours
            if ways not in groups:
                groups[ways] = len(groups) + 1
                entries += _group(groups[ways], route, salt_of(_WHOLE_NETWORK, switch.seed), switch.exits)
            group = {"group_id": groups[ways], "group_size": len(route.ports), "salt": salt}
            action = Action("balance", group)
        prefix = Lpm(int(route.prefix.network_address), route.prefix.prefixlen)
        entries.append(TableEntry("ipv4_lpm", {"dst_addr": prefix}, action))
    for senders, is_first in switch.departures.items():
        leaving = Lpm(int(senders.network_address), senders.prefixlen)
        entries.append(TableEntry("departures", {"src_addr": leaving}, Action("departs", {"is_first": is_first})))
    entries += multicast_entries(switch)
    for dscp, priority in sorted(switch.priority_of_dscp.items()):
        if priority:
            entries.append(
                TableEntry("dscp_to_priority", {"dscp": Exact(dscp)}, Action("set_priority", {"priority": priority}))
            )
    return entries


def _group(number: int, route: Route, common_salt: int, exits: frozenset[int]) -> list[Entry]:
    """Return the entries of a group: its ports, and its detours (`load_balancing/valiant.p4`, `ugal.p4`)."""
    entries: list[Entry] = [PortGroup(number, route.ports)] if route.ports else []
    group_id = Exact(number)
    if route.detours:
        leaves = not exits.isdisjoint(route.ports)  # if one of these ports is an exit, all are
        choice = {"detours_count": len(route.detours), "detours_salt": common_salt, "is_exit": leaves}
        entries.append(TableEntry("detours", {"group_id": group_id}, Action("choose", choice)))
    for place, port in enumerate(route.detours):
        take = Action("take", {"port": port, "is_exit": port in exits})
        entries.append(TableEntry("detour", {"group_id": group_id, "number": Exact(place)}, take))
    return entries


def multicast_entries(switch: SwitchView) -> list[Entry]:
    """Return the groups whose trees pass this switch, for a program with `MULTICAST`.

    Packets of other groups are dropped.
    """
    entries: list[Entry] = []
    for group in switch.groups:
        ports = switch.group_ports(group)
        if ports:
            entries.append(MulticastGroup(group.number, tuple((port, 0) for port in ports)))
            replicate = Action("replicate", {"group": group.number})
            entries.append(TableEntry("ipv4_lpm", {"dst_addr": Lpm(int(group.address), 32)}, replicate))
    if switch.groups:
        others = Lpm(int(ADDRESSES.network_address), ADDRESSES.prefixlen)
        entries.append(TableEntry("ipv4_lpm", {"dst_addr": others}, Action("no_group")))
    return entries
