"""Shortest-path routes with equal-cost next hops, aggregated to prefixes, and delays of empty paths.

Addresses are hierarchical (10.pod.rack.host), so a switch needs one route per rack or pod instead
of one per host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import IPv4Network
from itertools import zip_longest
from types import MappingProxyType

import numpy as np

from topologies.group_paths import Ways, group_paths
from topologies.model import Host, Neighbour, Topology
from topologies.shortest_paths import Cells, Ports, shortest_paths

_UNREACHED = -1  # stands for an empty set of ports


@dataclass(frozen=True)
class Route:
    """Longest-prefix-match entry with the ports among which ECMP chooses, in increasing order.

    With detours a packet that starts in the switch's group takes one of `detours` instead, if there
    are any.
    """

    prefix: IPv4Network
    ports: Ports
    detours: Ports = ()


@dataclass(frozen=True)
class _Rack:
    """Hosts whose addresses share their first 24 bits, and the switch of each, or of all of them."""

    prefix: int
    hosts: list[Host]
    ends: list[Neighbour]
    switch: str | None


class _Routes:
    """Routes of a network's switches.

    Switches without hosts and with equal next hops share one list.
    """

    def __init__(self, topology: Topology) -> None:
        self._paths = shortest_paths(topology)
        self._grouped = group_paths(topology)
        racks: dict[int, list[Host]] = {}
        for host in topology.hosts:
            racks.setdefault(int(host.address) >> 8, []).append(host)
        self._whole: list[_Rack] = []  # racks behind one switch each
        self._others: list[_Rack] = []
        self._own: dict[str, list[_Rack]] = {}
        for prefix, hosts in racks.items():
            ends = [topology.uplink(host) for host in hosts]
            switches = {end.node for end in ends}
            rack = _Rack(prefix, hosts, ends, ends[0].node if len(switches) == 1 else None)
            if rack.switch is None:
                self._others.append(rack)
            else:
                self._whole.append(rack)
                self._own.setdefault(rack.switch, []).append(rack)
        self._columns = np.array([self._paths.column[str(rack.switch)] for rack in self._whole], np.int64)
        self._made: dict[tuple[bytes, tuple[Ways, ...]], list[Route]] = {}

    def of(self, switch: str) -> list[Route]:
        kinds, sets = self.first_ways(switch)
        if switch in self._paths.column:
            return self._make(switch, kinds.tolist(), sets)
        key = kinds.tobytes(), tuple(sets)
        if key not in self._made:
            self._made[key] = self._make(switch, kinds.tolist(), sets)
        return self._made[key]

    def first_ways(self, switch: str) -> tuple[Cells, list[Ways]]:
        if self._grouped is not None:
            return self._grouped.first_ports(switch)
        kinds, sets = self._paths.first_ports(switch)
        return kinds, [Ways(ports) for ports in sets]

    def _make(self, switch: str, kinds: list[int], sets: Sequence[Ways]) -> list[Route]:
        column = self._paths.column
        routes = [
            _route(int(host.address), 32, ways)
            for rack in sorted([*self._own.get(switch, ()), *self._others], key=lambda rack: rack.hosts[0].index)
            for host, end in zip(rack.hosts, rack.ends, strict=True)
            if any(ways := Ways((end.port,)) if end.node == switch else sets[kinds[column[end.node]]])
        ]
        # By number, so that sets of many ports need not be compared with each prefix.
        level = {
            rack.prefix: kinds[there] if any(sets[kinds[there]]) or rack.switch == switch else _UNREACHED
            for rack, there in zip(self._whole, self._columns.tolist(), strict=True)
        }
        for rack in self._own.get(switch, ()):
            del level[rack.prefix]
        for length in (24, 16):
            exceptions, level = _aggregate(level)
            routes += [_route(prefix, length, sets[kind]) for prefix, kind in exceptions]
        return routes + [_route(prefix, 8, sets[kind]) for prefix, kind in level.items() if kind != _UNREACHED]


@lru_cache(maxsize=8)
def _routes_of(topology: Topology) -> _Routes:
    return _Routes(topology)


def routes(topology: Topology, switch: str) -> Sequence[Route]:
    """Return the routes of one switch.

    Parameters
    ----------
    topology
        Network.
    switch
        Name of the switch.

    Returns
    -------
    Sequence[Route]
        Routes, longest prefixes first; an unreachable host has none.
    """
    return _routes_of(topology).of(switch)


@lru_cache(maxsize=8)
def _departures(topology: Topology) -> Mapping[int, Mapping[IPv4Network, set[str]]]:
    """Return by group the prefixes of the hosts whose packets start detours there, and these hosts' switches."""
    hosts = [(host, topology.uplink(host).node) for host in topology.hosts if topology.detours]
    groups: dict[int, set[int]] = {}  # by rack
    for host, switch in hosts:
        groups.setdefault(int(host.address) >> 8, set()).add(topology.route_groups[switch])
    by_group: dict[int, dict[IPv4Network, set[str]]] = {}
    for host, switch in hosts:
        prefix = _rack_of(host) if len(groups[int(host.address) >> 8]) == 1 else IPv4Network(host.address)
        by_group.setdefault(topology.route_groups[switch], {}).setdefault(prefix, set()).add(switch)
    return by_group


