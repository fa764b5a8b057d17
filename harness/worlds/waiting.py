"""Forecast of the packets that wait in the network for their receivers' links: many-to-one traffic makes most of them.

Senders with windows or grants have little there. Feedback on a queue comes from behind it: some senders that go by it
hold the queue where it is, and each new one adds to it until it hears; with many of them the queue grows faster than
they hear, and they send all that they have. Only receivers' links are looked at, as if no link between switches were
too slow for its traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from harness.plan.run import Run
from harness.workloads import Flow
from host_agents.registry import Protocol

# Senders to one receiver whom feedback can hold back: of DCQCN, 24 that start together and send 10 MB each had 17 MB in
# the queue, and 32 had 218 MB.
_HELD_BACK = 16


@dataclass(frozen=True)
class _Opening:
    """How a flow's sender begins, without word from the network."""

    packet_ns: float  # from one packet to the next
    held_back: bool  # it slows down when the first packet that waited has been answered


class Waiting:
    """The queues of all receivers, as a fluid, and the most packets that they hold together."""

    def __init__(self, run: Run, packet_ns: list[float]) -> None:
        self._run = run
        self._packet_ns = packet_ns  # of a host's link
        self._openings: dict[tuple[str, int], _Opening | None] = {}  # by protocol and rate of the sender's link

    def most_packets(self, flows: Iterable[tuple[float, Flow, int]]) -> int:
        """Return the most packets that wait at once, of flows with their starts and numbers of packets."""
        most = self._room_packets()
        return 0 if most == 0 else min(round(self._most_packets(flows)), most)

    def _most_packets(self, flows: Iterable[tuple[float, Flow, int]]) -> float:
        free_ns = [0.0] * len(self._packet_ns)  # when a sender's link has carried its flows so far
        limit_ns = float(self._run.limit_ns)
        begun: list[tuple[float, int, int, _Opening]] = []
        for start_ns, flow, count in sorted(flows, key=lambda each: each[0]):
            opening = self._opening(flow)
            if opening is None:
                continue
            begin_ns = max(start_ns, free_ns[flow.source])
            free_ns[flow.source] = begin_ns + count * self._packet_ns[flow.source]
            if begin_ns < limit_ns:
                begun += [(begin_ns, destination, count, opening) for destination in flow.destinations]
        changes: list[tuple[float, float]] = []
        queues: dict[int, _Queue] = {}
        rtt_ns = self._run.base_rtt_ns()
        for begin_ns, destination, count, opening in sorted(begun, key=lambda each: each[0]):
            queue = queues.get(destination)
            if queue is None:
                queue = queues[destination] = _Queue(1 / self._packet_ns[destination], changes.append)
            queue.advance(begin_ns)
            sent = float(count)
            if opening.held_back and queue.held_back < _HELD_BACK:
                unanswered_ns = 2 * rtt_ns + queue.packets * self._packet_ns[destination]
                sent = min(sent, unanswered_ns / opening.packet_ns)
            queue.add(begin_ns + sent * opening.packet_ns, 1 / opening.packet_ns, count - sent)
        for queue in queues.values():
            queue.advance(limit_ns)
        return _peak(changes, limit_ns)

    def _opening(self, flow: Flow) -> _Opening | None:
        """Return how a flow begins; None: its sender has a BDP or so in the network at most."""
        protocol = self._run.protocol_of(flow)
        uplink = self._run.topology.uplink(self._run.topology.hosts[flow.source])
        key = protocol.name, uplink.rate_bps
        if key not in self._openings:
            self._openings[key] = self._made(protocol, uplink.rate_bps, self._packet_ns[flow.source])
        return self._openings[key]

    def _made(self, protocol: Protocol, rate_bps: int, packet_ns: float) -> _Opening | None:
        from host_agents.cc.base import UNLIMITED, Path  # compiled: after `use_native_hosts`

        run = self._run
        if protocol.info.held_back_by == "grants" or protocol.info.injection is not None:
            return None
        nic = run.scenario.nic
        path = Path(rate_bps, run.base_rtt_ns(), nic.mtu_bytes, run.data_bytes, run.scenario.switch.cell_bytes)
        point = protocol.reaction_point(path)
        if point.window_bytes < UNLIMITED:
            return None
        slower = rate_bps / min(point.rate_bps, rate_bps)
        return _Opening(packet_ns * slower, protocol.info.held_back_by == "feedback")

    def _room_packets(self) -> int:
        """Return the packets for which switches have room: in all of them, if they pause each other."""
        run = self._run
        if run.program_parameters.limits_queues:
            return 0
        buffer_bytes = run.scenario.switch.buffer_bytes
        if buffer_bytes is None:
            return 1 << 62
        topology = run.topology
        with_hosts = {topology.uplink(host).node for host in topology.hosts}
        switches = len(topology.switches) if run.scenario.switch.pfc.enabled else len(with_hosts)
        return switches * buffer_bytes // run.data_bytes


