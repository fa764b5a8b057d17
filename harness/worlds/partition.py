"""Partition of a network's nodes among workers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from topologies import Topology

# Cost of a node by port: a host makes, receives and acknowledges packets, a switch forwards them.
_HOST_PORT_COST = 1.2
_SWITCH_PORT_COST = 0.4


def partition(topology: Topology, workers: int, hosts_together: bool = False) -> dict[str, int]:
    """Return the rank of each node's worker, by name, with few crossing links and equal loads.

    Racks are not divided, nor are pods if there are enough of them. A switch is assigned to the
    worker with most of its neighbours. A switch with equally many neighbours everywhere, such as a
    core switch, is assigned to the worker with the least load. Racks or pods are assigned in turn,
    since jobs are often placed on consecutive hosts. If that causes more crossing links, as in a
    chain of switches, each worker gets consecutive ones. With `hosts_together` the first worker has
    all hosts, and the others have the switches, as long as these have less load.
    """
    if workers == 1:
        return dict.fromkeys(topology.ports, 0)
    if hosts_together:
        return _with_switches(topology, workers, {host.name: 0 for host in topology.hosts}, beside=False)
    ways = (_dealt(topology, workers), _in_rows(topology, workers))
    partitions = [_with_switches(topology, workers, hosts, beside=True) for hosts in ways]
    return min(partitions, key=lambda owners: _crossing(topology, owners))  # the first one of several minima


def _with_switches(topology: Topology, workers: int, hosts: Mapping[str, int], beside: bool) -> dict[str, int]:
    """Return the ranks of all nodes.

    With `beside` a switch is assigned to the worker with most of its neighbours.
    """
    ranks = dict(hosts)
    loads = [0.0] * workers
    costs = _costs(topology)
    for name, rank in ranks.items():
        loads[rank] += costs[name]
    for switch in _outwards(topology):
        votes = _votes(topology, switch, ranks if beside else {})
        most = max(votes.values(), default=0)
        near = [rank for rank in range(workers) if votes[rank] == most]
        ranks[switch] = min(near, key=lambda rank: (loads[rank], rank))
        loads[ranks[switch]] += costs[switch]
    return ranks


def _racks(topology: Topology) -> dict[str, list[str]]:
    """Return the hosts of each rack, by its switch."""
    racks: dict[str, list[str]] = defaultdict(list)
    for host in topology.hosts:
        racks[topology.uplink(host).node].append(host.name)
    return racks


def _in_rows(topology: Topology, workers: int) -> dict[str, int]:
    """Return the ranks of hosts, with consecutive racks together."""
    ranks: dict[str, int] = {}
    for rack in _racks(topology).values():
        rank = min(workers - 1, int((len(ranks) + len(rack) / 2) / len(topology.hosts) * workers))
        ranks.update(dict.fromkeys(rack, rank))
    return ranks


def _dealt(topology: Topology, workers: int) -> dict[str, int]:
    """Return the ranks of hosts: each pod, or each rack, goes to the worker with the fewest hosts.

    Racks with links to the same switches form a pod.
    """
    racks = _racks(topology)
    pods: dict[frozenset[str], list[list[str]]] = defaultdict(list)
    for switch, rack in racks.items():
        above = (there.node for there in topology.ports[switch].values() if there.node not in topology.host_by_name)
        pods[frozenset(above)].append(rack)
    together = list(pods.values()) if len(pods) >= workers else [[rack] for rack in racks.values()]
    ranks: dict[str, int] = {}
    counts = [0] * workers
    for each in together:
        rank = min(range(workers), key=lambda one: (counts[one], one))
        for rack in each:
            ranks.update(dict.fromkeys(rack, rank))
            counts[rank] += len(rack)
    return ranks


def _crossing(topology: Topology, owners: Mapping[str, int]) -> int:
    """Return the number of links between workers."""
    return sum(owners[link.a] != owners[link.b] for link in topology.links)


@dataclass(frozen=True)
class Shares:
    """Shares of a partition.

    `work` has each worker's share of the total. `crossing` is the share of links between workers.
    """

    work: tuple[float, ...]
    crossing: float


def shares(topology: Topology, owners: Mapping[str, int], workers: int) -> Shares:
    """Return each worker's share of the cost and the share of crossing links, for nodes with these owners."""
    loads = [0.0] * workers
    for node, cost in _costs(topology).items():
        loads[owners[node]] += cost
    return Shares(tuple(load / sum(loads) for load in loads), _crossing(topology, owners) / len(topology.links))


def _costs(topology: Topology) -> dict[str, float]:
    return {host.name: _HOST_PORT_COST for host in topology.hosts} | {
        switch.name: _SWITCH_PORT_COST * len(topology.ports[switch.name]) for switch in topology.switches
    }


def _votes(topology: Topology, switch: str, ranks: Mapping[str, int]) -> Counter[int]:
    """Return the number of links to nodes of each worker so far."""
    return Counter(ranks[there.node] for there in topology.ports[switch].values() if there.node in ranks)


def _outwards(topology: Topology) -> list[str]:
    """Return the switches by their distance from the hosts, then in the topology's order."""
    seen = {topology.uplink(host).node for host in topology.hosts}
    order = [[switch.name for switch in topology.switches if switch.name in seen]]
    while order[-1]:
        following = {
            there.node
            for switch in order[-1]
            for there in topology.ports[switch].values()
            if there.node not in seen and there.node not in topology.host_by_name
        }
        seen |= following
        order.append([switch.name for switch in topology.switches if switch.name in following])
    alone = [switch.name for switch in topology.switches if switch.name not in seen]
    return [switch for ring in order for switch in ring] + alone
