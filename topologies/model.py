"""Model of a network: hosts, switches, and full-duplex links between their ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Address
from typing import Literal

from p4switch.errors import UserError

Routing = Literal["shortest", "minimal", "valiant", "ugal"]
"""Paths that packets may take; all but `shortest` are by groups of switches (`topologies.group_paths`)."""

HOST_PORT = 1
"""A host has one port; ports are numbered from 1 everywhere, because P4Runtime reserves port 0."""


@dataclass(frozen=True)
class Host:
    """Host with one link.

    `index` counts hosts from 0 in the order of their addresses.
    """

    name: str
    index: int
    address: IPv4Address

    @property
    def mac(self) -> bytes:
        """02:00:a:b:c:d of IPv4 address a.b.c.d."""
        return b"\x02\x00" + self.address.packed


@dataclass(frozen=True)
class Switch:
    """Switch.

    `tier` is 0 next to the hosts; `device_id` is its P4Runtime id, from 1.
    """

    name: str
    device_id: int
    tier: int


@dataclass(frozen=True)
class Link:
    """Full-duplex link; each direction has the full rate and the same propagation delay.

    It loses the share `loss` of the frames in each direction at random. `framing_bytes` is its
    charge for a frame beyond the frame's bytes; None stands for `Topology.framing_bytes`.
    """

    a: str
    a_port: int
    b: str
    b_port: int
    rate_bps: int
    delay_ns: int
    loss: float = 0.0
    framing_bytes: int | None = None


@dataclass(frozen=True)
class Neighbour:
    """Far end of a port's link, with the link's properties.

    The link charges `extra_bytes` for a frame beyond the network's other links.
    """

    node: str
    port: int
    rate_bps: int
    delay_ns: int
    loss: float = 0.0
    extra_bytes: int = 0


@dataclass(frozen=True, eq=False)
class Topology:
    """Network with hosts, switches and links; `topologies.checks` has its requirements.

    `name` and `parameters` are those from which it was built. If servers have several NICs, each
    NIC is a host, and `servers` has the indices of each server's NICs, by name and in their order.
    If a file numbers its nodes, `host_numbers` has the indices of servers (or of hosts, if each is
    a server) by these numbers. If `routing` is by groups of switches, `route_groups` has the group
    of each switch. Networks are compared by identity.
    """

    name: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    parameters: dict[str, object] = field(default_factory=dict)
    host_numbers: Mapping[int, int] | None = None
    servers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    route_groups: Mapping[str, int] = field(default_factory=dict)
    routing: Routing = "shortest"
    framing_bytes: int = 0  # framing of links without a value of their own

    @property
    def detours(self) -> bool:
        """Whether packets may go through third groups of switches."""
        return self.routing in ("valiant", "ugal")

    @cached_property
    def ports(self) -> dict[str, dict[int, Neighbour]]:
        """Neighbours of each node by port."""
        ports: dict[str, dict[int, Neighbour]] = {node.name: {} for node in self.hosts}
        ports.update({node.name: {} for node in self.switches})
        for link in self.links:
            for node, port, other, other_port in (
                (link.a, link.a_port, link.b, link.b_port),
                (link.b, link.b_port, link.a, link.a_port),
            ):
                extra_bytes = 0 if link.framing_bytes is None else link.framing_bytes - self.framing_bytes
                ports[node][port] = Neighbour(
                    other, other_port, link.rate_bps, link.delay_ns, link.loss, extra_bytes
                )
        return ports

    @cached_property
    def host_by_name(self) -> dict[str, Host]:
        """Hosts by name."""
        return {host.name: host for host in self.hosts}

    @cached_property
    def switch_by_name(self) -> dict[str, Switch]:
        """Switches by name."""
        return {switch.name: switch for switch in self.switches}

    def uplink(self, host: Host) -> Neighbour:
        """Return the switch port that a host is attached to, with the link's rate and delay."""
        return self.ports[host.name][HOST_PORT]


def framed(topology: Topology, framing_bytes: int) -> Topology:
    """Return the network with this charge for a frame on links that have no value of their own."""
    own = any(link.framing_bytes is not None for link in topology.links)
    return _framed(topology, framing_bytes) if own else topology


@lru_cache(maxsize=8)
def _framed(topology: Topology, framing_bytes: int) -> Topology:
    return replace(topology, framing_bytes=framing_bytes)


