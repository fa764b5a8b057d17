"""Requirements of every network, including those built by foreign code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from p4switch.architectures import ports
from p4switch.errors import UserError
from topologies.model import HOST_PORT, Topology


def check(topology: Topology) -> Topology:
    """Return the network if it is valid.

    Raises UserError that names the node if hosts and P4 switches cannot be linked in this way.
    """
    where = f"topology {topology.name!r}"
    nodes = [*(host.name for host in topology.hosts), *(switch.name for switch in topology.switches)]
    if twice := _twice(nodes):
        raise UserError(f"{where}: two nodes are called {twice!r}; expected names of their own")
    if twice := _twice(str(host.address) for host in topology.hosts):
        raise UserError(f"{where}: two hosts have the address {twice}; expected addresses of their own")
    ends = [end for link in topology.links for end in ((link.a, link.a_port), (link.b, link.b_port))]
    known = set(nodes)
    for node, _ in ends:
        if node not in known:
            raise UserError(f"{where}: a link leads to {node!r}, which is neither a host nor a switch of it")
    links = Counter(node for node, _ in ends)
    for host in topology.hosts:
        if links[host.name] != 1:
            raise UserError(f"{where}: host {host.name} has {links[host.name] or 'no'} links; expected one")
    for node, port in ends:
        if node in topology.host_by_name and port != HOST_PORT:
            raise UserError(f"{where}: the link of host {node} is at port {port}; expected port {HOST_PORT}")
    for switch in topology.switches:
        count = links[switch.name]
        if count > ports.MAX_PORT:
            raise UserError(f"{where}: switch {switch.name} has {count} ports; expected at most {ports.MAX_PORT}")
    for node, port in ends:
        if not 1 <= port <= ports.MAX_PORT:
            raise UserError(f"{where}: {node} has a port {port}; expected 1 to {ports.MAX_PORT}")
    for (node, port), count in Counter(ends).items():
        if count > 1:
            raise UserError(f"{where}: port {port} of {node} has {count} links; expected one")
    if topology.routing == "ugal" and (apart := _apart_in_group(topology)):
        raise UserError(
            f"{where}: no link between {' and '.join(apart)}; expected one between each two switches of a group, as "
            "routing 'ugal' needs, without switches in NICs"
        )
    return topology


def _apart_in_group(topology: Topology) -> tuple[str, str] | None:
    """Return two switches of a group without a link between them; None if there are none."""
    linked = {end for link in topology.links for end in ((link.a, link.b), (link.b, link.a))}
    groups: dict[int, list[str]] = {}
    for name, group in topology.route_groups.items():
        groups.setdefault(group, []).append(name)
    pairs = (pair for members in groups.values() for pair in combinations(members, 2))
    return next((pair for pair in pairs if pair not in linked), None)


def _twice(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
