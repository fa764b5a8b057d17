"""Networks that files describe: from nodes and links by name to hosts with addresses, and switches with tiers.

Hosts are numbered, and get their addresses, in the order of the file. Hosts that follow each other
on one switch share 24 bits of their addresses. Ports of switches are numbered in the order of the
links. A switch's tier is how many links it is away from the nearest one that has hosts.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from p4switch.errors import UserError
from topologies.model import Builder, Topology
from topologies.registry import TopologyParameters

MOST_NODES = 1 << 18
_FIRST_HOST, _MOST_HOSTS = 2, 250  # of 24 bits of address
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")  # also that of a file and of a Linux interface


class FileTopology(TopologyParameters):
    """A network in a file."""

    file: str  # relative to the scenario

    def files(self) -> tuple[Path, ...]:
        """Return the files that the parameters name."""
        return (Path(self.file),)


@dataclass(frozen=True)
class FileLink:
    """A line of a file: the link's ends by name; `where` begins what is said of it."""

    a: str
    b: str
    rate_bps: int
    delay_ns: int
    loss: float = 0.0
    where: str = ""


@dataclass(frozen=True)
class FileNetwork:
    """Contents of a file.

    `numbers` are the file's numbers of hosts by name, for workloads that name hosts by number.
    """

    hosts: Sequence[str]
    switches: Sequence[str]
    links: Sequence[FileLink]
    numbers: Mapping[str, int] = field(default_factory=dict)
    tiers: Mapping[str, int] = field(default_factory=dict)  # of switches, where the file says them


def checked_name(where: str, name: str) -> str:
    """Return the name of a node. Raises UserError for one that cannot be a file's or an interface's."""
    if _NAME.fullmatch(name) is None:
        shown = name if len(name) <= 40 else f"{name[:40]}..."
        raise UserError(f"{where}: a node called {shown!r}; expected up to 40 letters, digits and _ . - without blanks")
    return name


def assembled(kind: str, where: str, network: FileNetwork, parameters: dict[str, object]) -> Topology:
    """Return the network of a file. Raises UserError, with the line, for what cannot be one."""
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
    addresses = _addresses(where, network.hosts, uplinks)
    for name in network.hosts:
        builder.node(name, addresses[name])
    for link in network.links:
        builder.link(link.a, link.b, link.rate_bps, link.delay_ns, link.loss)
    numbers = None
    if network.numbers:
        numbers = {network.numbers[name]: index for index, name in enumerate(network.hosts)}
    return builder.build(parameters, numbers)


def _uplinks(where: str, network: FileNetwork, switches: set[str]) -> dict[str, str]:
    """Return the switch of each host."""
    uplinks: dict[str, str] = {}
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
            if name in uplinks:
                raise UserError(f"{link.where}: host {name} has a second link; expected one")
            uplinks[name] = other
    for name in network.hosts:
        if name not in uplinks:
            raise UserError(f"{where}: host {name} has no link; expected one")
    return uplinks


def _tiers(network: FileNetwork, switches: set[str], uplinks: Mapping[str, str]) -> dict[str, int]:
    beside: dict[str, list[str]] = {name: [] for name in switches}
    for link in network.links:
        if link.a in switches and link.b in switches:
            beside[link.a].append(link.b)
            beside[link.b].append(link.a)
    tiers = dict.fromkeys(uplinks.values(), 0)
    waiting = deque(tiers)
    while waiting:
        name = waiting.popleft()
        for other in beside[name]:
            if other not in tiers:
                tiers[other] = tiers[name] + 1
                waiting.append(other)
    return tiers


def _addresses(where: str, hosts: Iterable[str], uplinks: Mapping[str, str]) -> dict[str, str]:
    """Return increasing addresses of the hosts: 10.a.b.c, where a and b change with the switch."""
    found: dict[str, str] = {}
    rack, place, switch = -1, _MOST_HOSTS, ""
    for name in hosts:
        if uplinks[name] != switch or place == _MOST_HOSTS:
            rack, place, switch = rack + 1, 0, uplinks[name]
        if rack >= 1 << 16:
            raise UserError(f"{where}: hosts change switches over 65,536 times; expected them in order of switches")
        found[name] = f"10.{rack >> 8}.{rack & 255}.{place + _FIRST_HOST}"
        place += 1
    return found


def leaves(names: Iterable[str], links: Iterable[tuple[str, str]]) -> set[str]:
    """Return the nodes that have one link: hosts, where nobody says which are."""
    count = Counter(end for link in links for end in link)
    return {name for name in names if count[name] == 1}
