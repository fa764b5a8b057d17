"""Forecast of a run's memory, CPU time, and wall-clock time with workers, from its network and flows.

The figures were measured with compiled hosts on one machine (docs/performance.md). On other
machines they are correct to an order of magnitude. `p4cc run permutation --dry-run` prints them,
`--workers auto` uses them, and a run that cannot fit into the memory is not started.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import networkx as nx

from harness.plan.how import Tracing
from harness.plan.run import Run
from harness.workloads import Flow, Traffic
from harness.worlds.expected_collectives import CollectiveWork, collective_work
from harness.worlds.memory import MemoryLimit
from harness.worlds.partition import Shares, partition, shares
from harness.worlds.speed_up import Terms, Work, wall_s
from harness.worlds.waiting import Waiting, WaitingPackets
from host_agents import wire
from host_agents.config import SCOPE_QP
from topologies import Topology
from topologies.group_paths import group_paths
from topologies.shortest_paths import shortest_paths

# Memory of the program itself, of each host, of each switch, of each port between switches, of each
# flow, of each queue pair, and of each frame on the links with its sender's state. A queue pair
# keeps its sending half if its reaction point sends through it for other queue pairs, or if its
# reaction point has packets of its own and does not come to rest.
_PROGRAM_BYTES = 175_000_000
_HOST_BYTES = 8_000
_SWITCH_BYTES = 10_000
_PORT_BYTES = 3_400
_FLOW_BYTES = 1_800
_QUEUE_PAIR_BYTES = 4_600
_KEPT_QUEUE_PAIR_BYTES = 11_500
_FRAME_BYTES = 560
_WAITING_BYTES = 680  # bytes of a frame in a queue
_SAMPLE_BYTES = 96  # bytes of a queue sample, including its row of the table
_OPERATION_BYTES = 600  # bytes of an operation of a collective, including its row of the table
# CPU time of the set-up, of one flow, of a data packet with its answers at the hosts, and of one
# frame on one link. The time of a packet grows with the memory that does not fit into the caches.
_SET_UP_S = 1.0
_SET_UP_PORT_S = 150e-6
_FLOW_S = 65e-6  # measured with a training step of 14,848 flows
_PACKET_S = 0.93e-6
_FAR_PACKET_S = 1.2e-6  # added in large networks
_HOP_S = 0.1e-6
_COLLECTIVE_HOP_S = 0.19e-6  # including sums at hosts and switches
_FAR_COLLECTIVE_HOP_S = 0.14e-6
_NEAR_NODES = 200
# Several workers, on the machine mentioned above, where a hop takes 0.31 us (docs/performance.md).
_TERMS = Terms(crossing_s=0.3e-6, copying_s=8e-9, meeting_s=10e-6, meeting_each_s=0.1e-6, imbalance=1.05)
# Bytes of a packet at a switch in trace.txt and trace.jsonl together: 24 kB with ecn.p4, 36 kB with
# int.p4, 50 kB with dart.p4.
_TRACE_BYTES = 30_000
_HOPS_BYTES = 1_000  # without the events of pipelines
_TURN_MEETINGS = 3  # meetings of the workers in a window, if hosts take turns
_NOTED_S = 20e-6  # CPU time of a flow in the session, of which each worker then has one
_LEAST_GAIN = 1.25  # smallest speed-up in wall-clock time for which workers are worth their memory
_LEAST_S = 1.0  # smallest wall-clock time that they save
_MOST_WALKED = 100_000  # largest number of flows if some start after others are done: each takes some 30 us
_STARTS, _ARRIVES, _ENDS = range(3)


@dataclass(frozen=True)
class Expected:
    """Work of one run, up to its limit.

    `model_ns` is a lower bound: the time without any waiting. Values include flows and collectives,
    unless a comment says otherwise.
    """

    independent: bool  # no flow starts after others are done
    local: bool  # events at a host start flows at that host only
    hosts: int
    switches: int
    ports: int  # ports of switches
    sampled_ports: int
    flows: int
    flow_bytes: int  # bytes of all flows, regardless of the limit
    queue_pairs_bytes: int  # memory of all queue pairs
    data_packets: int
    packet_hops: int  # transmissions of frames over links: data, answers, and a protocol's own packets
    in_flight: int  # largest number of frames in flight at a time, without waiting ones
    waiting: WaitingPackets  # frames at a time that wait for links that are too slow for their traffic
    model_ns: int
    window_ns: int
    sample_ns: int
    collectives: CollectiveWork

    @property
    def windows(self) -> int:
        return -(-self.model_ns // max(self.window_ns, 1))

    @property
    def queue_samples(self) -> int:
        return self.sampled_ports * (self.model_ns // self.sample_ns + 1) if self.sample_ns else 0

    @property
    def network_bytes(self) -> int:
        """Memory of hosts, switches and ports before anything is sent."""
        return _nodes_bytes(self.hosts, self.switches, self.ports)

    @property
    def memory_bytes(self) -> int:
        """Memory of all workers together; each further worker only has its own part."""
        return self._memory_bytes(self.waiting.expected)

    @property
    def memory_range_bytes(self) -> tuple[int, int]:
        """Memory as a range: without any waiting frame, and without any reaction of senders to feedback."""
        return self._memory_bytes(0), self._memory_bytes(self.waiting.most)

    def _memory_bytes(self, waiting: int) -> int:
        nodes = self.network_bytes + self.flows * _FLOW_BYTES + self.queue_pairs_bytes
        held = self.collectives.kept_bytes + round(self.collectives.operations * _OPERATION_BYTES)
        under_way = self.in_flight * _FRAME_BYTES + waiting * _WAITING_BYTES
        return _PROGRAM_BYTES + nodes + held + under_way + self.queue_samples * _SAMPLE_BYTES

    @property
    def set_up_s(self) -> float:
        return _SET_UP_S + (self.ports + self.hosts) * _SET_UP_PORT_S

    @property
    def run_s(self) -> float:
        """CPU time of one worker."""
        far = max(0.0, 1 - _NEAR_NODES / (self.hosts + self.switches))
        packet_s = _PACKET_S + _FAR_PACKET_S * far
        collective_hop_s = _COLLECTIVE_HOP_S + _FAR_COLLECTIVE_HOP_S * far
        of_collectives = self.collectives.packet_hops
        hops_s = (self.packet_hops - of_collectives) * _HOP_S + of_collectives * collective_hop_s
        return self.data_packets * packet_s + hops_s + self.flows * _FLOW_S

    def run_wall_s(self, of: Shares) -> float:
        """Return the wall-clock time with workers that have these shares and a processor each."""
        if self.independent:
            return wall_s(Work(self.run_s, self.packet_hops, self.windows, self.network_bytes), of, _TERMS)
        meetings = _TURN_MEETINGS * self.windows
        shared_s = wall_s(Work(self.run_s, self.packet_hops, meetings, self.network_bytes), of, _TERMS)
        return shared_s + self.flows * _NOTED_S * (1 - 1 / len(of.work))


def memory_limit(run: Run, built: int = 1, built_here: int = 1) -> MemoryLimit:
    """Return the memory that the run may use.

    Raises UserError if `built` copies of its network alone exceed it.
    """
    topology = run.topology
    hosts, switches, ports = len(topology.hosts), len(topology.switches), _switch_ports(topology)
    limit = MemoryLimit(run.label, run.scenario.memory_bytes)
    limit.foresee(_nodes_bytes(hosts, switches, ports), f"{hosts:,} hosts and {switches:,} switches", built, built_here)
    return limit


def check_fits(run: Run, foreseen: Expected) -> None:
    """Check that this machine has the memory of the run.

    Raises UserError if it does not.

    This is not checked if the scenario sets `memory_bytes`: the run then ends when it exceeds that.
    """
    if run.scenario.memory_bytes is None:
        MemoryLimit(run.label, None).foresee_all(foreseen.memory_bytes)


def _switch_ports(topology: Topology) -> int:
    return sum(len(topology.ports[switch.name]) for switch in topology.switches)


def _nodes_bytes(hosts: int, switches: int, ports: int) -> int:
    return hosts * _HOST_BYTES + switches * _SWITCH_BYTES + ports * _PORT_BYTES


def best_workers(run: Run, foreseen: Expected, processors: int) -> int:
    """Return the number of workers with the least wall-clock time; 1 if more of them save little.

    If events at a host start flows at other hosts, one of two workers has all hosts.
    """
    alone_s = foreseen.run_s
    if processors < 2 or alone_s * (1 - 1 / _LEAST_GAIN) < _LEAST_S:
        return 1
    most = processors if foreseen.local else 2
    walls_s = {workers: run_wall_s(run, foreseen, workers) for workers in range(2, most + 1)}
    best = min(walls_s, key=lambda workers: walls_s[workers])
    saves = alone_s > _LEAST_GAIN * walls_s[best] and alone_s - walls_s[best] > _LEAST_S
    return best if saves else 1


def run_wall_s(run: Run, foreseen: Expected, workers: int) -> float:
    """Return the wall-clock time of a run with this number of workers and a processor each."""
    owners = partition(run.topology, workers, hosts_together=not foreseen.local)
    return foreseen.run_wall_s(shares(run.topology, owners, workers))


def expected(run: Run, traffic: Traffic | None = None) -> Expected:
    """Return the forecast of all flows up to the run's limit, by a walk through dependent flows.

    `traffic` is that of the run, if it has already been generated. Each flow has one source, since
    plans refuse others. Raises UserError if the workload cannot be generated.
    """
    topology, traffic, limit_ns = run.topology, traffic or run.traffic(), run.limit_ns
    packet_bits = run.scenario.link_bytes(run.data_bytes) * 8
    uplinks = map(topology.uplink, topology.hosts)
    packet_ns = [(packet_bits + 8 * uplink.extra_bytes) * 1e9 / uplink.rate_bps for uplink in uplinks]
    # A walk consumes the traffic that it walks through.
    walk = None if traffic.independent else _Walk(run, run.traffic(), packet_ns)
    known = traffic.flows if walk is None else walk.flows
    flows = [(flow, _packets(flow, run.scenario.nic.mtu_bytes, packet_ns)) for flow in known]
    starts_ns = [flow.start_ns for flow in known] if walk is None else walk.starts_ns
    timed = ((float(start_ns), *counted) for start_ns, counted in zip(starts_ns, flows, strict=True))
    sent = _Sent(run, flows, packet_ns)
    last_ns = max((flow.start_ns + count * packet_ns[flow.source] for flow, count in flows), default=0.0)
    in_pipe = 2 * int(run.base_rtt_ns() / min(packet_ns)) + 1  # a BDP in flight, and the same amount waiting
    flows_ns = int(max(sent.busiest_ns, last_ns)) + run.base_rtt_ns() if flows else 0
    more = 1.0  # ratio of all flows to those that were walked through
    if walk is not None:
        flows_ns, more = round(walk.end_ns * walk.whole), walk.whole
    collectives = collective_work(run, traffic.assignments)
    record = run.scenario.record
    ports = _switch_ports(topology)
    return Expected(
        independent=traffic.independent,
        local=traffic.local,
        hosts=len(topology.hosts),
        switches=len(topology.switches),
        ports=ports,
        sampled_ports=ports if record.queues == "all" else len(topology.hosts),
        flows=round(more * len(flows)),
        flow_bytes=round(more * sum(flow.size_bytes for flow in known)),
        queue_pairs_bytes=round(more * _queue_pairs_bytes(run, known)),
        data_packets=round(more * sent.packets),
        packet_hops=round(more * sent.hops + collectives.packet_hops),
        in_flight=sum(min(count, in_pipe) for count in sent.by_host.values()) + collectives.in_flight,
        waiting=Waiting(run, packet_ns).packets(timed, walk is None),
        model_ns=min(max(flows_ns, collectives.model_ns), limit_ns),
        window_ns=_window_ns(topology),
        sample_ns=record.queue_interval_ns,
        collectives=collectives,
    )


class _Sent:
    """Packets and answers that flows send up to the run's limit.

    Flows that share a link have the same progress. Half of the data that was sent in the last RTT
    before the limit counts as answered.
    """

    def __init__(self, run: Run, flows: Iterable[tuple[Flow, int]], packet_ns: Sequence[float]) -> None:
        """Count for flows with their numbers of packets, which take `packet_ns` on the hosts' links."""
        begun = [(flow, whole) for flow, whole in flows if flow.start_ns < run.limit_ns]
        sends_ns = [0.0] * len(packet_ns)  # by host, on its link
        receives_ns = [0.0] * len(packet_ns)
        for flow, whole in begun:
            sends_ns[flow.source] += whole * packet_ns[flow.source]
            for destination in flow.destinations:
                receives_ns[destination] += whole * packet_ns[destination]
        self.busiest_ns = max(*sends_ns, *receives_ns)
        self.packets = self.hops = 0
        self.by_host: Counter[int] = Counter()  # packets
        paths = Paths(run)
        answered_together = _answered_together(run)
        ends_ns = run.limit_ns, run.limit_ns - run.base_rtt_ns() / 2
        for flow, whole in begun:
            busy_ns = max(sends_ns[flow.source], *(receives_ns[destination] for destination in flow.destinations))
            own_ns = whole * packet_ns[flow.source]
            count, done = (
                math.ceil(whole * max(0.0, min(1.0, end_ns / busy_ns, (end_ns - flow.start_ns) / own_ns)))
                for end_ns in ends_ns
            )
            there, back = paths.links(flow)
            self.packets += count
            own = round(done * run.protocol_of(flow).info.own_packets)
            self.hops += done * there + (-(-done // answered_together) + own) * back
            self.by_host[flow.source] += count


def _answered_together(run: Run) -> int:
    """Return the number of full packets that one ACK answers."""
    nic = run.scenario.nic
    full_bytes = wire.ETHERNET_BYTES + wire.OVERHEAD_BYTES + nic.mtu_bytes
    return max(1, nic.ack_every_bytes // full_bytes) if nic.ack_every_bytes else nic.ack_every_packets


def _queue_pairs_bytes(run: Run, flows: Iterable[Flow]) -> int:
    """Return the memory of the queue pairs of these flows; flows with the same `qp` share one."""
    total, shared = 0, set()
    kept = run.cc_scope != SCOPE_QP
    for flow in flows:
        key = (flow.sources, flow.destinations, flow.qp)
        if flow.qp is None or key not in shared:
            stays = kept or not run.protocol_of(flow).retires
            total += _KEPT_QUEUE_PAIR_BYTES if stays else _QUEUE_PAIR_BYTES
            shared.add(key)
    return total


class _Walk:
    """Walk through dependent flows, in which only links and base RTTs take time.

    A host's link carries one flow after the other. If a traffic has very many flows, the walk ends
    early, and the totals are `whole` times those of the walk.
    """

    def __init__(self, run: Run, traffic: Traffic, packet_ns: Sequence[float]) -> None:
        self.flows: list[Flow] = []
        self.starts_ns: list[int] = []  # starts of these flows
        self.end_ns = 0
        in_all_bytes = traffic.flow_bytes
        seen_bytes = 0
        way_ns = run.base_rtt_ns() // 2
        sends_ns, receives_ns = [0.0] * len(packet_ns), [0.0] * len(packet_ns)  # until then, by host
        waiting: list[tuple[int, int, int, Flow]] = []  # time, order, event, flow
        order = itertools.count()
        known = itertools.count()

        def start(flows: Iterable[Flow], now_ns: int) -> None:
            for flow in flows:
                flow.index = next(known)
                heappush(waiting, (max(flow.start_ns, now_ns), next(order), _STARTS, flow))

        start(traffic.flows, 0)
        while waiting and waiting[0][0] < run.limit_ns and len(self.flows) < _MOST_WALKED:
            now_ns, _, what, flow = heappop(waiting)
            self.end_ns = now_ns
            if what == _STARTS:
                self.flows.append(flow)
                self.starts_ns.append(now_ns)
                seen_bytes += flow.size_bytes * len(flow.sources)
                count = _packets(flow, run.scenario.nic.mtu_bytes, packet_ns)
                own_ns = count * packet_ns[flow.source]
                sent_ns = max(float(now_ns), sends_ns[flow.source]) + own_ns
                sends_ns[flow.source] = sent_ns
                for host in flow.destinations:
                    receives_ns[host] = max(receives_ns[host] + count * packet_ns[host], sent_ns)
                arrival_ns = round(max(receives_ns[host] for host in flow.destinations)) + way_ns
                heappush(waiting, (arrival_ns, next(order), _ARRIVES, flow))
                heappush(waiting, (arrival_ns + way_ns, next(order), _ENDS, flow))
            elif what == _ARRIVES:
                start(traffic.on_delivered(flow, now_ns), now_ns)
            else:
                start(traffic.on_completed(flow, now_ns), now_ns)
        cut = len(self.flows) == _MOST_WALKED and in_all_bytes is not None
        self.whole = max(1.0, (in_all_bytes or 0) / max(seen_bytes, 1)) if cut else 1.0


def trace_bytes(run: Run, trace: Tracing) -> int:
    """Return the bytes that `--trace` writes without losses and without a range of time.

    0 if it is not known before the run.
    """
    parts: dict[int, list[Flow]] = {}
    for flow in run.traffic().flows:
        parts.setdefault(id(flow.whole or flow), []).append(flow)
    paths, mtu_bytes = Paths(run), run.scenario.nic.mtu_bytes
    each = _TRACE_BYTES if trace.pipelines else _HOPS_BYTES
    most, total = math.inf if trace.packets is None else trace.packets, 0
    for flow in (flow for flows in list(parts.values())[trace.flow : trace.flow + 1] for flow in flows):
        packets = int(min(-(-flow.size_bytes // mtu_bytes), most))
        most -= packets
        total += packets * (paths.links(flow)[0] - 1) * each
    return total


def _packets(flow: Flow, mtu_bytes: int, packet_ns: Sequence[float]) -> int:
    """Return the largest number of packets of a flow, also if it ends at a given time."""
    count = -(-flow.size_bytes // mtu_bytes)
    if flow.stop_ns is None:
        return count
    return max(1, min(count, math.ceil((flow.stop_ns - flow.start_ns) / packet_ns[flow.source])))


class Paths:
    """Paths of flows: the number of links that their frames take."""

    def __init__(self, run: Run) -> None:
        self._topology = run.topology
        self._shortest = shortest_paths(run.topology)
        self._grouped = group_paths(run.topology)
        self._switches = [run.topology.uplink(host).node for host in run.topology.hosts]
        self._groups = {(group.source, group.members): group for group in run.groups}
        self._found: dict[tuple[str, str], int] = {}  # number of links between switches, computed on demand

    def links(self, flow: Flow) -> tuple[int, int]:
        """Return the links of a packet with its copies, and of the acknowledgements of all its receivers."""
        back = self._between(flow.source, flow.destination)
        if not flow.further_destinations:
            return back, back
        back += sum(self._between(flow.source, destination) for destination in flow.further_destinations)
        tree = self._groups[flow.source, flow.destinations].tree(self._topology)
        return len(tree.up), back

    def _between(self, source: int, destination: int) -> int:
        ends = self._switches[source], self._switches[destination]
        count = self._found.get(ends)
        if count is None:
            count = self._found[ends] = self._between_switches(*ends) + 2
        return count

    def _between_switches(self, source: str, destination: str) -> int:
        if self._grouped is not None:
            return round(self._grouped.mean_links(source, destination))
        return int(self._shortest.distance[self._shortest.row[source], self._shortest.column[destination]])


def _window_ns(topology: Topology) -> int:
    """Return the length of a window of workers: one or two delays of the shortest link.

    It is two delays if the network is bipartite. See docs/decisions/0002.
    """
    shortest_ns = min(link.delay_ns for link in topology.links)
    two_sides = nx.is_bipartite(nx.Graph((link.a, link.b) for link in topology.links))
    return max(1, shortest_ns * (2 if two_sides else 1))
