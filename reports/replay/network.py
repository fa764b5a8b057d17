"""Topology in the form that the page draws: nodes by tiers, and by pods and planes if it has them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import networkx as nx

from topologies import Topology

NO_PART = -1


class Network:
    """Nodes and directions of links by number.

    Hosts are the first nodes. Direction 2 i is link i's from a to b, and 2 i + 1 is the other one.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.names = [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]
        self.index = {name: i for i, name in enumerate(self.names)}
        self._direction = {
            end: 2 * i + back
            for i, link in enumerate(topology.links)
            for back, end in enumerate(((link.a, link.a_port), (link.b, link.b_port)))
        }

    def direction(self, node: str, port: int) -> int:
        """Return the direction that begins at a port; in tables a host's port has number 0."""
        return self._direction[node, port or 1]

    def drawn(self) -> dict[str, Any]:
        """Return nodes as [name, tier, part], links as [a, b, rate_bps, delay_ns, a_port, b_port].

        Hosts have tier 0. Parts are pods, followed by planes; `pods` is the number of pods.
        """
        pods = self._pods()
        parts = {name: number for number, part in enumerate([*pods, *self._planes(pods)]) for name in part}
        return {
            "name": self.topology.name,
            "hosts": len(self.topology.hosts),
            "pods": len(pods),
            "nodes": [[name, self._tiers.get(name, 1), parts.get(name, NO_PART)] for name in self.names],
            "links": [
                [self.index[link.a], self.index[link.b], link.rate_bps, link.delay_ns, link.a_port, link.b_port]
                for link in self.topology.links
            ],
        }

    @cached_property
    def _graph(self) -> nx.Graph[str]:
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((link.a, link.b) for link in self.topology.links)
        return graph

    @cached_property
    def _tiers(self) -> dict[str, int]:
        """Number of links between each node and the nearest host."""
        layers = nx.bfs_layers(self._graph, [host.name for host in self.topology.hosts])
        return {name: tier for tier, layer in enumerate(layers) for name in layer}

    def _pods(self) -> list[set[str]]:
        """Return the groups of nodes that stay connected without the top tier, if several have several hosts each."""
        top = max(self._tiers.values())
        below = self._graph.subgraph(name for name, tier in self._tiers.items() if tier < top)
        parts = sorted(nx.connected_components(below), key=lambda part: min(self.index[name] for name in part))
        return parts if 2 <= len(parts) <= len(self.topology.hosts) // 2 else []

    def _planes(self, pods: Sequence[set[str]]) -> Iterator[list[str]]:
        """Yield the planes above pods: groups of switches with links to the same switches."""
        inside = set().union(*pods)
        alike: dict[frozenset[str], list[str]] = defaultdict(list)
        for name in self.names if pods else ():
            if name not in inside:
                alike[frozenset(self._graph[name])].append(name)
        return (names for names in alike.values() if len(names) > 1)