class _Queue:
    """Queue before a receiver's link, in packets, into which flows send at constant rates.

    What flows that are held back have left comes as fast as the link takes it.
    """

    def __init__(self, drained: float, tell: Callable[[tuple[float, float]], None]) -> None:
        self.packets = 0.0
        self.held_back = 0  # flows that have something left
        self._left = 0.0  # packets of theirs
        self._now_ns = 0.0
        self._drained = drained  # packets per ns
        self._arriving = 0.0  # packets per ns
        self._ends: list[tuple[float, float]] = []  # of flows: when, and by how much less arrives from then on
        self._tell = tell  # when its growth changes, and by how much
        self._growth = 0.0

    def add(self, end_ns: float, packets_per_ns: float, left: float) -> None:
        """Let a flow send from now until `end_ns`, and hold it back with what it has left."""
        heappush(self._ends, (end_ns, packets_per_ns))
        self._arriving += packets_per_ns
        self._left += left
        self.held_back += left > 0
        self._set_growth()

    def advance(self, now_ns: float) -> None:
        """Go on to `now_ns`."""
        while self._ends and self._ends[0][0] <= now_ns:
            end_ns, packets_per_ns = heappop(self._ends)
            self._pass(end_ns)
            self._arriving = self._arriving - packets_per_ns if self._ends else 0.0
            self._set_growth()
        self._pass(now_ns)

    def _pass(self, until_ns: float) -> None:
        """Let time pass in which the same arrives."""
        if self._left > 0:
            refilled_ns = min(until_ns - self._now_ns, self._left / self._drained)
            self._go_to(self._now_ns + refilled_ns)
            self._left -= refilled_ns * self._drained
            if self._now_ns < until_ns:
                self._left = 0.0
                self.held_back = 0
                self._set_growth()
        if self._growth < 0 and self.packets + self._growth * (until_ns - self._now_ns) <= 0:
            self._go_to(self._now_ns - self.packets / self._growth)
            self.packets = 0.0
            self._set_growth()
        self._go_to(until_ns)

    def _go_to(self, time_ns: float) -> None:
        self.packets += self._growth * (time_ns - self._now_ns)
        self._now_ns = time_ns

    def _set_growth(self) -> None:
        growth = self._arriving if self._left > 0 else self._arriving - self._drained
        if self.packets <= 0:
            growth = max(growth, 0.0)
        if growth != self._growth:
            self._tell((self._now_ns, growth - self._growth))
            self._growth = growth


def _peak(changes: list[tuple[float, float]], limit_ns: float) -> float:
    """Return the largest value of a sum that starts at 0 and whose growth changes so, until a time."""
    most = total = growth = now_ns = 0.0
    for time_ns, change in sorted(changes):
        if time_ns > limit_ns:
            break
        total += growth * (time_ns - now_ns)
        most = max(most, total)
        now_ns = time_ns
        growth += change
    return max(most, total + growth * (limit_ns - now_ns))
