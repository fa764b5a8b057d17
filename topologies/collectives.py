"""Groups of hosts for collectives in the network, and the trees of switches that serve each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address

import networkx as nx
import numpy as np

from p4switch.errors import UserError
from topologies.model import Topology
from topologies.shortest_paths import shortest_paths
from topologies.trees import Tree, tree

MAX_TREES = 255  # largest number of trees of a group; they count from 1
MAX_GROUPS = 0xFFFF
MAX_CHILDREN = 63  # largest number of children of a switch in a tree


def address(number: int, group: int) -> IPv4Address:
    """Return the destination address of a group's operations on one of its trees.

    Parameters
    ----------
    number
        Number of the tree, from 1.
    group
        Number of the group.

    Returns
    -------
    IPv4Address
        Multicast address.
    """
    return IPv4Address(f"239.{number}.{group >> 8}.{group & 0xFF}")


@dataclass(frozen=True)
class CollectiveGroup:
    """Group of hosts that write to all members, and read from all members, in one operation.

    `number` counts from 1. `members` are hosts by index, and a member's place is its rank. Each
    rank has `window` slots in every switch of the trees: it sends an operation only when the one
    with a sequence number lower by `window` is answered. In a `push` group members send their
    contributions unrequested, and share 2 x `window` slots. Sequence numbers start at
    `first_sequence`; it has to be higher if the slots were used before.
    """

    number: int
    members: tuple[int, ...]
    window: int = 128
    first_sequence: int = 1
    push: bool = False

    @property
    def ranks(self) -> int:
        """Number of ranks that have slots of their own."""
        return 1 if self.push else len(self.members)

    @property
    def rank_slots(self) -> int:
        """Number of slots of each rank, a power of two."""
        return 2 * self.window if self.push else self.window

    @property
    def slots(self) -> int:
        """Number of slots in each switch of the group's trees."""
        return self.ranks * self.rank_slots

    def check(self, topology: Topology, where: str = "workload") -> None:
        """Check that the network can serve the group.

        Parameters
        ----------
        topology
            Network.
        where
            Beginning of error messages.

        Raises
        ------
        UserError
            As `where.key: ...`.
        """
        if self.window < 1 or self.window & (self.window - 1):
            raise UserError(f"{where}.window: {self.window}: expected a power of two")
        if not 1 <= self.number <= MAX_GROUPS:
            raise UserError(f"{where}.groups: number {self.number}: expected 1 to {MAX_GROUPS}")
        if not 1 <= self.first_sequence < 1 << 32:
            raise UserError(f"{where}.first_sequence: {self.first_sequence}: expected 1 to 2^32 - 1")
        if not self.members:
            raise UserError(f"{where}.members: group {self.number} has none; expected at least one")
        known = range(len(topology.hosts))
        for member in self.members:
            if member not in known:
                raise UserError(
                    f"{where}.members: host {member} of group {self.number}: "
                    f"topology {topology.name!r} has hosts 0 to {len(known) - 1}"
                )
        if len(set(self.members)) < len(self.members):
            twice = next(member for member in self.members if self.members.count(member) > 1)
            raise UserError(f"{where}.members: host {twice} is twice in group {self.number}; expected each once")


def trees(topology: Topology, group: CollectiveGroup, where: str = "workload") -> tuple[Tree, ...]:
    """Return the trees that a group's operations take in turn.

    Their roots are the switches with the smallest distance to their most distant member. If
    switches are connected by parallel links, each link belongs to a tree.

    Parameters
    ----------
    topology
        Network.
    group
        Group.
    where
        Beginning of error messages.

    Returns
    -------
    tuple[Tree, ...]
        Tree t of the packets' headers is at t - 1.

    Raises
    ------
    UserError
        If no root has exactly one path to each member, there are over 255 trees, or a switch has
        over 63 children.
    """
    return _trees(topology, group.members, group.number, where)


@lru_cache(maxsize=256)
def _trees(topology: Topology, members: tuple[int, ...], number: int, where: str) -> tuple[Tree, ...]:
    names = [topology.hosts[member].name for member in members]
    leaves = sorted({topology.uplink(topology.hosts[member]).node for member in members})
    known = topology.switch_by_name
    switches: nx.MultiGraph[str] = nx.MultiGraph()
    switches.add_nodes_from(known)
    switches.add_edges_from((link.a, link.b) for link in topology.links if link.a in known and link.b in known)
    links = {root: beside for root in _centres(topology, leaves) if (beside := _beside(switches, root, leaves))}
    if not links:
        raise UserError(
            f"{where}.members: group {number}: topology {topology.name!r} has no switch with one shortest path only "
            "to each member; expected a tree of switches, or several beside each other"
        )
    if (count := sum(links.values())) > MAX_TREES:
        raise UserError(
            f"{where}.members: group {number} has {count} trees, one for each link of a root; "
            f"expected at most {MAX_TREES}"
        )
    trees = [
        tree(topology, root, names, choice)
        for choice in range(max(links.values()))
        for root, beside in links.items()
        if choice < beside
    ]
    for one in trees:
        for switch, ports in one.down.items():
            if len(ports) > MAX_CHILDREN:
                raise UserError(
                    f"{where}.members: group {number}: {switch} has {len(ports)} children in a tree; "
                    f"expected at most {MAX_CHILDREN}"
                )
    return tuple(trees)


def _centres(topology: Topology, leaves: list[str]) -> list[str]:
    """Return the switches with the smallest distance to their most distant leaf, in the topology's order."""
    paths = shortest_paths(topology)
    distance = paths.distance[:, [paths.column[leaf] for leaf in leaves]]
    farthest = distance.max(axis=1)
    reaching = distance.min(axis=1) >= 0
    nearest = farthest[reaching].min(initial=farthest.max())
    return [topology.switches[row].name for row in np.flatnonzero(reaching & (farthest == nearest)).tolist()]


def _beside(switches: nx.MultiGraph[str], root: str, leaves: list[str]) -> int:
    """Return the largest number of parallel links on the paths from a root to leaves.

    It is 0 if a leaf has several paths. Combined packets use the routes from the root to their
    initiator, which have to be those of the tree.
    """
    distance = nx.single_source_shortest_path_length(switches, root)
    most = 1
    seen = {root}
    for leaf in leaves:
        node = leaf
        while node not in seen:
            seen.add(node)
            above = [there for there in switches[node] if distance[there] == distance[node] - 1]
            if len(above) != 1:
                return 0
            most = max(most, switches.number_of_edges(node, above[0]))
            node = above[0]
    return most
