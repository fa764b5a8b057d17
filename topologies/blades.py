"""A direct network: nodes that compute and forward, in groups, blades and between blades (ACCurate, figure 5a).

The nodes of a group are fully connected. One node of each group, its network node, is connected to those of all other
groups of the blade. Blades are connected by links between the network nodes of their first groups.
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.nic_switches import ON_BOARD_DELAY_NS
from topologies.registry import TopologyParameters, register

Count = Annotated[int, Field(ge=1, le=250)]


@register("blades")
class Blades(TopologyParameters):
    """Node n of group g of blade b is the host 10.b.g.(n + 2) with a switch n<b>-<g>-<n> beside it.

    All links between two blades join the same two nodes. If several groups had such links, shortest
    paths could enter a blade at one group and return at another. Buffers would then wait for each
    other in a cycle, which can deadlock with PFC.
    """

    blades: Count = 2  # number of blades
    groups_per_blade: Count = 4  # number of groups in each blade
    nodes_per_group: Count = 4  # number of nodes in each group, each a host with a switch
    links_between_blades: Count = 2  # number of links between each two blades

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("blades")
        gateways = [self._blade(builder, b) for b in range(self.blades)]
        for one, other in combinations(gateways, 2):
            for _ in range(self.links_between_blades):
                builder.link(one, other, self.link_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())

    def _blade(self, builder: Builder, b: int) -> str:
        """Add a blade and return the network node of its first group."""
        network = []
        for g in range(self.groups_per_blade):
            nodes = [builder.switch(f"n{b}-{g}-{n}", 0) for n in range(self.nodes_per_group)]
            for n, node in enumerate(nodes):
                builder.host(f"10.{b}.{g}.{n + 2}", node, self.link_rate_bps, ON_BOARD_DELAY_NS)
            self._connect_all(builder, nodes)
            network.append(nodes[0])
        self._connect_all(builder, network)
        return network[0]

    def _connect_all(self, builder: Builder, nodes: list[str]) -> None:
        for one, other in combinations(nodes, 2):
            builder.link(one, other, self.link_rate_bps, self.link_delay_ns)
