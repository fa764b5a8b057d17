"""Routes by groups of switches, as in dragonflies: directly to another group, or through a third one.

These are minimal routing and Valiant's algorithm as in Kim et al., ISCA 2008. A minimal route has
one link between groups, which leads to the destination's group. With detours a packet in its first
group takes one of the group's links to third groups, each with the same probability, and a direct
path from there. With UGAL a packet may do either. Paths within a group are the shortest ones that
do not leave it, so a packet visits each group at most once.

The first links of detours are numbered, with the same numbers at all switches of a group. So each
switch knows from the number that a packet carries which link the packet takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from p4switch.errors import UserError
from topologies.model import Neighbour, Routing, Topology
from topologies.shortest_paths import Cells, Ports, shortest_paths

_NO_PATH = -1


class Ways(NamedTuple):
    """Next ports of a switch: those of direct paths, and those of detours from its group by number."""

    direct: Ports
    detours: Ports = ()


class _Exit(NamedTuple):
    """Link out of a group."""

    switch: str
    port: int
    there: Neighbour


class GroupPaths:
    """Paths of one network with `route_groups`."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._group = topology.route_groups
        self.column = shortest_paths(topology).column
        self._members: dict[int, list[str]] = {}
        self._inner: dict[str, list[tuple[int, Neighbour]]] = {}
        self._exits: dict[int, list[_Exit]] = {}
        for name, group in self._group.items():
            self._members.setdefault(group, []).append(name)
            ports = [(port, there) for port, there in sorted(topology.ports[name].items()) if there.node in self._group]
            self._inner[name] = [(port, there) for port, there in ports if self._group[there.node] == group]
            outer = (_Exit(name, port, there) for port, there in ports if self._group[there.node] != group)
            self._exits.setdefault(group, []).extend(outer)
        self._leads_to: dict[tuple[int, int], list[_Exit]] = {}
        for group, exits in self._exits.items():
            for one in exits:
                self._leads_to.setdefault((group, self._group[one.there.node]), []).append(one)
        self._distances = {name: self._search(name) for name in self._group}

    def apart(self, group: int) -> tuple[str, str] | None:
        """Return two switches of a group without a path within it; None if all are connected."""
        first, *others = self._members[group]
        return next(((first, other) for other in others if other not in self._distances[first]), None)

    def are_linked(self, one: int, other: int) -> bool:
        """Return whether there is a link between two groups."""
        return (one, other) in self._leads_to

    def _search(self, start: str) -> dict[str, int]:
        """Return the distance in links to switch `start` from each switch of its group that can reach it."""
        distances, here = {start: 0}, [start]
        while here:
            reached = {there.node: distances[name] + 1 for name in here for _, there in self._inner[name]}
            here = [name for name in reached if name not in distances]
            distances.update((name, reached[name]) for name in here)
        return distances

    def _towards(self, switch: str, target: str) -> Ports:
        """Return the ports of the first links on shortest paths to another switch of the group."""
        distance = self._distances[target]
        if switch not in distance:
            return ()
        return tuple(port for port, there in self._inner[switch] if distance[there.node] == distance[switch] - 1)

    def _nearest(self, switch: str, group: int) -> list[_Exit]:
        """Return the links to another group that are nearest to a switch."""
        exits = [one for one in self._leads_to.get((self._group[switch], group), ()) if self._joined(switch, one)]
        away = min((self._distances[one.switch][switch] for one in exits), default=0)
        return [one for one in exits if self._distances[one.switch][switch] == away]

    def _joined(self, switch: str, one: _Exit) -> bool:
        return switch in self._distances[one.switch]

    def first_ports(self, switch: str) -> tuple[Cells, list[Ways]]:
        """Return, for each destination, the index of its `Ways`, and the distinct `Ways` of the switch.

        The switch itself and unreachable destinations have no ports.
        """
        own = self._group[switch]
        sets: dict[Ways, int] = {}
        of_group: dict[int, Ways] = {}
        kinds = np.zeros(len(self.column), np.int64)
        for destination, column in self.column.items():
            group = self._group[destination]
            if group == own:
                ways = Ways(self._towards(switch, destination))
            else:
                if group not in of_group:
                    of_group[group] = Ways(self._directly(switch, group), self._detours(switch, group))
                ways = of_group[group]
            kinds[column] = sets.setdefault(ways, len(sets))
        return kinds, list(sets)

    def _directly(self, switch: str, group: int) -> Ports:
        return tuple(sorted({port for one in self._nearest(switch, group) for port in self._ports(switch, one)}))

    def _detours(self, switch: str, group: int) -> Ports:
        return tuple(self._ports(switch, one)[0] for one in self._begins(switch, group))

    def _begins(self, switch: str, group: int) -> list[_Exit]:
        """Return the links with which detours to a group may begin."""
        through = (
            one
            for one in (self._exits[self._group[switch]] if self._topology.detours else ())
            if self._group[one.there.node] != group and (self._group[one.there.node], group) in self._leads_to
        )
        return [one for one in through if self._joined(switch, one)]

    def _ports(self, switch: str, one: _Exit) -> Ports:
        return (one.port,) if one.switch == switch else self._towards(switch, one.switch)

    def mean_links(self, source: str, destination: str) -> float:
        """Return the mean number of links between two switches, over all detours, or over all paths of UGAL.

        Parameters
        ----------
        source, destination
            Names of switches that a path joins.

        Returns
        -------
        float
            Mean number of links.
        """
        group = self._group[destination]
        if group == self._group[source]:
            return self._distances[destination][source]
        begins = self._begins(source, group)
        if not begins:
            return self._direct_links(source, destination)
        detour = fmean(
            self._distances[one.switch][source] + 1 + self._direct_links(one.there.node, destination) for one in begins
        )
        return fmean((detour, self._direct_links(source, destination))) if self._adaptive(source, group) else detour

    def _direct_links(self, source: str, destination: str) -> float:
        onward = self._nearest(source, self._group[destination])
        distance = self._distances
        return fmean(distance[one.switch][source] + 1 + distance[destination][one.there.node] for one in onward)

    def costs(self, cost: Callable[[Neighbour], int]) -> dict[int, Cells]:
        """Return the largest cost of the paths between any two destinations, by the switches on the path.

        Parameters
        ----------
        cost
            Cost of a link, by its far end; a path's is their sum.

        Returns
        -------
        dict[int, Cells]
            Costs from row to column, both in the order of `column`; -1: no path over so many switches.
        """
        own = {name: self._costs_within(name, cost) for name in self._group}
        widest = max(links for costs in own.values() for links, _ in costs.values()) + 1
        most, count = 3 * widest + 1, len(self.column)
        group_of = np.array([self._group[name] for name in self.column])

        def none() -> Cells:
            return np.full((most, count), _NO_PATH, np.int64)

        def extend(into: Cells, onward: Cells, switches: int, more: int) -> None:
            longer = np.where(onward >= 0, onward + more, _NO_PATH)[: most - switches]
            np.maximum(into[switches:], longer, out=into[switches:])

        # From each switch to destinations in its own group, and then directly to those in other
        # groups.
        within: dict[str, Cells] = {}
        for name, costs in own.items():
            within[name] = none()
            for there, (links, sum_of_costs) in costs.items():
                if there in self.column:
                    within[name][links + 1, self.column[there]] = sum_of_costs
        direct: dict[str, Cells] = {}
        for name in self._group:
            direct[name] = none()
            for group in self._members:
                for one in self._nearest(name, group) if group != self._group[name] else ():
                    links, before = own[name][one.switch]
                    extend(direct[name], within[one.there.node], links + 1, before + cost(one.there))
        # From a switch over any of its own links out of the group, and directly from there.
        leaving: dict[str, Cells] = {}
        for group, exits in self._exits.items() if self._topology.detours else ():
            for one in exits:
                onward = np.where(group_of == group, _NO_PATH, direct[one.there.node])
                extend(leaving.setdefault(one.switch, none()), onward, 1, cost(one.there))
        largest = np.full((most, count, count), _NO_PATH, np.int64)
        for name, row in self.column.items():
            total = np.maximum(within[name], np.where(self._only_detoured(name, group_of), _NO_PATH, direct[name]))
            for through in self._members[self._group[name]]:
                if through in leaving and through in own[name]:
                    links, before = own[name][through]
                    extend(total, leaving[through], links, before)
            largest[:, row] = total
        return {switches: costs for switches, costs in enumerate(largest) if (costs >= 0).any()}

    def _adaptive(self, switch: str, group: int) -> bool:
        """Return whether packets to another group may go directly although there are detours."""
        return self._topology.routing == "ugal" and bool(self._nearest(switch, group))

    def _only_detoured(self, switch: str, group_of: Cells) -> npt.NDArray[np.bool_]:
        """Return whether all packets to a destination take detours, by column."""
        groups = [
            group
            for group in self._members
            if group != self._group[switch] and self._begins(switch, group) and not self._adaptive(switch, group)
        ]
        return np.isin(group_of, groups)

    def _costs_within(self, start: str, cost: Callable[[Neighbour], int]) -> dict[str, tuple[int, int]]:
        """Return the links and the largest cost of the shortest paths to each switch of a group."""
        costs, here = {start: (0, 0)}, [start]
        while here:
            reached: dict[str, tuple[int, int]] = {}
            for name in here:
                links, before = costs[name]
                for _, there in self._inner[name]:
                    if there.node not in costs:
                        reached[there.node] = max(reached.get(there.node, (0, 0)), (links + 1, before + cost(there)))
            costs.update(reached)
            here = list(reached)
        return costs


