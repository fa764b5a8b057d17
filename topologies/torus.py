"""Tori: switches in a grid of any number of dimensions, each joined to its two neighbours in each of them.

Routes are shortest paths. They use the ring of a dimension in both directions, so with PFC packets
can wait for each other in a cycle. Lossless runs may therefore deadlock, which ends them.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Annotated

from pydantic import Field, field_validator

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register

_MOST_SWITCHES = 1 << 16


@register("torus")
class Torus(TopologyParameters):
    """Torus, whose switch `s1-0-3` is at 1, 0, 3.

    `link_rate_bps` is the hosts' rate, `fabric_rate_bps` that of other links.
    """

    # Number of switches in each dimension; two switches that are neighbours in both directions have
    # one link.
    sizes: Annotated[list[Annotated[int, Field(ge=1, le=1024)]], Field(min_length=1, max_length=6)] = [4, 4]
    hosts_per_switch: Annotated[int, Field(ge=1, le=250)] = 1  # number of hosts on each switch
    fabric_rate_bps: Rate = 100_000_000_000  # rate of each link between two switches

    @field_validator("sizes")
    @classmethod
    def _not_too_many(cls, sizes: list[int]) -> list[int]:
        if prod(sizes) > _MOST_SWITCHES:
            raise ValueError(f"should make at most {_MOST_SWITCHES} switches")
        return sizes

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("torus")
        places = list(product(*map(range, self.sizes)))
        names = {place: builder.switch("s" + "-".join(map(str, place)), 0) for place in places}
        for number, place in enumerate(places):
            for host in range(self.hosts_per_switch):
                address = f"10.{number >> 8}.{number & 255}.{host + 2}"
                builder.host(address, names[place], self.link_rate_bps, self.link_delay_ns)
        for place in places:
            for dimension, size in enumerate(self.sizes):
                after = (place[dimension] + 1) % size
                if size == 1 or (size == 2 and after == 0):
                    continue
                there = (*place[:dimension], after, *place[dimension + 1 :])
                builder.link(names[place], names[there], self.fabric_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
