"""Networks that files describe: from nodes and links by name to hosts with addresses, and switches with tiers.

Hosts are numbered, and get their addresses, in the order of the file. Consecutive hosts on one
switch share 24 bits of their addresses. Ports of switches are numbered in the order of the links. A
switch's tier is its distance in links from the nearest switch with hosts. A host with several links
is a server with one NIC per link, each with its own address. Alternatively its links are a bond
behind one NIC, with a switch in front of it that distributes flows among them.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from p4switch.errors import UserError
from topologies.model import Builder, Topology
from topologies.nic_switches import ON_BOARD_DELAY_NS, nic_switch_name
from topologies.registry import TopologyParameters

MOST_NODES = 1 << 18
_FIRST_HOST, _MOST_HOSTS = 2, 250  # first number and largest number of hosts of a 24-bit prefix
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")  # also valid as the name of a file and of a Linux interface


class FileTopology(TopologyParameters):
    """A network in a file."""

    file: str  # relative to the scenario
    # Kind of a host with several links: a server with one NIC per link, or one NIC behind a switch
    # that bonds the links.
    several_links: Literal["nics", "bond"] = "nics"

    def files(self) -> tuple[Path, ...]:
        """Return the files that the parameters name."""
        return (Path(self.file),)


@dataclass(frozen=True)
class FileLink:
    """Link in a file, with its ends by name; `where` is the beginning of error messages."""

    a: str
    b: str
    rate_bps: int
    delay_ns: int
    loss: float = 0.0
    where: str = ""
    framing_bytes: int | None = None


@dataclass(frozen=True)
class FileNetwork:
    """Contents of a file.

    `numbers` are the file's numbers of hosts by name, for workloads that name hosts by number.
    """

    hosts: Sequence[str]
    switches: Sequence[str]
    links: Sequence[FileLink]
    numbers: Mapping[str, int] = field(default_factory=dict)
    tiers: Mapping[str, int] = field(default_factory=dict)  # tiers of switches, if the file has them


def checked_name(where: str, name: str) -> str:
    """Return the name of a node after checking it.

    Parameters
    ----------
    where
        What the error begins with.
    name
        Name of a node.

    Returns
    -------
    str
        The name.

    Raises
    ------
    UserError
        For a name that no file or interface can have.
    """
    if _NAME.fullmatch(name) is None:
        shown = name if len(name) <= 40 else f"{name[:40]}..."
        raise UserError(f"{where}: a node called {shown!r}; expected up to 40 letters, digits and _ . - without blanks")
    return name


def assembled(kind: str, where: str, network: FileNetwork, parameters: FileTopology) -> Topology:
    """Return the network of a file.

    Parameters
    ----------
    kind
        Name of the topology.
    where
        Beginning of error messages.
    network
        Hosts, switches and links of the file.
    parameters
        Parameters of the topology.

    Returns
    -------
    Topology
        The network.

    Raises
    ------
    UserError
        If the file does not describe a valid network; the message begins with `where`.
    """
    if len(network.hosts) < 2:
        raise UserError(f"{where}: {len(network.hosts)} hosts; expected at least two")
    if len(network.hosts) + len(network.switches) > MOST_NODES:
        raise UserError(f"{where}: over {MOST_NODES:,} nodes; expected a smaller network")
    switches = set(network.switches)
    uplinks = _uplinks(where, network, switches)
    tiers = {**_tiers(network, switches, uplinks), **network.tiers}
    builder = Builder(kind)
    for name in network.switches:
        if name not in tiers:
            raise UserError(f"{where}: switch {name} has no way to a host; expected one network")
        builder.switch(name, tiers[name])
    several = [name for name in network.hosts if len(uplinks[name]) > 1]
    bonds = {name: builder.switch(nic_switch_name(name), 0) for name in several if parameters.several_links == "bond"}
    servers = {} if bonds or not several else {name: _nics(name, len(uplinks[name])) for name in network.hosts}
    # First the first NICs of all servers, since consecutive ones are on the same switch.
    most = max(map(len, servers.values()), default=0)
    nics = [(server[k], name, k) for k in range(most) for name, server in servers.items() if k < len(server)]
    placed = {nic: uplinks[name][k] for nic, name, k in nics or [(name, name, 0) for name in network.hosts]}
    for name, address in _addresses(where, placed).items():
        builder.node(name, address)
    ends = {name: iter(server) for name, server in servers.items()}
    for link in network.links:
        a, b = (next(ends[end]) if end in ends else bonds.get(end, end) for end in (link.a, link.b))
        builder.link(a, b, link.rate_bps, link.delay_ns, link.loss, link.framing_bytes)
    for name, switch in bonds.items():
        rate_bps = sum(link.rate_bps for link in network.links if name in (link.a, link.b))
        builder.link(switch, name, rate_bps, ON_BOARD_DELAY_NS)
    numbers = None
    if network.numbers:
        numbers = {network.numbers[name]: index for index, name in enumerate(network.hosts)}
    return builder.build(parameters.model_dump(), numbers, servers)


def _nics(name: str, count: int) -> list[str]:
    """Return the names of a server's NICs, or its own name if it has one NIC."""
    return [f"{name}.{number}" for number in range(count)] if count > 1 else [name]


