"""What a run will take, foreseen from its network and its flows: memory, CPU time, and wall-clock time with workers.

The figures are of compiled hosts on one machine (docs/performance.md): an order of magnitude elsewhere, no promise.
`p4cc run permutation --dry-run` tells them, `--workers auto` goes by them, and a run that cannot fit is not begun.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import networkx as nx

from harness.plan.experiment import Run
from harness.worlds.partition import Shares, partition, shares
from topologies import Topology
from topologies.shortest_paths import shortest_paths

# Memory: of the program itself, of each host, switch and port between switches, of each flow, and of each frame on its
# way with what its sender keeps of it.
_PROGRAM_BYTES = 175_000_000
_HOST_BYTES = 8_000
_SWITCH_BYTES = 10_000
_PORT_BYTES = 3_400
_FLOW_BYTES = 12_000
_FRAME_BYTES = 560
_SAMPLE_BYTES = 96  # of a queue, with its row of the table
# CPU time: to set up, and to carry one frame over one link, which grows with what does not fit into the caches.
_SET_UP_S = 1.0
_SET_UP_PORT_S = 150e-6
_HOP_S = 0.19e-6
_FAR_HOP_S = 0.14e-6  # more, where the network is large
_NEAR_NODES = 200
# Several workers: what a meeting takes where each has a processor, and a frame that crosses.
_MEETING_S = 6e-6
_CROSSING_S = 0.15e-6
_LEAST_GAIN = 1.25  # in wall-clock time, for workers to be worth their memory
_LEAST_S = 1.0  # that they save


@dataclass(frozen=True)
class Expected:
    """Of one run. `model_ns` is what it takes at least, where nothing waits; limits of the scenario aside."""

    hosts: int
    switches: int
    ports: int  # of switches
    sampled_ports: int
    flows: int
    data_packets: int
    packet_hops: int  # transmissions of frames over links, answers too
    in_flight: int  # frames at once, at most
    model_ns: int
    window_ns: int
    sample_ns: int

    @property
    def windows(self) -> int:
        return -(-self.model_ns // max(self.window_ns, 1))

    @property
    def queue_samples(self) -> int:
        return self.sampled_ports * (self.model_ns // self.sample_ns + 1) if self.sample_ns else 0

    @property
    def memory_bytes(self) -> int:
        """At most, of all workers together: what others than the first have is their part of it."""
        nodes = _nodes_bytes(self.hosts, self.switches, self.ports) + self.flows * _FLOW_BYTES
        return _PROGRAM_BYTES + nodes + self.in_flight * _FRAME_BYTES + self.queue_samples * _SAMPLE_BYTES

    @property
    def set_up_s(self) -> float:
        return _SET_UP_S + (self.ports + self.hosts) * _SET_UP_PORT_S

    @property
    def run_s(self) -> float:
        """CPU time, of one worker."""
        nodes = self.hosts + self.switches
        return self.packet_hops * (_HOP_S + _FAR_HOP_S * max(0.0, 1 - _NEAR_NODES / nodes))

    def run_wall_s(self, of: Shares) -> float:
        """With workers that have these shares, and a processor each: the work of who has most of it, what crosses, and
        a meeting at the end of each window.
        """
        workers = len(of.work)
        if workers == 1:
            return self.run_s
        crossing_s = of.crossing * self.packet_hops / workers * _CROSSING_S
        return self.run_s * max(of.work) + crossing_s + self.windows * _MEETING_S


def network_bytes(topology: Topology) -> int:
    """What a network takes before the first frame, beside the program."""
    ports = sum(len(topology.ports[switch.name]) for switch in topology.switches)
    return _nodes_bytes(len(topology.hosts), len(topology.switches), ports)


def _nodes_bytes(hosts: int, switches: int, ports: int) -> int:
    return hosts * _HOST_BYTES + switches * _SWITCH_BYTES + ports * _PORT_BYTES


def best_workers(run: Run, processors: int, independent: bool) -> int:
    """So many that the run takes least wall-clock time; 1 where more of them save little. Raises UserError.

    Where flows start when others are done (not `independent`), all hosts are at one of two workers.
    """
    if processors < 2:
        return 1
    foreseen = expected(run)
    alone_s = foreseen.run_s
    if alone_s * (1 - 1 / _LEAST_GAIN) < _LEAST_S:
        return 1
    walls_s = {
        workers: foreseen.run_wall_s(shares(run.topology, partition(run.topology, workers, not independent), workers))
        for workers in range(2, (processors if independent else 2) + 1)
    }
    best = min(walls_s, key=lambda workers: walls_s[workers])
    saves = alone_s > _LEAST_GAIN * walls_s[best] and alone_s - walls_s[best] > _LEAST_S
    return best if saves else 1


def expected(run: Run) -> Expected:
    """Of the flows that are known before the run: others start when these are done. Raises UserError."""
    topology, flows = run.topology, run.traffic().flows
    mtu_bytes = run.scenario.nic.mtu_bytes
    paths = shortest_paths(topology)
    row = [paths.row[topology.uplink(host).node] for host in topology.hosts]
    column = [paths.column[topology.uplink(host).node] for host in topology.hosts]
    packets = hops = 0
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for flow in flows:
        count = -(-flow.size_bytes // mtu_bytes)
        packets += count
        links = int(paths.distance[row[flow.source], column[flow.destination]]) + 2
        hops += 2 * count * links  # there, and the acknowledgement back
        sent[flow.source] += count
        received[flow.destination] += count
    packet_bits = run.scenario.link_bytes(run.data_bytes) * 8
    packet_ns = {host.index: packet_bits * 1e9 / topology.uplink(host).rate_bps for host in topology.hosts}
    busiest_ns = max(
        (count * packet_ns[host] for ends in (sent, received) for host, count in ends.items()), default=0.0
    )
    slowest_packet_ns = min(packet_ns.values())
    in_pipe = 2 * int(run.base_rtt_ns() / slowest_packet_ns) + 1  # a BDP under way, and as much waiting
    record = run.scenario.record
    ports = sum(len(topology.ports[switch.name]) for switch in topology.switches)
    return Expected(
        hosts=len(topology.hosts),
        switches=len(topology.switches),
        ports=ports,
        sampled_ports=ports if record.queues == "all" else len(topology.hosts),
        flows=len(flows),
        data_packets=packets,
        packet_hops=hops,
        in_flight=sum(min(count, in_pipe) for count in sent.values()),
        model_ns=min(int(busiest_ns) + run.base_rtt_ns(), run.limit_ns),
        window_ns=_window_ns(topology),
        sample_ns=record.queue_interval_ns,
    )

def _window_ns(topology: Topology) -> int:
    """Two delays of the shortest link, where each joins two sides (docs/decisions/0002)."""
    shortest_ns = min(link.delay_ns for link in topology.links)
    two_sides = nx.is_bipartite(nx.Graph((link.a, link.b) for link in topology.links))
    return max(1, shortest_ns * (2 if two_sides else 1))
