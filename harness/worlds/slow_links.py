"""Bottleneck of each flow: the link of its path that takes longest for its total traffic.

Links between switches that carry their traffic as fast as it is sent are ignored. Flows take a
random path, like ECMP's hash, or all shortest paths at once if packets of a flow take several.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from harness.plan.run import Run
from topologies.model import Neighbour
from topologies.shortest_paths import shortest_paths

_LONGER = 1.001  # ratio above the rounding errors of equal times


@dataclass(frozen=True)
class Bottleneck:
    """Receiver's link, or links between switches over which packets are spread."""

    key: Hashable  # equal for the same links
    packets_per_ns: float  # rate of all its links together
    switches: frozenset[str]  # the switches before its links


@dataclass(frozen=True)
class Sent:
    """Data that a flow's sender sends to one receiver if nothing limits it."""

    source: int
    destination: int
    packets: int
    begin_ns: float
    end_ns: float


@dataclass
class _Load:
    """Traffic over a bottleneck in the whole run."""

    packets: int = 0
    begin_ns: float = math.inf
    end_ns: float = 0.0

    def add(self, sent: Sent) -> None:
        """Count the packets of a flow."""
        self.packets += sent.packets
        self.begin_ns = min(self.begin_ns, sent.begin_ns)
        self.end_ns = max(self.end_ns, sent.end_ns)


class SlowLinks:
    """Links of a run's network as used by its flows."""

    def __init__(self, run: Run, packet_ns: Sequence[float]) -> None:
        """Prepare the network; `packet_ns` has the time of a packet on each host's link."""
        self._topology = run.topology
        self._packet_ns = packet_ns
        self._packet_bits = 8 * run.scenario.link_bytes(run.data_bytes)
        self._paths = shortest_paths(run.topology)
        self._spread = run.per_packet
        self._random = random.Random(run.seed)
        self._first_ports: dict[str, tuple[list[int], list[tuple[int, ...]]]] = {}
        self._stages: dict[tuple[str, str], list[Bottleneck]] = {}

    def receiver(self, host: int) -> Bottleneck:
        """Return the link to a host."""
        switch = self._topology.uplink(self._topology.hosts[host]).node
        return Bottleneck(host, 1 / self._packet_ns[host], frozenset((switch,)))

    def slowest(self, flows: Sequence[Sent]) -> list[Bottleneck]:
        """Return the bottleneck of each flow.

        Parameters
        ----------
        flows
            Traffic of the run.

        Returns
        -------
        list of Bottleneck
            One for each flow; the receiver's link if no other one is slower.
        """
        crossed: list[list[Bottleneck]] = []
        loads: dict[Hashable, _Load] = {}
        for sent in flows:
            links = [self.receiver(sent.destination), *self._between(sent.source, sent.destination)]
            crossed.append(links)
            for link in links:
                loads.setdefault(link.key, _Load()).add(sent)
        chosen = []
        for receiver, *others in crossed:
            slowest, longest_ns = receiver, loads[receiver.key].packets / receiver.packets_per_ns
            for link in others:
                load = loads[link.key]
                needed_ns = load.packets / link.packets_per_ns
                if needed_ns > longest_ns * _LONGER and needed_ns > (load.end_ns - load.begin_ns) * _LONGER:
                    slowest, longest_ns = link, needed_ns
            chosen.append(slowest)
        return chosen

    def _between(self, source: int, destination: int) -> list[Bottleneck]:
        """Return the links between switches that a flow uses, on a random path if its packets take only one."""
        hosts = self._topology.hosts
        here, there = (self._topology.uplink(hosts[host]).node for host in (source, destination))
        if not self._spread:
            return list(self._walk(here, there))
        stages = self._stages.get((here, there))
        if stages is None:
            stages = self._stages[here, there] = list(self._spread_out(here, there))
        return stages

    def _walk(self, here: str, there: str) -> Iterator[Bottleneck]:
        while here != there and (ports := self._ports(here, there)):
            port = ports[self._random.randrange(len(ports))]
            yield self._bottleneck([(here, port)])
            here = self._topology.ports[here][port].node

    def _spread_out(self, here: str, there: str) -> Iterator[Bottleneck]:
        nodes = {here}
        while there not in nodes and (links := [(node, port) for node in nodes for port in self._ports(node, there)]):
            yield self._bottleneck(links)
            nodes = {self._topology.ports[node][port].node for node, port in links}

    def _bottleneck(self, links: Sequence[tuple[str, int]]) -> Bottleneck:
        far = (self._topology.ports[node][port] for node, port in links)
        return Bottleneck(frozenset(links), sum(map(self._packets_per_ns, far)), frozenset(node for node, _ in links))

    def _packets_per_ns(self, link: Neighbour) -> float:
        return link.rate_bps / (1e9 * (self._packet_bits + 8 * link.extra_bytes))

    def _ports(self, here: str, there: str) -> tuple[int, ...]:
        """Return the ports of a switch that lead closer to another one, which has hosts."""
        known = self._first_ports.get(here)
        if known is None:
            kinds, sets = self._paths.first_ports(here)
            known = self._first_ports[here] = kinds.tolist(), sets
        kinds_of, sets_of = known
        return sets_of[kinds_of[self._paths.column[there]]]
