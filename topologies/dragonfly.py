"""Dragonflies (Kim et al., ISCA 2008): groups of fully connected switches, each group joined to every other one.

Routes are shortest paths, which may have two links between groups, or the paper's minimal paths, or
Valiant's. UGAL chooses between the last two (`topologies.group_paths`). Routes contain cycles
between groups, so with PFC packets can wait for each other. Lossless runs may therefore deadlock,
which ends them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import Self

from topologies.model import Builder, Routing, Topology
from topologies.registry import Delay, Rate, TopologyParameters, register


@register("dragonfly")
class Dragonfly(TopologyParameters):
    """Dragonfly whose switch n of group g is `s<g>-<n>`.

    A group's global links go to all other groups, the same number to each. The largest network has
    `switches_per_group` x `global_links` + 1 groups, with one link between each two.
    """

    groups: Annotated[int, Field(ge=2, le=250)] = 9  # number of groups: g
    switches_per_group: Annotated[int, Field(ge=1, le=250)] = 4  # fully connected switches of a group: a
    hosts_per_switch: Annotated[int, Field(ge=1, le=250)] = 2  # number of hosts of a switch: p
    global_links: Annotated[int, Field(ge=1, le=250)] = 2  # links of each switch to other groups: h
    fabric_rate_bps: Rate = 100_000_000_000  # rate of each link between two switches
    global_delay_ns: Delay | None = None  # delay of links between groups; none: that of all others
    # `shortest`: regardless of groups on the path; `minimal`: over one link between groups;
    # `valiant`: through a random third group; `ugal`: minimal or through a third group, by the
    # queues (`switch.load_balancing` of the same name).
    routing: Routing = "shortest"

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
        # Ends of a group's links are numbered. Those to groups at distance d follow those at
        # distance d - 1.
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
        return replace(network, route_groups=groups, routing=self.routing)