def _rack_of(host: Host) -> IPv4Network:
    return IPv4Network((int(host.address) & ~0xFF, 24))


def departures(topology: Topology, switch: str) -> Mapping[IPv4Network, bool]:
    """Return the prefixes of the hosts whose packets start detours in a switch's group.

    The value is True if all packets from the prefix enter the network at this switch.
    """
    switches = _departures(topology).get(topology.route_groups.get(switch, -1))
    if switches is None:
        return {}
    first = {prefix: at == {switch} for prefix, at in switches.items()}
    nodes = (there.node for there in topology.ports[switch].values())
    for host in (topology.host_by_name[node] for node in nodes if node in topology.host_by_name):
        if not first.get(_rack_of(host), True):
            first[IPv4Network(host.address)] = True
    return first


def exits(topology: Topology, switch: str) -> frozenset[int]:
    """Return the ports of a switch that lead to other groups of switches."""
    group = topology.route_groups
    ports = topology.ports[switch].items() if group else ()
    return frozenset(port for port, there in ports if group.get(there.node, group[switch]) != group[switch])


def has_choices(topology: Topology) -> bool:
    """Return whether several paths exist between any two switches with hosts."""
    if topology.detours:
        return True
    routes = _routes_of(topology)
    return any(len(ways.direct) > 1 for switch in topology.switches for ways in routes.first_ways(switch.name)[1])


def _route(prefix: int, length: int, ways: Ways) -> Route:
    return Route(IPv4Network((prefix << (32 - length), length)), ways.direct, ways.detours)


