"""N hosts on one switch: the papers' incast network (17 or 97 hosts, 100 Gb/s, 1 us links)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import TopologyParameters, register


@register("single-switch")
class SingleSwitch(TopologyParameters):
    """One switch with all hosts."""

    hosts: Annotated[int, Field(ge=2, le=250)] = 17  # number of hosts

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("single-switch")
        switch = builder.switch("s0", 0)
        for i in range(self.hosts):
            builder.host(f"10.0.0.{i + 2}", switch, self.link_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
