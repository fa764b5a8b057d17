"""Rail-optimised networks: the NICs at one place of each server share a switch, a rail.

A server has one NIC per GPU, and each NIC is a host here, so rank r of a workload is GPU r mod
`gpus_per_server` of server r div `gpus_per_server`. Flows between GPUs at the same place stay on
their rail; others cross a spine. Links within servers (such as NVLink) are not modelled.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topologies.model import Builder, Topology
from topologies.registry import Rate, TopologyParameters, register

Count = Annotated[int, Field(ge=1, le=500)]


@register("rails")
class Rails(TopologyParameters):
    """Rails: NIC n of server s is the host 10.(s div 256).(s mod 256).(n + 2), on switch `rail<unit>-<n>`."""

    servers: Annotated[int, Field(ge=1, le=4096)] = 16  # number of servers
    # Number of GPUs of a server, each with a NIC on its own rail.
    gpus_per_server: Annotated[int, Field(ge=1, le=16)] = 8
    servers_per_unit: Count = 16  # number of servers that share rail switches; each unit has a switch per rail
    spines: Count = 8  # number of spines above the rail switches of all units
    links_per_spine: Count = 1  # number of links from each rail switch to each spine
    fabric_rate_bps: Rate = 100_000_000_000  # rate of each link between a rail switch and a spine

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
