"""Shortest paths between the switches of a network and those with hosts, as arrays.

Networks of thousands of switches have tens of millions of them.

Each switch with hosts is a destination, and `column` has its number. Links to hosts are not
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from topologies.model import Neighbour, Topology

Ports = tuple[int, ...]
Cells = npt.NDArray[np.int64]

_WORD_BYTES = 8
_COLUMNS_AT_ONCE = 256  # columns of temporary arrays


class ShortestPaths:
    """Shortest paths of one network.

    Rows are switches in the topology's order.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.row = {switch.name: row for row, switch in enumerate(topology.switches)}
        self.destinations = sorted({topology.uplink(host).node for host in topology.hosts})
        self.column = {name: column for column, name in enumerate(self.destinations)}
        self._sets: dict[Ports, Ports] = {}  # equal sets share one object

    @cached_property
    def _between(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Ports of each switch to other switches, in increasing order, with the rows of those switches."""
        neighbours = []
        for switch in self._topology.switches:
            ports = sorted(self._topology.ports[switch.name].items())
            inner = [(port, self.row[there.node]) for port, there in ports if there.node in self.row]
            pairs = np.array(inner, np.int64).reshape(-1, 2)
            neighbours.append((pairs[:, 0], pairs[:, 1]))
        return neighbours

    @cached_property
    def distance(self) -> npt.NDArray[np.int16]:
        """Number of links from each switch to each destination, -1 without a path.

        One search starts from all destinations at once and proceeds link by link. Each switch has a
        bit for each destination that has reached it.
        """
        switches, destinations = len(self.row), len(self.destinations)
        words = -(-destinations // (8 * _WORD_BYTES))
        distances = np.full((switches, destinations), -1, np.int16)
        starts = np.array([self.row[name] for name in self.destinations])
        distances[starts, range(destinations)] = 0
        here = _packed(distances == 0, words)
        reached = here.copy()
        linked = np.array([row for row, (_, there) in enumerate(self._between) if len(there)], np.int64)
        degrees = [len(self._between[row][1]) for row in linked]
        neighbours = np.concatenate([self._between[row][1] for row in linked]) if len(linked) else linked
        begins = np.cumsum([0, *degrees[:-1]])
        distance = 0
        while len(linked) and here.any():
            distance += 1
            following = np.zeros_like(reached)
            following[linked] = np.bitwise_or.reduceat(here[neighbours], begins, axis=0)
            here = following & ~reached
            reached |= here
            distances[np.unpackbits(here.view(np.uint8), axis=1, count=destinations).astype(bool)] = distance
        return distances

    @cached_property
    def _cells(self) -> memoryview:
        """View of `distance` for access to single cells."""
        return self.distance.data

    def first_ports(self, switch: str) -> tuple[npt.NDArray[np.int64], list[Ports]]:
        """Return, for each destination, the index of its set of first ports, and the distinct sets.

        First ports are those of shortest paths. The set is empty for the switch itself and for
        unreachable destinations.
        """
        ports, _ = self._between[self.row[switch]]
        nearer = self._nearer(self.row[switch], slice(None))
        words = -(-max(len(ports), 1) // (8 * _WORD_BYTES))
        kind: npt.NDArray[np.int64] = np.zeros(len(self.destinations), np.int64)
        for word in _packed(nearer.T, words).T:
            _, part = np.unique(word, return_inverse=True)
            _, kind = np.unique(kind * len(kind) + part, return_inverse=True)
        _, examples = np.unique(kind, return_index=True)
        return kind, [self._one(tuple(ports[nearer[:, example]].tolist())) for example in examples]

    def first_port(self, switch: str, destination: str) -> int:
        """Return the first of the equal ports towards a destination.

        Parameters
        ----------
        switch
            Name of a switch.
        destination
            Name of the switch at the path's end.

        Returns
        -------
        int
            Number of the port.

        Raises
        ------
        ValueError
            If there is no path, or its end is reached.
        """
        row, column = self.row[switch], self.column[destination]
        ports, there = self._between[row]
        wanted = self._cells[row, column] - 1
        for i, other in enumerate(there.tolist() if wanted >= 0 else ()):
            if self._cells[other, column] == wanted:
                return int(ports[i])
        raise ValueError(f"topology {self._topology.name!r} has no path from {switch} to {destination}")

    def _nearer(self, row: int, columns: slice) -> npt.NDArray[np.bool_]:
        """Return whether a port leads closer to a destination, by port and destination."""
        own = self.distance[row, columns]
        nearer: npt.NDArray[np.bool_] = (self.distance[self._between[row][1], columns] == own - 1) & (own > 0)
        return nearer

    def _one(self, ports: Ports) -> Ports:
        return self._sets.setdefault(ports, ports)

    def costs(self, cost: Callable[[Neighbour], int]) -> Cells:
        """Return the cost of the path between any two destinations.

        The path takes the first of equal ports at every switch. Its cost is the sum of the links' costs, which depend
        on their far ends; 0 without a path.
        """
        rows = [self.row[name] for name in self.destinations]
        of_ports = [
            np.array([cost(self._topology.ports[switch.name][port]) for port in ports.tolist()], np.int64)
            for switch, (ports, _) in zip(self._topology.switches, self._between, strict=True)
        ]
        totals = np.zeros((len(rows), len(rows)), np.int64)
        for columns, taken, onward in self._first_of_equals():
            distance = self.distance[:, columns]
            sums = np.zeros(distance.shape, np.int64)
            for row, own in enumerate(of_ports):
                if len(own):
                    sums[row] = own[taken[row]]
            sums[distance <= 0] = 0
            for links in range(2, int(distance.max(initial=0)) + 1):
                at = np.nonzero(distance == links)
                sums[at] += sums[onward[at], at[1]]
            totals[:, columns] = sums[rows]
        return totals

    def _first_of_equals(self) -> Iterator[tuple[slice, Cells, Cells]]:
        """Yield, for some destinations at a time, the first port that leads closer, as an index, and its row."""
        for begin in range(0, len(self.destinations), _COLUMNS_AT_ONCE):
            columns = slice(begin, min(begin + _COLUMNS_AT_ONCE, len(self.destinations)))
            taken = np.zeros((len(self.row), columns.stop - begin), np.int64)
            onward = np.zeros_like(taken)
            for row, (ports, there) in enumerate(self._between):
                if len(ports):
                    taken[row] = np.argmax(self._nearer(row, columns), axis=0)
                    onward[row] = there[taken[row]]
            yield columns, taken, onward


@lru_cache(maxsize=8)
def shortest_paths(topology: Topology) -> ShortestPaths:
    """Return the shortest paths of a topology, cached while it is in use."""
    return ShortestPaths(topology)


def _packed(bits: npt.NDArray[np.bool_], words: int) -> npt.NDArray[np.uint64]:
    """Return each row as 64-bit numbers."""
    octets = np.zeros((len(bits), words * _WORD_BYTES), np.uint8)
    packed = np.packbits(bits, axis=1)
    octets[:, : packed.shape[1]] = packed
    return octets.view(np.uint64)
