"""Connected random network, for properties that have to hold in any network."""

from __future__ import annotations

import random
from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register


@register("random")
class RandomGraph(TopologyParameters):
    """Random tree of switches with `extra_links` more links, and hosts at random switches.

    Every link has one of `rates_bps`, or `link_rate_bps` if there are none. Host h of switch s is 10.0.s.(h + 2).
    """

    switches: Annotated[int, Field(ge=1, le=250)] = 5  # number of switches
    extra_links: Annotated[int, Field(ge=0, le=1000)] = 2  # number of links between switches beyond the tree
    hosts: Annotated[int, Field(ge=2, le=250)] = 10  # number of hosts
    rates_bps: list[Rate] = []  # rates from which that of each link is drawn
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1  # seed of the network, which is independent of the run's seed

    def build(self) -> Topology:
        """Return the network of these parameters."""
        rng = random.Random(f"topology {self.seed}")
        builder = Builder("random")
        switches = [builder.switch(f"s{i}", 0) for i in range(self.switches)]

        def connect(a: str, b: str) -> None:
            builder.link(a, b, rng.choice(self.rates_bps or [self.link_rate_bps]), self.link_delay_ns)

        for i, switch in enumerate(switches[1:], start=1):
            connect(switches[rng.randrange(i)], switch)
        for _ in range(self.extra_links if self.switches > 1 else 0):
            connect(*rng.sample(switches, 2))
        hosts_of = [0] * self.switches
        for _ in range(self.hosts):
            s = rng.randrange(self.switches)
            rate_bps = rng.choice(self.rates_bps or [self.link_rate_bps])
            builder.host(f"10.0.{s}.{hosts_of[s] + 2}", switches[s], rate_bps, self.link_delay_ns)
            hosts_of[s] += 1
        return builder.build(self.model_dump())
