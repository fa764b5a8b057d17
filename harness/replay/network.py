"""A topology as the page draws it: nodes by tiers, in pods where it has some."""

from __future__ import annotations

from typing import Any

import networkx as nx

from topologies import Topology

NO_POD = -1


class Network:
    """Nodes by number, hosts first, and directions of links by number: 2 i is link i's from a to b, 2 i + 1 back."""

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
        """That which begins at a port. In tables a host's port is 0."""
        return self._direction[node, port or 1]

    def drawn(self) -> dict[str, Any]:
        """Nodes as [name, tier, pod], tier 0 the hosts'; links as [a, b, rate_bps, delay_ns, a_port, b_port]."""
        tiers, pods = self._tiers(), self._pods()
        return {
            "name": self.topology.name,
            "hosts": len(self.topology.hosts),
            "nodes": [[name, tiers.get(name, 1), pods.get(name, NO_POD)] for name in self.names],
            "links": [
                [self.index[link.a], self.index[link.b], link.rate_bps, link.delay_ns, link.a_port, link.b_port]
                for link in self.topology.links
            ],
        }

    def _graph(self) -> nx.Graph[str]:
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((link.a, link.b) for link in self.topology.links)
        return graph

    def _tiers(self) -> dict[str, int]:
        """How many links lie between a node and the nearest host."""
        layers = nx.bfs_layers(self._graph(), [host.name for host in self.topology.hosts])
        return {name: tier for tier, layer in enumerate(layers) for name in layer}

    def _pods(self) -> dict[str, int]:
        """What hangs together without the uppermost tier, if that is several parts with several hosts each."""
        tiers = self._tiers()
        top = max(tiers.values())
        below = self._graph().subgraph(name for name, tier in tiers.items() if tier < top)
        parts = sorted(nx.connected_components(below), key=lambda part: min(self.index[name] for name in part))
        if len(parts) < 2 or 2 * len(parts) > len(self.topology.hosts):
            return {}
        return {name: pod for pod, part in enumerate(parts) for name in part}
