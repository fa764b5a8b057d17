"""Traffic of several groups in one run: each has hosts, a workload and a start of its own.

A group's workload sees a network of only the group's hosts, numbered from 0. Its flows carry the
group's name and the run's numbers of hosts.

If servers have several NICs, workloads see each server as one host whose link has the rate of all
its NICs. A server's flows take its NICs in turn, and arrive at the NIC of the same number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.workloads.base import Flow, Traffic
from p4switch.errors import UserError
from topologies import Topology

if TYPE_CHECKING:
    from harness.workloads.collective_record import CollectiveReport

_MISTAKES = "mistakes"  # key of a workload's summary with mistakes, for which a run fails


@dataclass(frozen=True)
class Part:
    """Traffic of a group, with the group's properties.

    The traffic numbers its hosts from 0. `hosts` has, for each of these, its number in the run; for a server it has
    the numbers of all its NICs. None: both numbers are the same.
    """

    name: str
    traffic: Traffic
    hosts: Sequence[Sequence[int]] | None = None
    start_ns: int = 0
    priority: int | None = None
    _turns: Counter[object] = field(default_factory=Counter)  # numbers of flows by server and by queue pair

    def of_run(self, flow: Flow, moved_ns: int = 0) -> Flow:
        """Return a flow of the group with the run's numbers, `moved_ns` later."""
        moved = flow if self.hosts is None else copy(flow)
        if self.hosts is not None:
            moved.origin = None if self.traffic.independent else flow
            turn = self._turn(flow)
            moved.source, moved.destination = self._nic(flow.source, turn), self._nic(flow.destination, turn)
            moved.further_sources = tuple(self._nic(host, turn) for host in flow.further_sources)
            moved.further_destinations = tuple(self._nic(host, turn) for host in flow.further_destinations)
            if flow.incast is not None:
                moved.incast = flow.incast[0], tuple(self._nic(host, turn) for host in flow.incast[1])
        moved.start_ns += moved_ns
        if moved.stop_ns is not None:
            moved.stop_ns += moved_ns
        if self.name:
            moved.group = moved.part = self.name
            moved.qp = None if flow.qp is None else f"{self.name} {flow.qp}"
        if self.priority is not None:
            moved.priority = self.priority
        return moved

    @property
    def has_servers(self) -> bool:
        """True if a flow that follows another one may start at another NIC of the same server."""
        return self.hosts is not None and any(len(nics) > 1 for nics in self.hosts)

    def has(self, owns: Callable[[int], bool], host: int) -> bool:
        """Return whether a worker has a host of the group, whose hosts have one NIC each."""
        return owns(host if self.hosts is None else self.hosts[host][0])

    def _nic(self, host: int, turn: int) -> int:
        """Return the run's number of a host, or of the next NIC of a server."""
        assert self.hosts is not None
        nics = self.hosts[host]
        return nics[turn % len(nics)]

    def _turn(self, flow: Flow) -> int:
        """Return the number of the source's NIC for a flow.

        Messages of one queue pair use the same NIC, and other flows take the NICs in turn. Each
        server has its own counter.
        """
        assert self.hosts is not None
        ends = flow.source, flow.destination
        few = min(len(self.hosts[end]) for end in ends)
        if few == 1:
            return 0
        key = None if flow.qp is None else (*ends, flow.qp)
        if key in self._turns and key is not None:
            return self._turns[key]
        turn = (flow.source + self._turns[flow.source]) % few
        self._turns[flow.source] += 1
        if key is not None:
            self._turns[key] = turn
        return turn


