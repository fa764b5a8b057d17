"""BBR, version 1 (Cardwell et al., CACM 2017): pacing at the measured bandwidth, a window of two BDPs.

The model is the largest delivery rate of the last ten rounds and the smallest RTT of a longer
window. Startup and Drain find the bandwidth, ProbeBW varies around it in cycles of eight RTTs, and
ProbeRTT empties the queue for a short time. State machine and constants:
draft-cardwell-iccrg-bbr-congestion-control-00, section 4 (quoted below as "draft"); delivery rates:
draft-cheng-iccrg-delivery-rate-estimation-00. There are two differences: a flow starts with a
window of one BDP at line rate, like all RDMA transports of this testbed, and the times of ProbeRTT
are a thousandth of the draft's, like the RTTs of a datacenter. Windows are in wire bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE
from host_agents.registry import ProtocolInfo, register

STARTUP: Final = 0
DRAIN: Final = 1
PROBE_BW: Final = 2
PROBE_RTT: Final = 3

CYCLE: Final = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]  # draft, 4.3.4: pacing gains for one minimum RTT each
FULL_GROWTH: Final = 1.25  # draft, 4.3.2.2: the pipe is full after three rounds without this growth
FULL_ROUNDS: Final = 3


@dataclass(frozen=True)
class BbrParameters:
    startup_gain: float = field(default=2.885, metadata=POSITIVE)  # gain of rate and window in Startup: 2 / ln 2
    window_gain: float = field(default=2.0, metadata=POSITIVE)  # gain of the window in ProbeBW
    # Number of round trips over which the largest delivery rate is kept.
    bandwidth_rounds: int = field(default=10, metadata=POSITIVE)
    min_rtt_window_ns: int = 10_000_000  # validity of the minimum RTT; draft: 10 s
    probe_rtt_ns: int = 200_000  # the length of ProbeRTT; draft: 200 ms
    min_window_packets: float = field(default=4.0, metadata=POSITIVE)  # the smallest window
    quantum_packets: float = 3.0  # added to the gain's BDPs, for ACKs that come in batches
    initial_window_bdp: float = field(default=1.0, metadata=POSITIVE)  # the first window


class _Sent:
    """State recorded when a packet left."""

    def __init__(self) -> None:
        self.order = -1
        self.sent_ns = 0
        self.delivered_bytes = 0
        self.delivered_ns = 0
        self.first_sent_ns = 0
        self.app_limited = False


class DeliveryRate:
    """Samples of the delivery rate: delivered bytes divided by the longer of send and ACK interval.

    The bytes of a sample are those that were delivered while its packet was in flight.
    """

    def __init__(self) -> None:
        self.delivered_bytes = 0
        self.sample_bps = 0.0  # sample of the last ACK; 0: none
        self.app_limited = False  # during this sample the sender had nothing more to send
        self.prior_delivered_bytes = 0  # state when the packet of this sample left
        self._delivered_ns = 0
        self._first_sent_ns = 0
        self._limited_until_bytes = 0  # samples are application-limited until this many bytes are delivered
        self._highest_acked = -1
        self._ring = [_Sent() for _ in range(64)]

    def restart(self, now_ns: int) -> None:
        """Restart the measurement, since nothing is in flight."""
        self._first_sent_ns = now_ns
        self._delivered_ns = now_ns

    def limit(self, inflight_bytes: int) -> None:
        """Mark samples as application-limited, since the sender has nothing more to send."""
        self._limited_until_bytes = self.delivered_bytes + inflight_bytes

    def sent(self, now_ns: int, order: int) -> None:
        while order - self._highest_acked >= len(self._ring):
            self._grow()
        entry = self._ring[order & (len(self._ring) - 1)]
        entry.order = order
        entry.sent_ns = now_ns
        entry.delivered_bytes = self.delivered_bytes
        entry.delivered_ns = self._delivered_ns
        entry.first_sent_ns = self._first_sent_ns
        entry.app_limited = self.delivered_bytes < self._limited_until_bytes

    def acked(self, now_ns: int, order: int, acked_bytes: int, min_rtt_ns: int) -> bool:
        """Update the sample by an ACK; return False if its packet is unknown."""
        self.delivered_bytes += acked_bytes
        self._delivered_ns = now_ns
        self.sample_bps = 0.0
        entry = self._ring[order & (len(self._ring) - 1)]
        if entry.order != order:
            return False
        entry.order = -1
        if order > self._highest_acked:
            self._highest_acked = order
        self._first_sent_ns = entry.sent_ns
        self.prior_delivered_bytes = entry.delivered_bytes
        self.app_limited = entry.app_limited
        elapsed_ns = max(entry.sent_ns - entry.first_sent_ns, now_ns - entry.delivered_ns)
        if elapsed_ns > 0 and elapsed_ns >= min_rtt_ns:
            self.sample_bps = float(self.delivered_bytes - entry.delivered_bytes) * 8e9 / float(elapsed_ns)
        return True

    def _grow(self) -> None:
        old = self._ring
        self._ring = [_Sent() for _ in range(2 * len(old))]
        for entry in old:
            if entry.order >= 0:
                self._ring[entry.order & (len(self._ring) - 1)] = entry


class Bbr(ReactionPoint):
    def __init__(self, parameters: BbrParameters, path: Path) -> None:
        super().__init__(path)
        p = parameters
        self.parameters = p
        self.packet_bytes = float(path.wire_bytes)
        self.state = STARTUP
        self.bandwidth_bps = 0.0
        self.min_rtt_ns = -1  # unknown
        self.pacing_gain = p.startup_gain
        self.window_gain = p.startup_gain
        self.rounds = 0
        self.filled_pipe = False
        self.initial_window_bytes = max(p.initial_window_bdp * path.bdp_bytes, p.min_window_packets * self.packet_bytes)
        self.window_bytes = self.initial_window_bytes
        self.delivery = DeliveryRate()
        self._max_of_round = [0.0] * p.bandwidth_rounds
        self._round_start = False
        self._round_ends_bytes = 0
        self._full_bps = 0.0
        self._full_rounds = 0
        self._min_rtt_seen_ns = 0
        self._cycle = 0
        self._cycle_started_ns = 0
        self._probe_rtt_until_ns = -1
        self._probe_rtt_round_done = False
        self._lost = False  # whether there was a loss since the last ACK
        self._recovering = False
        self._conserving = False  # packet conservation: the first round of a recovery
        self._recovery_order = 0  # an ACK of a packet sent from here on ends the recovery
        self._prior_window_bytes = 0.0

    def on_start(self, now_ns: int) -> None:
        if self.traffic.inflight_bytes == 0:
            self.delivery.restart(now_ns)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        if self.traffic.waiting_bytes == 0:
            self.delivery.limit(self.traffic.inflight_bytes)
        self.delivery.sent(now_ns, self.traffic.sent_packets - 1)

    def on_ack(self, feedback: Feedback) -> None:
        now_ns = feedback.now_ns
        prior_inflight_bytes = self.traffic.inflight_bytes + feedback.acked_bytes
        known = self.delivery.acked(now_ns, feedback.order, feedback.acked_bytes, self.min_rtt_ns)
        self._round_start = False
        if known:
            self._update_bandwidth()
            self._check_full_pipe()
        if self.state == STARTUP and self.filled_pipe:
            self._enter(DRAIN, 1.0 / self.parameters.startup_gain, self.parameters.startup_gain)
        if self.state == DRAIN and self.traffic.inflight_bytes <= self._inflight_at(1.0):
            self._enter_probe_bw(now_ns)
        if self.state == PROBE_BW:
            self._check_cycle(now_ns, prior_inflight_bytes)
        self._update_min_rtt(now_ns, feedback.rtt_ns)
        self._update_recovery(feedback.order, known)
        self._lost = False
        self._set_pacing_rate()
        self._update_window(float(feedback.acked_bytes))

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """React to a loss with one round of packet conservation (draft, 4.2.3.4)."""
        self._lost = True
        if not self._recovering:
            self._recovering = True
            self._conserving = True
            self._recovery_order = self.traffic.sent_packets
            self._prior_window_bytes = max(self._prior_window_bytes, self.window_bytes)
            self.window_bytes = float(self.traffic.inflight_bytes)
        else:
            self.window_bytes -= float(wire_bytes)
        self.window_bytes = max(self.window_bytes, self.packet_bytes)

    def on_timeout(self, now_ns: int) -> None:
        """Restart from a window of one packet, since everything may be lost (draft, 4.2.3.4)."""
        self._prior_window_bytes = max(self._prior_window_bytes, self.window_bytes)
        self._recovering = True
        self._conserving = False
        self._recovery_order = self.traffic.sent_packets
        self.window_bytes = self.packet_bytes

    def _inflight_at(self, gain: float) -> float:
        """Return `gain` BDPs by the model, as bytes in flight (draft, 4.2.3.2)."""
        if self.min_rtt_ns < 0 or self.bandwidth_bps == 0.0:
            return self.initial_window_bytes
        bdp_bytes = self.bandwidth_bps * float(self.min_rtt_ns) / 8e9
        return gain * bdp_bytes + self.parameters.quantum_packets * self.packet_bytes

    def _update_bandwidth(self) -> None:
        """Insert the round's largest sample into the max filter (draft, 4.1.1).

        A sample of an idle sender can only raise it.
        """
        delivery = self.delivery
        slots = self._max_of_round
        if delivery.prior_delivered_bytes >= self._round_ends_bytes:
            self._round_ends_bytes = delivery.delivered_bytes
            self.rounds += 1
            self._round_start = True
            slots[self.rounds % len(slots)] = 0.0
        sample_bps = delivery.sample_bps
        slot = self.rounds % len(slots)
        if sample_bps > slots[slot] and (not delivery.app_limited or sample_bps >= self.bandwidth_bps):
            slots[slot] = sample_bps
        largest_bps = 0.0
        for bps in slots:
            largest_bps = max(largest_bps, bps)
        if largest_bps > 0.0:
            self.bandwidth_bps = largest_bps

    def _check_full_pipe(self) -> None:
        if self.filled_pipe or not self._round_start or self.delivery.app_limited:
            return
        if self.bandwidth_bps >= self._full_bps * FULL_GROWTH:
            self._full_bps = self.bandwidth_bps
            self._full_rounds = 0
            return
        self._full_rounds += 1
        self.filled_pipe = self._full_rounds >= FULL_ROUNDS

    def _enter(self, state: int, pacing_gain: float, window_gain: float) -> None:
        self.state = state
        self.pacing_gain = pacing_gain
        self.window_gain = window_gain

    def _enter_probe_bw(self, now_ns: int) -> None:
        """Enter ProbeBW at a random phase of the cycle, but not at the phase that slows down."""
        self._cycle = (2 + int(self.host.random.random() * float(len(CYCLE) - 1))) % len(CYCLE)
        self._cycle_started_ns = now_ns
        self._enter(PROBE_BW, CYCLE[self._cycle], self.parameters.window_gain)

    def _check_cycle(self, now_ns: int, prior_inflight_bytes: int) -> None:
        over = now_ns - self._cycle_started_ns > self.min_rtt_ns
        if self.pacing_gain > 1.0:
            over = over and (self._lost or prior_inflight_bytes >= self._inflight_at(self.pacing_gain))
        elif self.pacing_gain < 1.0:
            over = over or prior_inflight_bytes <= self._inflight_at(1.0)
        if over:
            self._cycle = (self._cycle + 1) % len(CYCLE)
            self._cycle_started_ns = now_ns
            self.pacing_gain = CYCLE[self._cycle]

    def _update_min_rtt(self, now_ns: int, rtt_ns: int) -> None:
        """Update the min filter, and enter ProbeRTT when its window has expired (draft, 4.3.5)."""
        p = self.parameters
        expired = self.min_rtt_ns >= 0 and now_ns > self._min_rtt_seen_ns + p.min_rtt_window_ns
        if rtt_ns >= 0 and (self.min_rtt_ns < 0 or rtt_ns <= self.min_rtt_ns or expired):
            self.min_rtt_ns = rtt_ns
            self._min_rtt_seen_ns = now_ns
        if expired and self.state != PROBE_RTT:
            self._enter(PROBE_RTT, 1.0, 1.0)
            self._prior_window_bytes = max(self._prior_window_bytes, self.window_bytes)
            self._probe_rtt_until_ns = -1
        if self.state == PROBE_RTT:
            self._probe_rtt(now_ns)

    def _probe_rtt(self, now_ns: int) -> None:
        if self._probe_rtt_until_ns < 0:
            if self.traffic.inflight_bytes <= self.parameters.min_window_packets * self.packet_bytes:
                self._probe_rtt_until_ns = now_ns + self.parameters.probe_rtt_ns
                self._probe_rtt_round_done = False
                self._round_ends_bytes = self.delivery.delivered_bytes
            return
        if self._round_start:
            self._probe_rtt_round_done = True
        if self._probe_rtt_round_done and now_ns > self._probe_rtt_until_ns:
            self._min_rtt_seen_ns = now_ns
            self._restore_window()
            if self.filled_pipe:
                self._enter_probe_bw(now_ns)
            else:
                self._enter(STARTUP, self.parameters.startup_gain, self.parameters.startup_gain)

    def _update_recovery(self, order: int, known: bool) -> None:
        if self._round_start:
            self._conserving = False
        if self._recovering and known and order >= self._recovery_order:
            self._recovering = False
            self._conserving = False
            self._restore_window()

    def _restore_window(self) -> None:
        self.window_bytes = max(self.window_bytes, self._prior_window_bytes)
        self._prior_window_bytes = 0.0

    def _set_pacing_rate(self) -> None:
        rate_bps = self.path.charged_bps(self.pacing_gain * self.bandwidth_bps)
        if rate_bps > 0.0 and (self.filled_pipe or rate_bps > self.rate_bps):
            self.set_rate(min(rate_bps, self.path.line_rate_bps))

    def _update_window(self, acked_bytes: float) -> None:
        """Move the window towards the gain's BDPs by the acknowledged bytes (draft, 4.2.3.5)."""
        smallest = self.parameters.min_window_packets * self.packet_bytes
        if self._conserving:
            self.window_bytes = max(self.window_bytes, float(self.traffic.inflight_bytes) + acked_bytes)
        else:
            target = self._inflight_at(self.window_gain)
            if self.filled_pipe:
                self.window_bytes = min(self.window_bytes + acked_bytes, target)
            elif self.window_bytes < target:
                self.window_bytes += acked_bytes
            self.window_bytes = max(self.window_bytes, smallest)
        if self.state == PROBE_RTT:
            self.window_bytes = min(self.window_bytes, smallest)


def reaction_point(parameters: BbrParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Bbr(parameters, path)


register(
    ProtocolInfo(
        name="bbr",
        summary="paces at the largest delivery rate seen, window of two BDPs by the smallest RTT",
        source="Cardwell et al., BBR: Congestion-Based Congestion Control, CACM 2017",
        program="ecn",
        parameters=BbrParameters,
        reaction_point=reaction_point,
    )
)
