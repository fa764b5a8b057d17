"""Which worker runs which node of a network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from topologies import Topology

# What a node costs, by port: a host makes, takes and acknowledges packets, a switch passes them on.
_HOST_PORT_COST = 1.2
_SWITCH_PORT_COST = 0.4


def partition(topology: Topology, workers: int, hosts_together: bool = False) -> dict[str, int]:
    """The rank of each node's worker, by name, so that few links lead from worker to worker and all have as much to do.

    Racks stay together, in the order of the topology's hosts, which keeps pods together. A switch goes where most of
    what it is linked to is; one that is linked to all alike, as a core switch is, goes to who has least to do.
    `hosts_together`: all hosts are the first worker's, and the switches the others', as long as those have less to do.
    """
    if workers == 1:
        return dict.fromkeys(topology.ports, 0)
    found: dict[str, int] = {}
    loads = [0.0] * workers
    costs = _costs(topology)

    def give(node: str, rank: int) -> None:
        found[node] = rank
        loads[rank] += costs[node]

    racks: dict[str, list[str]] = defaultdict(list)
    for host in topology.hosts:
        racks[topology.uplink(host).node].append(host.name)
    whole = sum(costs[host.name] for host in topology.hosts)
    before = 0.0
    for rack in racks.values():
        own = sum(costs[name] for name in rack)
        rank = 0 if hosts_together else min(workers - 1, int((before + own / 2) / whole * workers))
        before += own
        for name in rack:
            give(name, rank)
    for switch in _outwards(topology):
        votes = _votes(topology, switch, {} if hosts_together else found)
        most = max(votes.values(), default=0)
        near = [rank for rank in range(workers) if votes[rank] == most]
        give(switch, min(near, key=lambda rank: (loads[rank], rank)))
    return found


@dataclass(frozen=True)
class Shares:
    """What a partition comes to. `work`: each worker's part of the whole. `crossing`: the part of the links that lead
    from worker to worker.
    """

    work: tuple[float, ...]
    crossing: float


def shares(topology: Topology, owners: Mapping[str, int], workers: int) -> Shares:
    """Of the owners that `partition` found, or others."""
    loads = [0.0] * workers
    for node, cost in _costs(topology).items():
        loads[owners[node]] += cost
    crossing = sum(owners[link.a] != owners[link.b] for link in topology.links)
    return Shares(tuple(load / sum(loads) for load in loads), crossing / len(topology.links))


def _costs(topology: Topology) -> dict[str, float]:
    return {host.name: _HOST_PORT_COST for host in topology.hosts} | {
        switch.name: _SWITCH_PORT_COST * len(topology.ports[switch.name]) for switch in topology.switches
    }


def _votes(topology: Topology, switch: str, found: Mapping[str, int]) -> Counter[int]:
    """How many links lead to nodes of each worker, so far."""
    return Counter(found[there.node] for there in topology.ports[switch].values() if there.node in found)


def _outwards(topology: Topology) -> list[str]:
    """The switches by their distance from the hosts, then in the topology's order."""
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
