"""Two tiers: leaves with the hosts, and spines, each of which is linked to every leaf.

The defaults are the testbed of SMaRTT-REPS (section 4.1.1): 16 hosts at 100 Gb/s, two leaves and two spines, 400 Gb/s
between them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register

Count = Annotated[int, Field(ge=1, le=250)]


@register("leaf-spine")
class LeafSpine(TopologyParameters):
    """Leaf-spine: `link_rate_bps` is the hosts' rate, `fabric_rate_bps` that of each leaf-spine link."""

    leaves: Count = 2  # switches with hosts
    spines: Count = 2  # switches that join the leaves
    hosts_per_leaf: Count = 8  # number of hosts on each leaf
    links_per_spine: Count = 1  # number of links from each leaf to each spine
    fabric_rate_bps: Rate = 400_000_000_000  # rate of each link between a leaf and a spine

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("leaf-spine")
        spines = [builder.switch(f"spine{i}", 1) for i in range(self.spines)]
        for rack in range(self.leaves):
            leaf = builder.switch(f"leaf{rack}", 0)
            for host in range(self.hosts_per_leaf):
                builder.host(f"10.0.{rack}.{host + 2}", leaf, self.link_rate_bps, self.link_delay_ns)
            for spine in spines:
                for _ in range(self.links_per_spine):
                    builder.link(leaf, spine, self.fabric_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