def renumbered(topology: Topology, ports: Mapping[str, tuple[int, ...]]) -> Topology:
    """Return the network with other numbers for the ports of some switches.

    Parameters
    ----------
    topology
        Network.
    ports
        The new port numbers of each switch to be changed, by its name. They are in the order of the
        ports' present numbers (`FrontPanel.device_ports`).

    Raises
    ------
    UserError
        For a switch with more ports than `ports` has.
    """
    return _renumbered(topology, frozenset(ports.items())) if ports else topology


@lru_cache(maxsize=8)  # runs share derived values of a network
def _renumbered(topology: Topology, numbers: frozenset[tuple[str, tuple[int, ...]]]) -> Topology:
    ports_of = dict(numbers)

    def number(node: str, port: int) -> int:
        ports = ports_of.get(node)
        if ports is None:
            return port
        if port > len(ports):
            raise UserError(f"switch {node}: port {port}: expected at most {len(ports)}")
        return ports[port - 1]

    links = tuple(
        replace(link, a_port=number(link.a, link.a_port), b_port=number(link.b, link.b_port))
        for link in topology.links
    )
    return topology if links == topology.links else replace(topology, links=links)


MAX_LINKS = 1_000_000  # limit of a network's links; a fat-tree of k = 64 has 196,608


class Builder:
    """Builder of a network, which numbers ports from 1 in the order in which links are added.

    Raises UserError as soon as there are too many links.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._hosts: list[tuple[IPv4Address, str]] = []
        self._switches: list[Switch] = []
        self._links: list[Link] = []
        self._next_port: dict[str, int] = {}

    def switch(self, name: str, tier: int) -> str:
        """Add a switch and return its name.

        Parameters
        ----------
        name
            Name of the switch, which has to be new.
        tier
            Tier, counted from the hosts: 0 for ToRs.

        Returns
        -------
        str
            The name.
        """
        self._switches.append(Switch(name, len(self._switches) + 1, tier))
        self._next_port[name] = 1
        return name

    def host(self, address: str, switch: str, rate_bps: int, delay_ns: int) -> str:
        """Add a host with a link to a switch.

        Parameters
        ----------
        address
            IPv4 address, from which the name follows.
        switch
            Name of the switch.
        rate_bps
            Rate of the link, in each direction.
        delay_ns
            Propagation delay of the link.

        Returns
        -------
        str
            Name of the host.
        """
        name = self.node("h" + "-".join(str(byte) for byte in IPv4Address(address).packed[1:]), address)
        self.link(switch, name, rate_bps, delay_ns)
        return name

    def node(self, name: str, address: str) -> str:
        """Add a host of this name at `address`, still without a link, and return its name.

        Parameters
        ----------
        name
            Name of the host, which has to be new.
        address
            IPv4 address.

        Returns
        -------
        str
            The name.
        """
        self._hosts.append((IPv4Address(address), name))
        self._next_port[name] = HOST_PORT
        return name

    def link(
        self, a: str, b: str, rate_bps: int, delay_ns: int, loss: float = 0.0, framing_bytes: int | None = None
    ) -> None:
        """Add a full-duplex link between the next free ports of two nodes.

        Parameters
        ----------
        a, b
            Names of the nodes.
        rate_bps
            Rate of each direction.
        delay_ns
            Propagation delay.
        loss
            Share of frames that each direction loses at random.
        framing_bytes
            Bytes that the link charges for a frame beyond its own; None: the value of all links.

        Raises
        ------
        UserError
            For more links than a network may have.
        """
        if len(self._links) == MAX_LINKS:
            raise UserError(f"topology {self._name!r}: over {MAX_LINKS:,} links; expected a smaller network")
        self._links.append(Link(a, self._port(a), b, self._port(b), rate_bps, delay_ns, loss, framing_bytes))

    def _port(self, node: str) -> int:
        port = self._next_port[node]
        self._next_port[node] = port + 1
        return port

    def build(
        self,
        parameters: dict[str, object],
        host_numbers: Mapping[int, int] | None = None,
        servers: Mapping[str, Sequence[str]] | None = None,
    ) -> Topology:
        """Return the network.

        Parameters
        ----------
        parameters
            Parameters of the topology, for the record of a run.
        host_numbers
            Hosts by their numbers in a file that numbers them, as in `Topology`.
        servers
            Names of the NICs of each server that has several.

        Returns
        -------
        Topology
            The network.
        """
        hosts = tuple(Host(name, index, ip) for index, (ip, name) in enumerate(sorted(self._hosts)))
        index_of = {host.name: host.index for host in hosts}
        nics = {name: tuple(index_of[nic] for nic in nics) for name, nics in (servers or {}).items()}
        return Topology(self._name, hosts, tuple(self._switches), tuple(self._links), parameters, host_numbers, nics)
