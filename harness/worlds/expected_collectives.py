"""Forecast of a run's collectives, from the hosts' assignments: operations, frames over links, time.

An operation goes up to the root of a tree, and from there over all links of the tree to the
members. The answers are combined on their way up, to one frame for each link, and the result goes
from the root to the initiator (`p4src/collective.p4`). Pushed contributions are combined in the
same way, and their result goes over all links of the tree.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.plan.run import Run
from harness.workloads.collective_record import READ_SLOT_BYTES, WRITE_SLOT_BYTES
from host_agents.assignments import (
    ALL_REDUCE,
    BARRIER,
    PUSHED_ALL_REDUCE,
    RANDOM,
    REDUCE,
    UNICAST_RANDOM,
    UNICAST_READ,
    UNICAST_WINDOW,
    Assignment,
    Joining,
    Step,
)
from host_agents.framing import FLIT_BYTES
from host_agents.lengths import ROCE
from topologies import Topology
from topologies.collectives import CollectiveGroup, trees
from topologies.routing import base_rtts
from topologies.shortest_paths import shortest_paths
from topologies.trees import Tree

_PAYLOAD_BYTES = 128  # equal to that of host_agents.collective.packets, which is compiled
_SMALL_BYTES = ROCE.header_bytes + FLIT_BYTES  # a frame with the header of collectives alone
_LARGE_BYTES = _SMALL_BYTES + _PAYLOAD_BYTES
_READ, _WRITE, _PUSH = "read", "write", "push"
_REQUEST_BYTES = {_READ: _SMALL_BYTES, _WRITE: _LARGE_BYTES, _PUSH: _LARGE_BYTES}
_ANSWER_BYTES = {_READ: _LARGE_BYTES, _WRITE: _SMALL_BYTES, _PUSH: _LARGE_BYTES}

_ByHost: TypeAlias = "defaultdict[int, float]"


@dataclass(frozen=True)
class CollectiveWork:
    """Work of all hosts.

    `model_ns` is a lower bound: the time if operations wait only for windows and links.
    """

    hosts: int = 0
    operations: float = 0.0  # the expected number, for sets that are drawn at random
    packet_hops: float = 0.0
    flits: float = 0.0  # sent by hosts
    in_flight: int = 0  # largest number of frames at once
    kept_bytes: int = 0  # memory in switches' slots and at the hosts
    model_ns: int = 0

    def until(self, limit_ns: int) -> CollectiveWork:
        """Return the share of the work that is done by the run's limit."""
        share = min(1.0, limit_ns / max(self.model_ns, 1))
        return replace(
            self,
            operations=self.operations * share,
            packet_hops=self.packet_hops * share,
            flits=self.flits * share,
            model_ns=min(self.model_ns, limit_ns),
        )


def collective_work(run: Run, assignments: Mapping[int, Assignment]) -> CollectiveWork:
    """Return the work of all assignments, by host, up to the run's limit."""
    if not assignments:
        return CollectiveWork()
    links = _Links(run)
    operations: defaultdict[str, float] = defaultdict(float)
    waits_ns: dict[int, float] = {}
    in_flight = 0.0
    for host, assignment in assignments.items():
        joined = {joining.number: joining for joining in assignment.joinings}
        cycle_ns = FLIT_BYTES * 8e9 / run.topology.uplink(run.topology.hosts[host]).rate_bps
        memory_ns = assignment.config.memory_cycles * cycle_ns
        waits_ns[host] = assignment.start_ns
        under_way = 0.0
        for step in assignment.steps:
            joining = joined.get(step.group)
            window, reached = (UNICAST_WINDOW, 1) if joining is None else (joining.window, joining.members)
            turns_ns: list[float] = [0]
            for kind, count in _operations(step, joining):
                operations[kind] += count
                links.note(kind, count, host, step)
                turn_ns = links.rtt_ns(kind, host, step) + (memory_ns if kind == _READ else 0)
                # An all-reduce writes what it has read. In other steps the kinds of operations
                # proceed at the same time.
                turns = min(1, count) if step.kind == ALL_REDUCE and kind == _WRITE else math.ceil(count / window)
                turns_ns.append(turns * turn_ns)
                under_way = max(under_way, min(count, window) * reached)
            waits_ns[host] += step.idle_ns + (sum(turns_ns) if step.kind == ALL_REDUCE else max(turns_ns))
        in_flight += under_way
    contents = sum(len(assignment.contents or b"") for assignment in assignments.values())
    return CollectiveWork(
        hosts=len(assignments),
        operations=sum(operations.values()),
        packet_hops=links.frames,
        flits=links.sent_bytes() / FLIT_BYTES,
        in_flight=round(in_flight),
        kept_bytes=contents + links.slots * (READ_SLOT_BYTES + WRITE_SLOT_BYTES),
        model_ns=round(max(max(waits_ns.values()), links.busiest_ns())),
    ).until(run.limit_ns)


def collective_bytes(assignments: Iterable[Assignment]) -> int:
    """Return the payload of all operations of these hosts, in whole packets."""
    return _PAYLOAD_BYTES * round(
        sum(
            count
            for assignment in assignments
            for joined in [{joining.number: joining for joining in assignment.joinings}]
            for step in assignment.steps
            for _, count in _operations(step, joined.get(step.group))
        )
    )


