"""Multicast groups: a sending host, the receiving hosts, and their common address."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from topologies.model import Topology
from topologies.trees import Tree, tree

ADDRESSES = IPv4Network("239.0.0.0/8")  # administratively scoped: RFC 2365
MAX_GROUPS = 0xFFFF  # range of the 16-bit group number in a packet's metadata


@dataclass(frozen=True)
class Group:
    """Multicast group of one sender.

    `number` counts from 1; `source` and `members` are hosts by index.
    """

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