def _uplinks(where: str, network: FileNetwork, switches: set[str]) -> dict[str, list[str]]:
    """Return the switch at each link of each host."""
    uplinks: dict[str, list[str]] = {}
    known = switches | set(network.hosts)
    for link in network.links:
        for name in (link.a, link.b):
            if name not in known:
                raise UserError(f"{link.where}: no node {name!r}")
        if link.a == link.b:
            raise UserError(f"{link.where}: a link from {link.a} to itself; expected two nodes")
        for name, other in ((link.a, link.b), (link.b, link.a)):
            if name in switches:
                continue
            if other not in switches:
                raise UserError(f"{link.where}: a link between the hosts {name} and {other}; expected a switch between")
            uplinks.setdefault(name, []).append(other)
    for name in network.hosts:
        if name not in uplinks:
            raise UserError(f"{where}: host {name} has no link; expected one")
    return uplinks


def _tiers(network: FileNetwork, switches: set[str], uplinks: Mapping[str, Sequence[str]]) -> dict[str, int]:
    beside: dict[str, list[str]] = {name: [] for name in switches}
    for link in network.links:
        if link.a in switches and link.b in switches:
            beside[link.a].append(link.b)
            beside[link.b].append(link.a)
    tiers = dict.fromkeys((switch for several in uplinks.values() for switch in several), 0)
    waiting = deque(tiers)
    while waiting:
        name = waiting.popleft()
        for other in beside[name]:
            if other not in tiers:
                tiers[other] = tiers[name] + 1
                waiting.append(other)
    return tiers


def _addresses(where: str, uplinks: Mapping[str, str]) -> dict[str, str]:
    """Return increasing addresses of the hosts, in their order: 10.a.b.c, where a and b change with the switch."""
    addresses: dict[str, str] = {}
    rack, place, switch = -1, _MOST_HOSTS, ""
    for name in uplinks:
        if uplinks[name] != switch or place == _MOST_HOSTS:
            rack, place, switch = rack + 1, 0, uplinks[name]
        if rack >= 1 << 16:
            raise UserError(f"{where}: hosts change switches over 65,536 times; expected them in order of switches")
        addresses[name] = f"10.{rack >> 8}.{rack & 255}.{place + _FIRST_HOST}"
        place += 1
    return addresses


def leaves(names: Iterable[str], links: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes that have one link.

    Parameters
    ----------
    names
        Names of nodes.
    links
        Ends of links.

    Returns
    -------
    set[str]
        Nodes with one link, which are the hosts if the file does not declare any.
    """
    count = Counter(end for link in links for end in link)
    return {name for name in names if count[name] == 1}