def _operations(step: Step, joining: Joining | None) -> Iterator[tuple[str, float]]:
    """Yield the operations that a host initiates in a step, by kind."""
    packets = 1 if step.kind == BARRIER else -(-step.size_bytes // _PAYLOAD_BYTES)
    if step.kind == PUSHED_ALL_REDUCE:
        yield _PUSH, packets
        return
    if joining is not None and step.initiators:
        if joining.rank not in step.initiators:
            return
        if step.kind not in (BARRIER, RANDOM):
            each = -(-packets // len(step.initiators))
            packets = max(0, min(each, packets - step.initiators.index(joining.rank) * each))
    elif joining is not None and step.kind not in (BARRIER, RANDOM):
        each = -(-packets // joining.members)
        packets = max(0, min(each, packets - joining.rank * each))
    if step.kind in (RANDOM, UNICAST_RANDOM):
        yield _READ, packets / 2
        yield _WRITE, packets / 2
        return
    if step.kind in (ALL_REDUCE, REDUCE, UNICAST_READ):
        yield _READ, packets
    if step.kind not in (REDUCE, UNICAST_READ):
        yield _WRITE, packets


class _Group:
    """Members of a group, and the mean cost of an operation over its trees, which are used in turn."""

    def __init__(self, topology: Topology, group: CollectiveGroup) -> None:
        group_trees = trees(topology, group)
        self.members = group.members
        self.links = sum(len(tree.up) for tree in group_trees) / len(group_trees)
        self.depth = {  # number of links from each member to the roots
            member: sum(_depth(topology, tree, topology.hosts[member].name) for tree in group_trees) / len(group_trees)
            for member in group.members
        }
        self.deepest = int(max(self.depth.values()))
        parents = {node for tree in group_trees for node, children in tree.down.items() if children}
        self.slots = group.slots * len(parents)
        self.operations: defaultdict[str, float] = defaultdict(float)  # operations of all members so far


def _depth(topology: Topology, tree: Tree, node: str) -> int:
    links = 0
    while node != tree.root:
        node, links = topology.ports[node][tree.up[node]].node, links + 1
    return links


class _Links:
    """Load of operations on links: frames on all links, bytes on those of hosts."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._groups = {group.number: _Group(run.topology, group) for group in run.collectives}
        self._host = {str(host.address): host.index for host in run.topology.hosts}
        self._paths = shortest_paths(run.topology)
        self._sends: _ByHost = defaultdict(float)  # bytes by host, without those that groups add
        self._receives: _ByHost = defaultdict(float)
        self.frames = 0.0
        charged = run.scenario.link_bytes
        self._request = {kind: charged(size) for kind, size in _REQUEST_BYTES.items()}
        self._answer = {kind: charged(size) for kind, size in _ANSWER_BYTES.items()}
        self.slots = sum(group.slots for group in self._groups.values())
        # By kind, and by the number of switches on the path.
        self._rtts_ns = {
            kind: base_rtts(
                run.topology, self._request[kind], self._answer[kind], run.scenario.switch.latency_ns
            ).by_switches
            for kind in self._request
        }

    def note(self, kind: str, count: float, host: int, step: Step) -> None:
        self._sends[host] += count * self._request[kind]
        self._receives[host] += count * self._answer[kind]
        if step.peer:
            peer = self._host[step.peer]
            self._receives[peer] += count * self._request[kind]
            self._sends[peer] += count * self._answer[kind]
            self.frames += 2 * count * self._between(host, peer)
            return
        group = self._groups[step.group]
        group.operations[kind] += count
        of_each = group.links / len(group.members) if kind == _PUSH else group.depth[host] + group.links
        self.frames += 2 * count * of_each  # a member's part of a push

    def rtt_ns(self, kind: str, host: int, step: Step) -> int:
        """Return a lower bound of the time until an operation on the longest path is answered."""
        if step.peer:
            switches = self._between(host, self._host[step.peer]) - 1
        else:
            switches = 2 * self._groups[step.group].deepest - 1
        by_hops = self._rtts_ns[kind]
        there_and_back_ns = by_hops.get(switches, min(by_hops.values()))
        # To the root, and back with the result.
        return there_and_back_ns // 2 if kind == _PUSH else there_and_back_ns

    def _between(self, host: int, other: int) -> int:
        topology, paths = self._run.topology, self._paths
        here, there = (topology.uplink(topology.hosts[index]).node for index in (host, other))
        return int(paths.distance[paths.row[here], paths.column[there]]) + 2

    def _bytes(self) -> tuple[_ByHost, _ByHost]:
        """Return the bytes that each host sends and receives.

        Every member receives and answers all requests.
        """
        sends, receives = self._sends.copy(), self._receives.copy()
        for group in self._groups.values():
            for kind, count in group.operations.items():
                if kind == _PUSH:
                    continue
                for member in group.members:
                    receives[member] += count * self._request[kind]
                    sends[member] += count * self._answer[kind]
        return sends, receives

    def sent_bytes(self) -> float:
        return sum(self._bytes()[0].values())

    def busiest_ns(self) -> float:
        """Return the time for which the busiest host's link is used, in ns."""
        topology = self._run.topology
        return max(
            (size * 8e9 / topology.uplink(topology.hosts[host]).rate_bps
             for way in self._bytes() for host, size in way.items()),
            default=0.0,
        )  # fmt: skip
