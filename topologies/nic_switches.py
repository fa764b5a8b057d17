"""Switch in each NIC, so that the host's link begins at a P4 pipeline.

ACCurate needs it, because it has a contention point in front of every network link, including those
of the hosts (section II).
"""

from __future__ import annotations

from dataclasses import replace

from topologies.model import HOST_PORT, Link, Switch, Topology

NETWORK_PORT = 2
# Delay between the NIC's engine and its pipeline, which cannot be 0 because the fabric's clock
# needs a shortest link.
ON_BOARD_DELAY_NS = 10


def nic_switch_name(host: str) -> str:
    """Return the name of the switch in a host's NIC, or before the links of its bond."""
    return f"nic-{host}"


def nodes_of(topology: Topology, name: str) -> set[str]:
    """Return the name of a node and, if the node is a server, the names of its NICs."""
    return {name, *(topology.hosts[nic].name for nic in topology.servers.get(name, ()))}


def link_ends(topology: Topology, name: str) -> set[str]:
    """Return the nodes at which the links of a node end.

    Parameters
    ----------
    topology
        Network.
    name
        Name of a switch, a host or a server.

    Returns
    -------
    set[str]
        The node itself, the NICs of a server, and the switch in a host's NIC.
    """
    names = nodes_of(topology, name)
    switches = map(nic_switch_name, names & topology.host_by_name.keys())
    return names | (set(switches) & topology.switch_by_name.keys())


def with_nic_switches(topology: Topology) -> Topology:
    """Return the network with a switch `nic-<host>` in each host's link.

    Port 1 leads to the host, port 2 to the network.
    """
    hosts = topology.host_by_name
    switches = list(topology.switches)
    links: list[Link] = []
    for link in topology.links:
        host = next((end for end in (link.a, link.b) if end in hosts), None)
        if host is None:
            links.append(link)
            continue
        nic = Switch(nic_switch_name(host), len(switches) + 1, 0)
        switches.append(nic)
        if link.a == host:
            links.append(replace(link, a=nic.name, a_port=NETWORK_PORT))
        else:
            links.append(replace(link, b=nic.name, b_port=NETWORK_PORT))
        on_board = Link(nic.name, HOST_PORT, host, HOST_PORT, link.rate_bps, ON_BOARD_DELAY_NS)
        links.append(replace(on_board, framing_bytes=link.framing_bytes))
    groups = dict(topology.route_groups)
    if groups:
        groups |= {nic_switch_name(host.name): groups[topology.uplink(host).node] for host in topology.hosts}
    return replace(topology, switches=tuple(switches), links=tuple(links), route_groups=groups)
