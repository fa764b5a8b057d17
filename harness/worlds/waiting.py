"""Forecast of the packets that wait in the network for links that are too slow for their traffic.

Most of them are caused by many-to-one traffic, before its receivers' links, and by over-subscribed
links between switches. Senders with windows or grants have few packets there. Feedback on a queue
arrives only after the queue has been passed. So some senders that react to feedback keep the queue
constant, and each new one adds to it until it gets feedback. With many such senders the queue grows
faster than the feedback arrives, and they send all of their data.

The forecast is the larger one of two numbers. For the first, all packets wait before their
receivers' links. For the second, each waits before the link of its path that takes longest for its
total traffic (`harness.worlds.slow_links`). How many packets wait when senders react depends on
the protocol's control loop, which is not modelled; without any reaction there are most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from harness.plan.run import Run
from harness.workloads import Flow
from harness.worlds.slow_links import Bottleneck, Sent, SlowLinks
from host_agents.registry import Protocol

# Largest number of senders to one receiver that feedback can limit. With DCQCN, 24 that start
# together and send 10 MB each had 17 MB in the queue, and 32 had 218 MB.
_HELD_BACK = 16


class WaitingPackets(NamedTuple):
    """Largest number of packets that wait at the same time."""

    expected: int
    most: int  # the number if no sender reacts to feedback


@dataclass(frozen=True)
class _Opening:
    """Start of a flow's sender, before any feedback from the network."""

    packet_ns: float  # time between two packets
    held_back: bool  # it slows down when the first packet that waited is answered


@dataclass(frozen=True)
class _Begun:
    """Flow to a receiver, or to one of several, that begins in the run."""

    sent: Sent
    opening: _Opening


class Waiting:
    """Queues of all bottlenecks as a fluid, and the largest number of packets in them at a time."""

    def __init__(self, run: Run, packet_ns: list[float]) -> None:
        self._run = run
        self._packet_ns = packet_ns  # time of a packet on each host's link
        self._openings: dict[tuple[str, int], _Opening | None] = {}  # by protocol and rate of the sender's link

    def packets(self, flows: Iterable[tuple[float, Flow, int]], independent: bool) -> WaitingPackets:
        """Return the largest numbers of waiting packets, for flows with starts and numbers of packets.

        Dependent flows start after others are done, which slow links between switches delay.
        """
        limited = all(each.parameters.limits_queues for each in self._run.switch_programs)
        begun = [] if limited else self._begun(flows)
        if not begun:
            return WaitingPackets(0, 0)
        links = SlowLinks(self._run, self._packet_ns)
        places = [[links.receiver(one.sent.destination) for one in begun]]
        if independent:
            places.append(links.slowest([one.sent for one in begun]))
        expected, most = (max(self._most_packets(begun, place, react) for place in places) for react in (True, False))
        return WaitingPackets(expected, max(expected, most))

    def _begun(self, flows: Iterable[tuple[float, Flow, int]]) -> list[_Begun]:
        """Return the flows to each receiver that begin before the limit, in order of their starts."""
        free_ns = [0.0] * len(self._packet_ns)  # time at which a sender's link has carried its flows so far
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

    def _most_packets(self, begun: Sequence[_Begun], bottlenecks: Sequence[Bottleneck], react: bool) -> int:
        """Return the largest number of waiting packets if each flow waits at its bottleneck alone.

        With `react`, feedback limits the senders whose protocol reacts to it.
        """
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
            if react and opening.held_back and queue.held_back < _HELD_BACK:
                unanswered_ns = 2 * rtt_ns + queue.packets / bottleneck.packets_per_ns
                sent = min(sent, unanswered_ns / opening.packet_ns)
            queue.add(one.sent.begin_ns + sent * opening.packet_ns, 1 / opening.packet_ns, one.sent.packets - sent)
        for queue in queues.values():
            queue.advance(limit_ns)
        return min(round(_peak(changes, limit_ns)), self._room_packets(bottlenecks))

    def _opening(self, flow: Flow) -> _Opening | None:
        """Return the start of a flow; None if its sender has at most about a BDP in the network."""
        protocol = self._run.protocol_of(flow)
        uplink = self._run.topology.uplink(self._run.topology.hosts[flow.source])
        key = protocol.name, uplink.rate_bps
        if key not in self._openings:
            self._openings[key] = self._made(protocol, uplink.rate_bps, self._packet_ns[flow.source])
        return self._openings[key]

    def _made(self, protocol: Protocol, rate_bps: int, packet_ns: float) -> _Opening | None:
        from host_agents.cc.base import UNLIMITED, Path  # compiled, so imported after `use_native_hosts`

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
        """Return the number of packets for which switches have room.

        If switches pause each other, all of them count; otherwise those with hosts and those before
        the bottlenecks.
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

    The remaining packets of limited flows arrive at the rate of the link.
    """

    def __init__(self, drained: float, tell: Callable[[tuple[float, float]], None]) -> None:
        self.packets = 0.0
        self.held_back = 0  # number of limited flows that have packets left
        self._left = 0.0  # number of these packets
        self._now_ns = 0.0
        self._drained = drained  # rate in packets per ns
        self._arriving = 0.0  # rate in packets per ns
        self._ends: list[tuple[float, float]] = []  # ends of flows: times, and decreases of the arrival rate
        self._tell = tell  # called with times and changes of the growth
        self._growth = 0.0

    def add(self, end_ns: float, packets_per_ns: float, left: float) -> None:
        """Let a flow send from now until `end_ns`, and limit it if it has packets left then."""
        heappush(self._ends, (end_ns, packets_per_ns))
        self._arriving += packets_per_ns
        self._left += left
        self.held_back += left > 0
        self._set_growth()

    def advance(self, now_ns: float) -> None:
        """Advance to `now_ns`."""
        while self._ends and self._ends[0][0] <= now_ns:
            end_ns, packets_per_ns = heappop(self._ends)
            self._pass(end_ns)
            self._arriving = self._arriving - packets_per_ns if self._ends else 0.0
            self._set_growth()
        self._pass(now_ns)

    def _pass(self, until_ns: float) -> None:
        """Advance by a time with a constant arrival rate."""
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
    """Return the maximum until `limit_ns` of a quantity that starts at 0 and whose growth changes at these times."""
    most = total = growth = now_ns = 0.0
    for time_ns, change in sorted(changes):
        if time_ns > limit_ns:
            break
        total += growth * (time_ns - now_ns)
        most = max(most, total)
        now_ns = time_ns
        growth += change
    return max(most, total + growth * (limit_ns - now_ns))