class Mixed(Traffic):
    """Traffic of all parts; each part gets the events of its own flows, in its own numbers."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Join the parts.

        Raises UserError for a group with collectives, because switches support only those of the
        scenario's workload.
        """
        self._parts = parts
        self._by_name = {part.name: part for part in parts}
        assignments: dict[int, Any] = {}
        for part in parts:
            if part.name and part.traffic.assignments:
                raise UserError(f"groups: {part.name!r}: only the scenario's own workload can have collectives")
            assignments.update(part.traffic.assignments)
        flows = [part.of_run(flow, part.start_ns) for part in parts for flow in part.traffic.flows]
        super().__init__(flows, assignments)
        self.failed_links = tuple(link for part in parts for link in part.traffic.failed_links)

    @property
    def independent(self) -> bool:
        return all(part.traffic.independent for part in self._parts)

    @property
    def local(self) -> bool:
        return all(part.traffic.local and not part.has_servers for part in self._parts)

    @property
    def flow_bytes(self) -> int | None:
        sizes = [part.traffic.flow_bytes for part in self._parts]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        part = self._by_name[flow.part]
        return [part.of_run(one) for one in part.traffic.on_delivered(flow.origin or flow, now_ns)]

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        part = self._by_name[flow.part]
        return [part.of_run(one) for one in part.traffic.on_completed(flow.origin or flow, now_ns)]

    def on_end(self, reports: Mapping[int, CollectiveReport]) -> None:
        for part in self._parts:
            part.traffic.on_end({} if part.name else reports)

    def part(self, owns: Callable[[int], bool]) -> list[object]:
        return [part.traffic.part(partial(part.has, owns)) for part in self._parts]

    def join(self, part: list[Any]) -> None:
        for one, own in zip(self._parts, part, strict=True):
            one.traffic.join(own)

    def summary(self) -> dict[str, Any]:
        """Return the measurements of the scenario's workload, and those of its groups by name."""
        figures: dict[str, Any] = {}
        mistakes: list[Any] = []
        for part in self._parts:
            own = dict(part.traffic.summary())
            mistakes += own.pop(_MISTAKES, [])
            if part.name and own:
                figures[part.name] = own
            elif not part.name:
                figures |= own
        return {**figures, **({_MISTAKES: mistakes} if mistakes else {})}


def as_servers(topology: Topology) -> Topology:
    """Return the network in the form that workloads see.

    Each server is a host, whose link has the rate of all its NICs.
    """
    if not topology.servers:
        return topology
    hosts, links = [], {}
    for index, (name, nics) in enumerate(topology.servers.items()):
        first = topology.hosts[nics[0]]
        hosts.append(replace(first, name=name, index=index))
        links[first.name] = name, sum(topology.uplink(topology.hosts[nic]).rate_bps for nic in nics)
    others = {host.name for host in topology.hosts} - set(links)
    kept = []
    for link in topology.links:
        if link.a in others or link.b in others:
            continue
        end = next((end for end in (link.a, link.b) if end in links), None)
        if end is not None:
            name, rate_bps = links[end]
            a, b = (name, link.b) if end == link.a else (link.a, name)
            link = replace(link, a=a, b=b, rate_bps=rate_bps)
        kept.append(link)
    return replace(topology, hosts=tuple(hosts), links=tuple(kept), servers={})


def hosts_like(topology: Topology, patterns: Sequence[str], where: str) -> list[int] | None:
    """Return the numbers of the hosts whose names match; None: all.

    Raises UserError if fewer than two match.
    """
    if not patterns:
        return None
    hosts = [host.index for host in topology.hosts if any(fnmatchcase(host.name, pattern) for pattern in patterns)]
    if len(hosts) < 2:
        example = topology.hosts[0].name
        raise UserError(
            f"{where}.hosts: {len(hosts) or 'no'} host{'' if len(hosts) == 1 else 's'} of topology {topology.name!r} "
            f"{'is' if len(hosts) == 1 else 'are'} called so; expected at least two, "
            f"as names or patterns of names ({example})"
        )
    return hosts


def network_of(topology: Topology, hosts: Sequence[int] | None) -> Topology:
    """Return the network with only some of its hosts, numbered from 0."""
    if hosts is None:
        return topology
    kept = tuple(replace(topology.hosts[number], index=index) for index, number in enumerate(hosts))
    names = {host.name for host in kept} | set(topology.switch_by_name)
    links = tuple(link for link in topology.links if link.a in names and link.b in names)
    place = {number: index for index, number in enumerate(hosts)}
    numbers = topology.host_numbers
    if numbers is not None:
        numbers = {number: place[host] for number, host in numbers.items() if host in place}
    return replace(topology, hosts=kept, links=links, host_numbers=numbers)
