"""Trees for multicast and reduction: shortest paths from a root to all nodes, or to some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import networkx as nx

from topologies.model import Topology

_T = TypeVar("_T")

@dataclass(frozen=True)
class Tree:
    """Tree of nodes connected by ports.

    `up` has each node's port towards the root, which has none itself. `down` has each node's ports
    away from the root, in increasing order.
    """

    root: str
    up: Mapping[str, int]
    down: Mapping[str, tuple[int, ...]]

    def __contains__(self, node: str) -> bool:
        return node in self.down

    def ports(self, node: str) -> tuple[int, ...]:
        """Return all ports of a node in the tree, in increasing order; none for a node outside of it."""
        up = (self.up[node],) if node in self.up else ()
        return tuple(sorted((*up, *self.down.get(node, ()))))


def tree(topology: Topology, root: str, members: Iterable[str] | None = None, choice: int = 0) -> Tree:
    """Return a tree of shortest paths.

    Parameters
    ----------
    topology
        Network.
    root
        Name of a host or switch.
    members
        Names of the nodes to reach. None: all nodes.
    choice
        Choice among equally near neighbours: different choices use different switches and parallel links, if
        there are any.

    Returns
    -------
    Tree
        Tree with the ports of each node.

    Raises
    ------
    ValueError
        For an unknown or unreachable node.
    """
    return _tree(topology, root, None if members is None else frozenset(members), choice)


@lru_cache(maxsize=256)
def _tree(topology: Topology, root: str, members: frozenset[str] | None, choice: int) -> Tree:
    graph = _graph(topology)
    missing = sorted({root, *(members or ())} - set(graph))
    if missing:
        raise ValueError(f"topology {topology.name!r} has no node {missing[0]!r}")
    distance = nx.single_source_shortest_path_length(graph, root)
    wanted = set(graph) if members is None else members
    if unreached := sorted(wanted - distance.keys()):
        raise ValueError(f"topology {topology.name!r} has no path from {root!r} to {unreached[0]!r}")
    up: dict[str, int] = {}
    down: dict[str, set[int]] = {root: set()}
    for member in sorted(wanted):
        node = member
        while node != root and node not in up:
            above = _picked(sorted(n for n in graph[node] if distance[n] == distance[node] - 1), choice)
            port = _picked([p for p, there in sorted(topology.ports[node].items()) if there.node == above], choice)
            up[node] = port
            down.setdefault(node, set())
            down.setdefault(above, set()).add(topology.ports[node][port].port)
            node = above
    return Tree(root, up, {node: tuple(sorted(ports)) for node, ports in down.items()})


@lru_cache(maxsize=8)
def _graph(topology: Topology) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(topology.ports)
    graph.add_edges_from((link.a, link.b) for link in topology.links)
    return graph


def _picked(options: list[_T], choice: int) -> _T:
    return options[choice % len(options)]
