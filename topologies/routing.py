"""Shortest-path routes with equal-cost next hops, aggregated to prefixes; and what a path costs when it is empty.

Addresses are hierarchical (10.pod.rack.host), so a switch needs one route a rack or pod instead of one a host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network
from itertools import permutations
from types import MappingProxyType

import networkx as nx

from topologies.model import Host, Neighbour, Topology

Ports = tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """A longest-prefix-match entry: the ports among which ECMP chooses, in increasing order."""

    prefix: IPv4Network
    ports: Ports


@lru_cache(maxsize=8)
def _next_hops(topology: Topology) -> dict[str, dict[str, Ports]]:
    """For each switch and each switch with hosts on it: the ports that begin a shortest path there."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    graph.add_edges_from((link.a, link.b) for link in topology.links if link.a in graph and link.b in graph)
    edges = sorted({topology.uplink(host).node for host in topology.hosts})
    hops: dict[str, dict[str, Ports]] = {switch.name: {} for switch in topology.switches}
    for edge in edges:
        distance = nx.single_source_shortest_path_length(graph, edge)
        for switch, table in hops.items():
            if switch != edge and switch in distance:
                nearer = distance[switch] - 1
                table[edge] = tuple(
                    port for port, there in sorted(topology.ports[switch].items()) if distance.get(there.node) == nearer
                )
    return hops


@lru_cache(maxsize=8)
def _racks(topology: Topology) -> dict[int, list[Host]]:
    """Hosts by the 24-bit prefix of their addresses."""
    racks: dict[int, list[Host]] = {}
    for host in topology.hosts:
        racks.setdefault(int(host.address) >> 8, []).append(host)
    return racks


def routes(topology: Topology, switch: str) -> list[Route]:
    """The routes of one switch, longest prefixes first; a host that cannot be reached has none."""
    hops = _next_hops(topology)[switch]
    found: list[Route] = []
    level: dict[int, Ports] = {}
    for rack, hosts in _racks(topology).items():
        ends = [topology.uplink(host) for host in hosts]
        if len({end.node for end in ends}) == 1 and ends[0].node != switch:
            if ports := hops.get(ends[0].node, ()):
                level[rack] = ports
            continue
        for host, end in zip(hosts, ends, strict=True):
            if ports := (end.port,) if end.node == switch else hops.get(end.node, ()):
                found.append(_route(int(host.address), 32, ports))
    for length in (24, 16):
        exceptions, level = _aggregate(level, length)
        found += exceptions
    found += [_route(prefix, 8, ports) for prefix, ports in level.items()]
    return found


def has_choices(topology: Topology) -> bool:
    """Whether there are several shortest paths between any two switches with hosts."""
    return any(len(ports) > 1 for table in _next_hops(topology).values() for ports in table.values())


def _route(prefix: int, length: int, ports: Ports) -> Route:
    return Route(IPv4Network((prefix << (32 - length), length)), ports)


def _aggregate(level: dict[int, Ports], length: int) -> tuple[list[Route], dict[int, Ports]]:
    """Covers prefixes that agree by one 8 bits shorter; returns the routes that differ from theirs, and the covers.

    A prefix without another that agrees stays as it is: a cover would attract addresses that do not exist.
    """
    children: dict[int, list[int]] = {}
    for prefix in level:
        children.setdefault(prefix >> 8, []).append(prefix)
    exceptions: list[Route] = []
    covers: dict[int, Ports] = {}
    for cover, prefixes in children.items():
        ports, count = Counter(level[prefix] for prefix in prefixes).most_common(1)[0]
        if count > 1:
            covers[cover] = ports
        exceptions += [_route(p, length, level[p]) for p in prefixes if covers.get(cover) != level[p]]
    return exceptions, covers


def path(topology: Topology, source: Host, destination: Host) -> list[Neighbour]:
    """The links of one shortest path, each as what is at its far end; the first of equals at every switch."""
    hops = _next_hops(topology)
    last = topology.uplink(destination)
    links = [topology.uplink(source)]
    while links[-1].node != last.node:
        port = hops[links[-1].node][last.node][0]
        links.append(topology.ports[links[-1].node][port])
    links.append(topology.ports[last.node][last.port])
    return links


def transit_ns(links: list[Neighbour], wire_bytes: int, switch_latency_ns: int = 0) -> int:
    """Time for one packet over empty links, stored and forwarded at each hop (serialization rounded up)."""
    wires = sum(link.delay_ns + -(-wire_bytes * 8 * 10**9 // link.rate_bps) for link in links)
    return wires + (len(links) - 1) * switch_latency_ns


def base_rtt_ns(
    topology: Topology, source: Host, destination: Host, data_bytes: int, ack_bytes: int, switch_latency_ns: int = 0
) -> int:
    """Round trip of a data packet and its ACK (bytes on the wire) in an empty network, without host delays."""
    there, back = path(topology, source, destination), path(topology, destination, source)
    return _round_trip_ns(there, back, data_bytes, ack_bytes, switch_latency_ns)


def _round_trip_ns(
    there: list[Neighbour], back: list[Neighbour], data_bytes: int, ack_bytes: int, switch_latency_ns: int
) -> int:
    return transit_ns(there, data_bytes, switch_latency_ns) + transit_ns(back, ack_bytes, switch_latency_ns)


@lru_cache(maxsize=64)
def base_rtts_ns(
    topology: Topology, data_bytes: int, ack_bytes: int, switch_latency_ns: int = 0
) -> Mapping[int, int]:
    """The largest base RTT between any two hosts, by the number of switches between them."""
    # Hosts on one switch with equal links are alike: one of each kind will do, and a second for pairs within a kind.
    kinds: dict[tuple[str, int, int], list[Host]] = {}
    for host in topology.hosts:
        up = topology.uplink(host)
        kinds.setdefault((up.node, up.rate_bps, up.delay_ns), []).append(host)
    firsts = [hosts[0] for hosts in kinds.values()]
    pairs = [*permutations(firsts, 2), *((hosts[0], hosts[1]) for hosts in kinds.values() if len(hosts) > 1)]
    paths = {(a, b): path(topology, a, b) for a, b in {*pairs, *((b, a) for a, b in pairs)}}
    largest: dict[int, int] = {}
    for a, b in pairs:
        hops = len(paths[a, b]) - 1
        rtt_ns = _round_trip_ns(paths[a, b], paths[b, a], data_bytes, ack_bytes, switch_latency_ns)
        largest[hops] = max(rtt_ns, largest.get(hops, 0))
    return MappingProxyType(largest)
