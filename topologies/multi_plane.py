"""Several planes: copies of one network, in each of which every server has a NIC.

Planes are connected by servers only. A server's flows use its planes in turn
(`harness.workloads.mixed`), and each flow stays in one plane.
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

_PLANE_BITS = 24  # bits of an address within a plane; each plane has a range of its own


@register("multi-plane")
class MultiPlane(TopologyParameters):
    """Planes whose node x in plane n is `p<n>-x`.

    The addresses of hosts are those of the original network plus n x 2^24.
    """

    planes: Annotated[int, Field(ge=1, le=16)] = 2  # number of planes
    of: dict[str, Any] = {"name": "fat-tree"}  # network of a plane: `name` and the topology's keys

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
            routing=plane.routing,
        )
