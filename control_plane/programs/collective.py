"""Forwarding with RED/ECN marking and collectives in the network: `p4src/collective.p4`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from control_plane.programs.base import SwitchView, register
from control_plane.programs.ecn import EcnParameters
from control_plane.programs.entries import Action, DefaultAction, Entry, Exact, Lpm, MulticastGroup, TableEntry
from control_plane.programs.forwarding import forward
from p4switch.errors import UserError
from topologies.collectives import CollectiveGroup, address, trees
from topologies.trees import Tree

BY_GROUP = 510  # port for packets that the program's own stage forwards
Replicas = dict[tuple[int, ...], int]


@register("collective")
class CollectiveParameters(EcnParameters):
    """Slots of a switch for operations in progress, and the priority of answers that switches make."""

    contains: ClassVar[tuple[str, ...]] = ("ecn",)
    architectures: ClassVar[tuple[str, ...]] = ("v1model",)

    slots: int = Field(16_384, ge=1, le=1 << 24)  # number of slots, of 140 bytes each for reads and 12 for writes
    answer_priority: int = Field(4, ge=0, le=7)  # the class of answers that switches combine

    def defines(self) -> dict[str, str]:
        return {**super().defines(), "COLLECTIVE_SLOTS": str(self.slots)}

    def entries(self, switch: SwitchView) -> list[Entry]:
        dscp = switch.dscp_of("programs.collective.answer_priority", self.answer_priority)
        answers = {"dscp": dscp, "priority": self.answer_priority}
        return [
            *super().entries(switch),
            DefaultAction("answer_class", Action("answer_with", answers)),
            *self._groups(switch),
        ]

    def _groups(self, switch: SwitchView) -> list[Entry]:
        if switch.network is None:
            return []
        entries: list[Entry] = []
        replicas: Replicas = {}  # multicast group by the ports of its children
        used_slots = 0
        most_trees = 0
        for group in switch.collectives:
            group_trees = trees(switch.network, group)
            most_trees = max(most_trees, len(group_trees))
            here = [(number, tree) for number, tree in enumerate(group_trees, start=1) if switch.name in tree]
            for number, tree in here:
                entries += _tree_ports(switch, group, number, tree, used_slots, replicas)
            if here:
                used_slots += group.slots
        if used_slots > self.slots:
            raise UserError(
                f"programs.collective.slots: {self.slots}: the groups of switch {switch.name} need {used_slots}"
            )
        entries += [MulticastGroup(number, _numbered(ports)) for ports, number in replicas.items()]
        for number in range(1, most_trees + 1):
            prefix = {"dst_addr": Lpm(int(address(number, 0)), 16)}
            entries.append(TableEntry("ipv4_lpm", prefix, forward(BY_GROUP)))
        return entries


def _numbered(ports: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return pairs of port and child number."""
    return tuple((port, number) for number, port in enumerate(ports))


def _tree_ports(
    switch: SwitchView, group: CollectiveGroup, number: int, tree: Tree, base: int, replicas: Replicas
) -> list[Entry]:
    """Return an entry for each port of a tree, for packets that arrive from a child or from the parent."""
    children = tree.down[switch.name]
    multicast = replicas.setdefault(children, len(switch.groups) + len(replicas) + 1)
    common = {
        "all": (1 << len(children)) - 1,
        "base": base,
        "window_bits": group.rank_slots.bit_length() - 1,
        "members": group.ranks,
        "replicas": multicast,
    }
    up = tree.up.get(switch.name)
    placed = {"root": int(up is None), "up": up or 0}
    actions = {port: Action("child", {"number": child, **common, **placed}) for port, child in _numbered(children)}
    if up is not None:
        above = switch.neighbours[up].node
        actions.update(
            {port: Action("parent", common) for port, there in switch.neighbours.items() if there.node == above}
        )
    return [
        TableEntry(
            "tree_port", {"group": Exact(group.number), "tree": Exact(number), "port": Exact(port)}, actions[port]
        )
        for port in sorted(actions)
    ]
