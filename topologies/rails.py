"""Rail-optimised networks: the NICs at one place of each server share a switch, a rail.

A server has as many NICs as GPUs, and each is a host of its own here, so rank r of a workload is
GPU r mod `gpus_per_server` of server r div `gpus_per_server`. Flows between GPUs of one place stay
on their rail; others cross a spine. What servers have inside (NVLink and the like) is not modelled.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register

Count = Annotated[int, Field(ge=1, le=500)]


@register("rails")
class Rails(TopologyParameters):
    """NIC n of server s is the host 10.(s div 256).(s mod 256).(n + 2), on switch `rail<unit>-<n>`."""

    servers: Annotated[int, Field(ge=1, le=4096)] = 16  # how many
    gpus_per_server: Annotated[int, Field(ge=1, le=16)] = 8  # each with a NIC, on a rail of its own
    servers_per_unit: Count = 16  # that share rail switches; each unit has a switch a rail
    spines: Count = 8  # above the rail switches of all units
    links_per_spine: Count = 1  # from each rail switch to each spine
    fabric_rate_bps: Rate = 100_000_000_000  # of each link between a rail switch and a spine

    def build(self) -> Topology:
        """Return the network of these parameters."""
        builder = Builder("rails")
        spines = [builder.switch(f"spine{i}", 1) for i in range(self.spines)]
        units = -(-self.servers // self.servers_per_unit)
        rails = [[builder.switch(f"rail{u}-{n}", 0) for n in range(self.gpus_per_server)] for u in range(units)]
        for s in range(self.servers):
            for n, rail in enumerate(rails[s // self.servers_per_unit]):
                builder.host(f"10.{s >> 8}.{s & 255}.{n + 2}", rail, self.link_rate_bps, self.link_delay_ns)
        for unit in rails:
            for rail in unit:
                for spine in spines:
                    for _ in range(self.links_per_spine):
                        builder.link(rail, spine, self.fabric_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
