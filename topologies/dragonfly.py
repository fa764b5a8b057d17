"""Dragonflies (Kim et al., ISCA 2008): groups of fully connected switches, each group joined to every other one.

Routes are shortest paths, some of which have two links between groups, or the paper's minimal or
Valiant's (`topologies.group_paths`). From group to group and back they make circles, so with PFC
packets can wait for each other: lossless runs may come to a deadlock, which ends them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from topologies.model import Builder, Topology
from topologies.registry import Delay, Rate, TopologyParameters, register


@register("dragonfly")
class Dragonfly(TopologyParameters):
    """Switch n of group g is `s<g>-<n>`. A group's global links go to all other groups, as many to each.

    The largest has `switches_per_group` x `global_links` + 1 groups, with one link between each two.
    """

    groups: Annotated[int, Field(ge=2, le=250)] = 9  # how many: g
    switches_per_group: Annotated[int, Field(ge=1, le=250)] = 4  # fully connected: a
    hosts_per_switch: Annotated[int, Field(ge=1, le=250)] = 2  # p
    global_links: Annotated[int, Field(ge=1, le=250)] = 2  # of each switch to other groups: h
    fabric_rate_bps: Rate = 100_000_000_000  # of each link between two switches
    global_delay_ns: Delay | None = None  # of links between groups; none: as of all others
    # `shortest`: whatever groups are on the way; `minimal`: by one link between groups; `valiant`: by a third group at
    # random, as switch.load_balancing = "valiant" does.
    routing: Literal["shortest", "minimal", "valiant"] = "shortest"

    @model_validator(mode="after")
    def _enough_links(self) -> Self:
        ends = self.switches_per_group * self.global_links
        if ends < self.groups - 1:
            raise ValueError(f"{ends} global links of a group do not reach {self.groups - 1} other groups")
        return self

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("dragonfly")
        names: list[list[str]] = []
        for g in range(self.groups):
            names.append([builder.switch(f"s{g}-{n}", 0) for n in range(self.switches_per_group)])
            for n, switch in enumerate(names[g]):
                for host in range(self.hosts_per_switch):
                    builder.host(f"10.{g}.{n}.{host + 2}", switch, self.link_rate_bps, self.link_delay_ns)
        for members in names:
            for one, other in combinations(members, 2):
                builder.link(one, other, self.fabric_rate_bps, self.link_delay_ns)
        delay_ns = self.link_delay_ns if self.global_delay_ns is None else self.global_delay_ns
        # Ends of a group are numbered; those of distance d, in groups, follow those of distance d - 1.
        each = self.switches_per_group * self.global_links // (self.groups - 1)
        for g, there_g in combinations(range(self.groups), 2):
            distance = there_g - g
            for link in range(each):
                here = ((distance - 1) * each + link) // self.global_links
                there = ((self.groups - distance - 1) * each + link) // self.global_links
                builder.link(names[g][here], names[there_g][there], self.fabric_rate_bps, delay_ns)
        network = builder.build(self.model_dump())
        if self.routing == "shortest":
            return network
        groups = {name: g for g, members in enumerate(names) for name in members}
        return replace(network, route_groups=groups, detours=self.routing == "valiant")
