"""Several planes: copies of one network side by side, and each server has a NIC in every one of them.

Planes meet in servers only. A server's flows take its planes in turn (`harness.workloads.mixed`), and
stay in one.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Annotated, Any

from pydantic import Field

from p4switch.errors import UserError
from topologies import registry
from topologies.model import Topology
from topologies.registry import TopologyParameters, register

_PLANE_BITS = 24  # of an address: a plane's hosts follow those of the one before


@register("multi-plane")
class MultiPlane(TopologyParameters):
    """Plane n of node x is `p<n>-x`; its hosts have the addresses of that network, n x 2^24 further."""

    planes: Annotated[int, Field(ge=1, le=16)] = 2  # how many
    of: dict[str, Any] = {"name": "fat-tree"}  # a plane's network: `name`, and what that takes

    def build(self) -> Topology:
        """Return the network of these parameters."""
        own = {"link_rate_bps": self.link_rate_bps, "link_delay_ns": self.link_delay_ns, **self.of}
        name = own.pop("name", None)
        if not isinstance(name, str):
            raise UserError("topology.of: expected a table with the name of a topology, as in { name = 'fat-tree' }")
        plane = registry.build(name, own, "topology.of")
        if plane.servers or plane.host_numbers:
            raise UserError(f"topology.of: {name!r}: expected a topology whose hosts have one NIC and no numbers")
        count, switches = len(plane.hosts), len(plane.switches)
        hosts, nodes, links = [], [], []
        for p in range(self.planes):
            for host in plane.hosts:
                address = IPv4Address(int(host.address) + (p << _PLANE_BITS))
                hosts.append(replace(host, name=f"p{p}-{host.name}", index=p * count + host.index, address=address))
            for switch in plane.switches:
                nodes.append(replace(switch, name=f"p{p}-{switch.name}", device_id=p * switches + switch.device_id))
            links += [replace(link, a=f"p{p}-{link.a}", b=f"p{p}-{link.b}") for link in plane.links]
        servers = {host.name: tuple(p * count + host.index for p in range(self.planes)) for host in plane.hosts}
        of_a_plane = max(plane.route_groups.values(), default=0) + 1
        groups = {
            f"p{p}-{name}": p * of_a_plane + group
            for p in range(self.planes)
            for name, group in plane.route_groups.items()
        }
        return Topology(
            "multi-plane",
            tuple(hosts),
            tuple(nodes),
            tuple(links),
            self.model_dump(),
            servers=servers,
            route_groups=groups,
            detours=plane.detours,
        )
