"""Dependencies between the queues of a lossless network, derived from the written entries.

A queue is a pair of a link and a lane. A packet that arrived over one link in one PFC class and
waits for the next link keeps its place in the buffer. So the first link's class depends on the
second's. If the dependencies have no cycle, there is no deadlock (Dally and Seitz).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import networkx as nx

from control_plane.programs.entries import Action, DefaultAction, Entry, Exact, Lpm, PortGroup, TableEntry
from topologies import Topology
from topologies.model import Neighbour

Link = tuple[str, int]  # a link, as the node and the port at which packets leave
Held = tuple[Link, Hashable]  # a link and its lane
# Switch, port at which the packet arrived, and the state that it carries.
_State = tuple[str, "int | None", Hashable]
_V = TypeVar("_V")


class Rule:
    """Rule by which packets change lanes.

    The state of a packet contains its lane, and whatever else the rule needs.
    """

    start: Hashable

    def may_deflect(self, state: Hashable) -> bool:
        raise NotImplementedError

    def after(self, state: Hashable, turned: bool, deflected: bool) -> Hashable:
        """Return the packet's state after a switch.

        The packet has `turned` if it came from a higher tier and goes to a higher tier.
        """
        raise NotImplementedError

    def lane(self, state: Hashable) -> Hashable:
        return state


@dataclass
class _Tables:
    """Relevant tables of one switch."""

    routes: list[tuple[Lpm, tuple[int, ...]]] = field(default_factory=list)
    next_lane: dict[int, int] = field(default_factory=dict)
    last: set[int] = field(default_factory=set)
    above: set[int] = field(default_factory=set)
    group_of: list[tuple[Lpm, int]] = field(default_factory=list)
    default_group: int | None = None
    candidates: dict[int, set[int]] = field(default_factory=dict)  # ports by group
    # Ports by group, from which packets can be deflected.
    normal: dict[int, set[int]] = field(default_factory=dict)

    def ports_to(self, address: int) -> tuple[int, ...]:
        return _longest(self.routes, address, ())

    def group_to(self, address: int) -> int | None:
        return _longest(self.group_of, address, self.default_group)

    def deflected_to(self, group: int | None, normal: int, came_by: int | None) -> set[int]:
        if group is None or normal not in self.normal.get(group, ()):
            return set()
        return {port for port in self.candidates.get(group, ()) if port not in (normal, came_by)}


class Written(Rule):
    """Rule of written entries of `p4src/dart.p4`: deflection and lane changes by keys with tokens.

    The paper's key has no tokens. It also matches in the last lane.
    """

    def __init__(self, tables: _Tables, start: int) -> None:
        self.start = start
        self._tables = tables

    def may_deflect(self, state: Hashable) -> bool:
        return state in self._tables.next_lane and state not in self._tables.last

    def after(self, state: Hashable, turned: bool, deflected: bool) -> Hashable:
        return self._tables.next_lane.get(state, state) if turned and isinstance(state, int) else state


def dependencies(
    topology: Topology,
    entries: Mapping[str, Sequence[Entry]],
    start: int,
    *,
    deflecting: bool = True,
    rule: Rule | None = None,
    strayed: bool = False,
) -> nx.DiGraph[Held]:
    """Return the dependencies that data packets of initial priority `start` can cause.

    They follow from the switches' entries, and the number of tokens is taken as unlimited. `rule`
    replaces the rule of the written entries. Packets that have `strayed` start on all links that
    lead up, whatever their destination. Other packets start at the switches of hosts.
    """
    search = _Search({name: _read(written) for name, written in entries.items()}, topology, deflecting, rule)
    edges = {topology.uplink(host).node: host for host in topology.hosts}
    lane = rule.start if rule else start
    starts: list[_State] = [(switch, None, lane) for switch in edges]
    if strayed:
        starts = [(there.node, there.port, lane) for rise, there in _links(topology) if rise > 0]
    for destination in edges.values():
        search.pursue(int(destination.address), list(starts))
    return nx.DiGraph(list(search.edges))


def waiting_cycle(
    topology: Topology, entries: Mapping[str, Sequence[Entry]], lanes: Sequence[int], *, deflecting: bool
) -> list[str]:
    """Return the switches of a cycle among waiting packets that start in the first lane.

    The list is empty if there is none. `deflecting` says that packets are deflected, and that they
    change lanes where they turn from down to up.

    If each link leads to another tier, packets enter the last lane over a link that leads up, and
    follow routes from there. In earlier lanes no path turns from down to up. So if there is no
    cycle with strayed packets, there is none at all; these packets are checked in a tenth of the
    time.
    """
    if deflecting and all(rise != 0 for rise, _ in _links(topology)):
        strayed = dependencies(topology, entries, lanes[-1], deflecting=False, strayed=True)
        if not cycle(strayed):
            return []
    return cycle(dependencies(topology, entries, lanes[0], deflecting=deflecting))


def _links(topology: Topology) -> Iterable[tuple[int, Neighbour]]:
    """Yield each direction of each link between switches: the tiers that it rises, and its far end."""
    tiers = {switch.name: switch.tier for switch in topology.switches}
    for name, tier in tiers.items():
        for there in topology.ports[name].values():
            if there.node in tiers:
                yield tiers[there.node] - tier, there


class _Search:
    """Search of the packets' paths, one destination after the other.

    A packet's next step at a switch depends only on the port that routing chooses. So each place is
    visited once for all destinations behind a port.
    """

    def __init__(self, tables: Mapping[str, _Tables], topology: Topology, deflecting: bool, rule: Rule | None) -> None:
        self.edges: dict[tuple[Held, Held], None] = {}  # in the order of discovery
        self._tables = tables
        self._topology = topology
        self._deflecting = deflecting
        self._rule = rule
        self._onward: dict[tuple[_State, int, int | None], list[_State]] = {}

    def pursue(self, address: int, waiting: list[_State]) -> None:
        ports = {name: (own.ports_to(address), own.group_to(address)) for name, own in self._tables.items()}
        reached = set(waiting)
        while waiting:
            at = waiting.pop()
            normal_ports, group = ports[at[0]]
            for normal in normal_ports:
                place = at, normal, group
                if place not in self._onward:
                    self._onward[place] = list(self._leaving(at, normal, group))
                for following in self._onward[place]:
                    if following not in reached:
                        reached.add(following)
                        waiting.append(following)

    def _leaving(self, at: _State, normal: int, group: int | None) -> Iterable[_State]:
        switch, came_by, state = at
        own = self._tables[switch]
        changes = self._rule or Written(own, 0)
        ports = {normal: False}
        if self._deflecting and changes.may_deflect(state):
            ports |= dict.fromkeys(own.deflected_to(group, normal, came_by), True)
        for port, deflected in ports.items():
            after = changes.after(state, came_by in own.above and port in own.above, deflected)
            if came_by is not None:
                above = self._topology.ports[switch][came_by]
                held = (above.node, above.port), changes.lane(state)
                self.edges[held, ((switch, port), changes.lane(after))] = None
            there = self._topology.ports[switch][port]
            if there.node in self._tables:
                yield there.node, there.port, after


def cycle(graph: nx.DiGraph[Held]) -> list[str]:
    """Return the switches of a cycle of links that wait for each other; empty if there is none."""
    if nx.is_directed_acyclic_graph(graph):
        return []
    return [link[0] for (link, _), _ in nx.find_cycle(graph)]


def _longest(entries: Sequence[tuple[Lpm, _V]], address: int, otherwise: _V) -> _V:
    best, value_of_longest = -1, otherwise
    for prefix, value in entries:
        if prefix.prefix_len > best and (address ^ prefix.value) >> 32 - prefix.prefix_len == 0:
            best, value_of_longest = prefix.prefix_len, value
    return value_of_longest


def _read(entries: Sequence[Entry]) -> _Tables:
    tables = _Tables()
    groups = {entry.group_id: entry.ports for entry in entries if isinstance(entry, PortGroup)}
    for entry in entries:
        if isinstance(entry, DefaultAction) and entry.table == "candidate_group" and entry.action.name == "candidates":
            tables.default_group = entry.action.params["group_id"]
        elif isinstance(entry, TableEntry) and isinstance(entry.action, Action):
            _add(tables, groups, entry.table, entry.match, entry.action)
    return tables


def _add(
    tables: _Tables, groups: Mapping[int, tuple[int, ...]], table: str, match: Mapping[str, object], action: Action
) -> None:
    params = action.params
    prefix = match.get("dst_addr")
    exact = {name: key.value for name, key in match.items() if isinstance(key, Exact)}
    if table == "ipv4_lpm" and isinstance(prefix, Lpm) and action.name in ("forward", "balance"):
        tables.routes.append((prefix, groups[params["group_id"]] if "group_id" in params else (params["port"],)))
    elif table == "candidate_group" and isinstance(prefix, Lpm):
        tables.group_of.append((prefix, params["group_id"]))
    elif table == "lane":
        tables.next_lane[exact["priority"]] = params["next_priority"]
        if params["last"]:
            tables.last.add(exact["priority"])
    elif table == "to_above":
        tables.above.add(exact["port"])
    elif table == "candidate":
        tables.candidates.setdefault(exact["group"], set()).add(params["candidate_port"])
    elif table == "normal_port":
        tables.normal.setdefault(exact["group"], set()).add(exact["port"])
