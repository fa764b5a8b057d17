"""Chain of switches with hosts, where long flows share every hop with local ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register


@register("parking-lot")
class ParkingLot(TopologyParameters):
    """`switches` in a row with `hosts_per_switch` hosts each; host h of switch s is 10.0.s.(h + 2)."""

    switches: Annotated[int, Field(ge=2, le=250)] = 3  # number of switches in the row
    hosts_per_switch: Annotated[int, Field(ge=1, le=250)] = 2  # number of hosts on each switch
    bottleneck_rate_bps: Rate = 100_000_000_000  # rate of each link between two switches

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("parking-lot")
        chain = [builder.switch(f"s{i}", 0) for i in range(self.switches)]
        for s, switch in enumerate(chain):
            for i in range(self.hosts_per_switch):
                builder.host(f"10.0.{s}.{i + 2}", switch, self.link_rate_bps, self.link_delay_ns)
        for left, right in pairwise(chain):
            builder.link(left, right, self.bottleneck_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