def _aggregate(level: dict[int, int]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Merge prefixes with equal routes into covers that are one byte shorter.

    Returns (exceptions, covers), where exceptions are the prefixes that no cover represents. A
    prefix without an equal one is not merged, because a cover would attract addresses that do not
    exist. An unreachable prefix is never covered, because packets to it would circulate between
    switches.
    """
    children: dict[int, list[int]] = {}
    for prefix in level:
        children.setdefault(prefix >> 8, []).append(prefix)
    exceptions: list[tuple[int, int]] = []
    covers: dict[int, int] = {}
    for cover, prefixes in children.items():
        kind, count = Counter(level[prefix] for prefix in prefixes).most_common(1)[0]
        if any(level[prefix] == _UNREACHED for prefix in prefixes):
            covers[cover] = _UNREACHED
        elif count > 1:
            covers[cover] = kind
        exceptions += [
            (prefix, level[prefix])
            for prefix in prefixes
            if level[prefix] not in (covers.get(cover), _UNREACHED)
        ]
    return exceptions, covers


def apart(topology: Topology) -> tuple[Host, Host] | None:
    """Return two hosts without a path between them; None if all are connected.

    If servers have several NICs, only NICs with the same number have to be connected, because each
    number may have a network of its own.
    """
    paths = shortest_paths(topology)
    planes = zip_longest(*topology.servers.values()) if topology.servers else [range(len(topology.hosts))]
    for plane in planes:
        hosts = [topology.hosts[index] for index in plane if index is not None]
        on = {topology.uplink(host).node: host for host in reversed(hosts)}
        columns = [place for place, name in enumerate(paths.destinations) if name in on]
        rows = [paths.row[paths.destinations[place]] for place in columns]
        missing = np.argwhere(paths.distance[np.ix_(rows, columns)] < 0)
        if len(missing):
            first, second = (paths.destinations[columns[place]] for place in missing[0].tolist())
            return on[first], on[second]
    return None


def joins(topology: Topology, one: Host, other: Host) -> bool:
    """Return whether there is a path between two hosts."""
    paths = shortest_paths(topology)
    row, column = paths.row[topology.uplink(one).node], paths.column[topology.uplink(other).node]
    return bool(paths.distance[row, column] >= 0)


def path(topology: Topology, source: Host, destination: Host) -> list[Neighbour]:
    """Return one shortest path; at every switch it takes the first of equal ports.

    Parameters
    ----------
    topology
        Network.
    source, destination
        Hosts.

    Returns
    -------
    list[Neighbour]
        Far ends of the links, in order.

    Raises
    ------
    ValueError
        If there is no path.
    """
    paths = shortest_paths(topology)
    last = topology.uplink(destination)
    links = [topology.uplink(source)]
    while links[-1].node != last.node:
        port = paths.first_port(links[-1].node, last.node)
        links.append(topology.ports[links[-1].node][port])
    links.append(topology.ports[last.node][last.port])
    return links


def _kind(link: Neighbour) -> tuple[int, int, int]:
    return link.rate_bps, link.delay_ns, link.extra_bytes


def _wire_ns(link: Neighbour, wire_bytes: int) -> int:
    return link.delay_ns - (-(wire_bytes + link.extra_bytes) * 8 * 10**9 // link.rate_bps)


def transit_ns(links: list[Neighbour], wire_bytes: int, switch_latency_ns: int = 0) -> int:
    """Return the time of one packet over empty links, stored and forwarded at each hop.

    Parameters
    ----------
    links
        Far ends of the links of the path.
    wire_bytes
        Size that links charge.
    switch_latency_ns
        Latency of each switch.

    Returns
    -------
    int
        Time in ns from the first bit to the arrival of the last; serialization is rounded up.
    """
    return sum(_wire_ns(link, wire_bytes) for link in links) + (len(links) - 1) * switch_latency_ns


def base_rtt_ns(
    topology: Topology, source: Host, destination: Host, data_bytes: int, ack_bytes: int, switch_latency_ns: int = 0
) -> int:
    """Return the round trip of a data packet and its ACK in an empty network, without host delays.

    Parameters
    ----------
    topology
        Network.
    source, destination
        Hosts.
    data_bytes, ack_bytes
        Sizes that links charge.
    switch_latency_ns
        Latency of each switch.

    Returns
    -------
    int
        Round trip in ns.

    Raises
    ------
    ValueError
        If there is no path.
    """
    there, back = path(topology, source, destination), path(topology, destination, source)
    return transit_ns(there, data_bytes, switch_latency_ns) + transit_ns(back, ack_bytes, switch_latency_ns)


@dataclass(frozen=True, eq=False)
class BaseRtts:
    """Largest base RTTs between hosts, by kinds of links.

    A kind of link has a rate, a delay and a framing. `kinds` has the kind of each host's link, by
    index, and `rates_bps` is by kind. `between` has, for two kinds, the largest base RTT by the
    number of switches on the path, from 0; it is 0 if no two such hosts have that distance. Pairs
    of kinds without two such hosts are left out.
    """

    kinds: tuple[int, ...]
    rates_bps: tuple[int, ...]
    between: Mapping[tuple[int, int], tuple[int, ...]]

    @cached_property
    def filling(self) -> Mapping[int | None, int]:
        """Largest base RTT between hosts that can fill a link, by the kind of the link.

        For a kind of hosts' links, the fastest pairs with a host on such a link are compared. For
        links between switches (key None), the fastest of all pairs are compared. A pair is as fast
        as the slower one of its two links.
        """
        best: dict[int | None, tuple[int, int]] = {}
        for pair, rtts_ns in self.between.items():
            candidate = min(self.rates_bps[one] for one in pair), max(rtts_ns)
            for kind in (None, *pair):
                best[kind] = max(best.get(kind, candidate), candidate)
        return {kind: rtt_ns for kind, (_, rtt_ns) in best.items()}

    @cached_property
    def by_switches(self) -> Mapping[int, int]:
        """Largest base RTT between any two hosts, by the number of switches between them."""
        largest_ns: dict[int, int] = {}
        for rtts_ns in self.between.values():
            for switches, rtt_ns in enumerate(rtts_ns):
                if rtt_ns:
                    largest_ns[switches] = max(rtt_ns, largest_ns.get(switches, 0))
        return MappingProxyType(largest_ns)


def _between(
    topology: Topology, there: Callable[[Neighbour], int], back: Callable[[Neighbour], int], latency_ns: int
) -> Iterator[tuple[Cells, Cells]]:
    """Yield the number of switches on the paths between destinations, and the round-trip costs.

    The number is 0 if there is no path. Costs include switches and links in both directions. With
    detours there are several paths, and the way back is the longest one.
    """
    grouped = group_paths(topology)
    if grouped is None:
        paths = shortest_paths(topology)
        switches = paths.distance[[paths.row[node] for node in paths.destinations]].astype(np.int64) + 1
        yield switches, paths.costs(there) + paths.costs(back).T + 2 * latency_ns * switches
        return
    ways_back = [np.where(costs >= 0, costs + count * latency_ns, 0) for count, costs in grouped.costs(back).items()]
    longest = np.max(ways_back, axis=0).T
    for count, costs in grouped.costs(there).items():
        yield np.where(costs >= 0, count, 0), costs + count * latency_ns + longest


@lru_cache(maxsize=64)
def base_rtts(topology: Topology, data_bytes: int, ack_bytes: int, switch_latency_ns: int = 0) -> BaseRtts:
    """Return the base RTTs of a network.

    Parameters
    ----------
    topology
        Network.
    data_bytes, ack_bytes
        Sizes that links charge.
    switch_latency_ns
        Latency of each switch.

    Returns
    -------
    BaseRtts
        The largest base RTTs by kinds of hosts' links and numbers of switches, in ns.
    """
    # Hosts on one switch with equal links are equivalent, so only the number of hosts of each kind
    # counts.
    ups = [topology.uplink(host) for host in topology.hosts]
    kinds = Counter((up.node, _kind(up)) for up in ups)
    firsts = {(up.node, _kind(up)): up for up in ups}
    paths = shortest_paths(topology)
    at = np.array([paths.column[node] for node, _ in kinds])
    ways = list(
        _between(
            topology,
            lambda link: _wire_ns(link, data_bytes),
            lambda link: _wire_ns(link, ack_bytes),
            switch_latency_ns,
        )
    )
    own = np.array([_wire_ns(firsts[kind], data_bytes) + _wire_ns(firsts[kind], ack_bytes) for kind in kinds])
    alone = np.array([count == 1 for count in kinds.values()])
    link_kinds = {kind: number for number, kind in enumerate(dict.fromkeys(kind for _, kind in kinds))}
    link_kind = np.array([link_kinds[kind] for _, kind in kinds])
    largest: dict[tuple[int, int], dict[int, int]] = {}
    for i, (switches, between) in ((i, way) for i in range(len(at)) for way in ways):
        hops = switches[at[i], at]
        rtts_ns = own[i] + own + between[at[i], at]
        if alone[i]:
            hops[i] = 0
        there = hops > 0
        groups, group = np.unique(link_kind[there] * (hops.max(initial=0) + 1) + hops[there], return_inverse=True)
        most = np.zeros(len(groups), np.int64)
        np.maximum.at(most, group, rtts_ns[there])
        for (kind, some), rtt_ns in zip(
            (divmod(code, int(hops.max(initial=0)) + 1) for code in groups.tolist()), most.tolist(), strict=True
        ):
            of_pair = largest.setdefault((int(link_kind[i]), kind), {})
            of_pair[some] = max(rtt_ns, of_pair.get(some, 0))
    by_pair = {
        pair: tuple(rtts.get(some, 0) for some in range(max(rtts) + 1)) for pair, rtts in largest.items() if rtts
    }
    return BaseRtts(
        tuple(link_kinds[_kind(up)] for up in ups),
        tuple(rate for rate, _, _ in link_kinds),
        MappingProxyType(by_pair),
    )
