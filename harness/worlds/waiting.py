"""Forecast of the packets that wait in the network for links that are too slow for their traffic.

Many-to-one traffic makes most of them, before its receivers' links, and over-subscribed links between switches.

Senders with windows or grants have little there. Feedback on a queue comes from behind it: some senders that go by it
hold the queue where it is, and each new one adds to it until it hears; with many of them the queue grows faster than
they hear, and they send all that they have.

Packets are counted twice, and the larger number is taken: as if all waited before their receivers' links, and as if
each waited before that link of its path that needs the longest for all of its traffic (`harness.worlds.slow_links`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from harness.plan.run import Run
from harness.workloads import Flow
from harness.worlds.slow_links import Bottleneck, Sent, SlowLinks
from host_agents.registry import Protocol

# Senders to one receiver whom feedback can hold back: of DCQCN, 24 that start together and send 10 MB each had 17 MB in
# the queue, and 32 had 218 MB.
_HELD_BACK = 16


@dataclass(frozen=True)
class _Opening:
    """How a flow's sender begins, without word from the network."""

    packet_ns: float  # from one packet to the next
    held_back: bool  # it slows down when the first packet that waited has been answered


@dataclass(frozen=True)
class _Begun:
    """A flow that its receiver, or one of them, gets in the run."""

    sent: Sent
    opening: _Opening


class Waiting:
    """The queues of all bottlenecks, as a fluid, and the most packets that they hold together."""

    def __init__(self, run: Run, packet_ns: list[float]) -> None:
        self._run = run
        self._packet_ns = packet_ns  # of a host's link
        self._openings: dict[tuple[str, int], _Opening | None] = {}  # by protocol and rate of the sender's link

    def most_packets(self, flows: Iterable[tuple[float, Flow, int]], independent: bool) -> int:
        """Return the most packets that wait at once, of flows with their starts and numbers of packets.

        Flows that are not independent start when others are done, and slow links between switches hold those up.
        """
        begun = [] if self._run.program_parameters.limits_queues else self._begun(flows)
        if not begun:
            return 0
        links = SlowLinks(self._run, self._packet_ns)
        receivers = [links.receiver(one.sent.destination) for one in begun]
        most = self._most_packets(begun, receivers)
        if not independent:
            return most
        return max(most, self._most_packets(begun, links.slowest([one.sent for one in begun])))

    def _begun(self, flows: Iterable[tuple[float, Flow, int]]) -> list[_Begun]:
        """Return what is sent to each receiver before the limit, by when it begins."""
        free_ns = [0.0] * len(self._packet_ns)  # when a sender's link has carried its flows so far
        begun: list[_Begun] = []
        for start_ns, flow, count in sorted(flows, key=lambda each: each[0]):
            opening = self._opening(flow)
            if opening is None:
                continue
            begin_ns = max(start_ns, free_ns[flow.source])
            free_ns[flow.source] = begin_ns + count * self._packet_ns[flow.source]
            end_ns = begin_ns + count * opening.packet_ns
            if begin_ns < self._run.limit_ns:
                begun += [_Begun(Sent(flow.source, to, count, begin_ns, end_ns), opening) for to in flow.destinations]
        return sorted(begun, key=lambda one: one.sent.begin_ns)

    def _most_packets(self, begun: Sequence[_Begun], bottlenecks: Sequence[Bottleneck]) -> int:
        """Return the most packets that wait at once, if each flow waits at its bottleneck alone."""
        changes: list[tuple[float, float]] = []
        queues: dict[Hashable, _Queue] = {}
        limit_ns = float(self._run.limit_ns)
        rtt_ns = self._run.base_rtt_ns()
        for one, bottleneck in zip(begun, bottlenecks, strict=True):
            queue = queues.get(bottleneck.key)
            if queue is None:
                queue = queues[bottleneck.key] = _Queue(bottleneck.packets_per_ns, changes.append)
            queue.advance(one.sent.begin_ns)
            sent, opening = float(one.sent.packets), one.opening
            if opening.held_back and queue.held_back < _HELD_BACK:
                unanswered_ns = 2 * rtt_ns + queue.packets / bottleneck.packets_per_ns
                sent = min(sent, unanswered_ns / opening.packet_ns)
            queue.add(one.sent.begin_ns + sent * opening.packet_ns, 1 / opening.packet_ns, one.sent.packets - sent)
        for queue in queues.values():
            queue.advance(limit_ns)
        return min(round(_peak(changes, limit_ns)), self._room_packets(bottlenecks))

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

    def _room_packets(self, bottlenecks: Iterable[Bottleneck]) -> int:
        """Return the packets for which switches have room: in all of them, if they pause each other.

        Else in those with hosts, and in those before the bottlenecks.
        """
        run = self._run
        buffer_bytes = run.scenario.switch.buffer_bytes
        if buffer_bytes is None:
            return 1 << 62
        switches = len(run.topology.switches)
        if not run.scenario.switch.pfc.enabled:
            before = {switch for bottleneck in bottlenecks for switch in bottleneck.switches}
            switches = len(before.union(run.topology.uplink(host).node for host in run.topology.hosts))
        return switches * buffer_bytes // run.data_bytes


class _Queue:
    """Queue before a bottleneck, in packets, into which flows send at constant rates.

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
