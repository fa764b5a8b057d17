"""Two switches with hosts on both sides and one link between them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register


@register("dumbbell")
class Dumbbell(TopologyParameters):
    """`pairs` hosts on each side; left ones are 10.0.0.x, right ones 10.0.1.x."""

    pairs: Annotated[int, Field(ge=1, le=250)] = 2  # hosts on each side
    bottleneck_rate_bps: Rate = 100_000_000_000  # rate of the link between the two switches

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("dumbbell")
        left, right = sides = [builder.switch("s0", 0), builder.switch("s1", 0)]
        for side, switch in enumerate(sides):
            for i in range(self.pairs):
                builder.host(f"10.0.{side}.{i + 2}", switch, self.link_rate_bps, self.link_delay_ns)
        builder.link(left, right, self.bottleneck_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
