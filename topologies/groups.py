"""Multicast groups: one host that sends, the hosts that receive, and the address that stands for them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from topologies.model import Topology
from topologies.trees import Tree, tree

ADDRESSES = IPv4Network("239.0.0.0/8")  # administratively scoped: RFC 2365
MAX_GROUPS = 0xFFFF  # what 16 bits can name, as a packet's metadata have them


@dataclass(frozen=True)
class Group:
    """A group of its own for each sender. `number` counts from 1, `source` and `members` are hosts by index."""

    number: int
    source: int
    members: tuple[int, ...]

    @property
    def address(self) -> IPv4Address:
        """Multicast address of the group."""
        return ADDRESSES.network_address + self.number

    def tree(self, topology: Topology) -> Tree:
        """Return the shortest paths from the sender to all members; groups take turns with paths of equal length."""
        hosts = topology.hosts
        members = (hosts[member].name for member in self.members)
        return tree(topology, hosts[self.source].name, members, choice=self.number - 1)