def in_groups(topology: Topology, groups: Mapping[str, int | None], routing: Routing) -> Topology:
    """Return a network whose routes are by groups of switches.

    Parameters
    ----------
    topology
        Network.
    groups
        Group of each switch; None: it has none.
    routing
        Paths by groups that packets take.

    Returns
    -------
    Topology
        The network with its groups.

    Raises
    ------
    UserError
        For a switch without a group, a group in several parts, and two groups that no link joins.
    """
    group_of: dict[str, int] = {}
    for switch in topology.switches:
        group = groups.get(switch.name)
        if group is None:
            raise UserError(f"topology.routing: switch {switch.name} has no group; expected one of each switch")
        group_of[switch.name] = group
    grouped = replace(topology, route_groups=group_of, routing=routing)
    paths = GroupPaths(grouped)
    for number in sorted(set(group_of.values())):
        apart = paths.apart(number)
        if apart is not None:
            raise UserError(f"topology.routing: group {number}: no path in it from {apart[0]} to {apart[1]}")
    for one, other in combinations(sorted(set(group_of.values())), 2):
        if not paths.are_linked(one, other):
            raise UserError(f"topology.routing: no link between groups {one} and {other}; expected one")
    return grouped


@lru_cache(maxsize=8)
def group_paths(topology: Topology) -> GroupPaths | None:
    """Return the paths of a network that routes by groups; None if it uses shortest paths."""
    return GroupPaths(topology) if topology.route_groups else None
