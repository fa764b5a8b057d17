"""NSCC, the sender's congestion control of Ultra Ethernet: a window from ECN marks, delay and trimmed packets.

Each ACK is one of four cases, by its mark and by whether its queuing delay exceeds a target. After
an unmarked ACK the window grows: in proportion to the difference between target and delay if the
delay is below the target, and by a fixed fair amount otherwise. After a marked ACK it stays as it
is if the delay is below the target. Otherwise it shrinks, at most once a base RTT, if the average
delay exceeds the target. Growth is collected and applied when some packets have been acknowledged.
Fast increase uses capacity that others have released: after a whole window with hardly any delay, a
share of the acknowledged bytes is added at once. Quick adapt reacts to heavy congestion. If less
than an eighth of the largest window was delivered in a base RTT plus a target delay, after a
trimmed packet or with a delay of several targets, the window becomes the delivered bytes, and
feedback of packets in flight is ignored.

NSCC is based on SMaRTT (`smartt`). It follows the consortium's reference simulator. Where the
simulator's behaviour seems to be unintended, the default here is the plausible behaviour, and a
parameter `as_simulated_...` selects the simulator's. The queuing delay is the RTT less the least
RTT measured; an ACK without an RTT counts with the average delay.

Windows are in wire bytes. A packet leaves if the window has room for all of a full packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Feedback, Path, ReactionPoint, Trimmed
from host_agents.cc.uec import REFERENCE_RATE_BPS, REFERENCE_RTT_NS, scale
from host_agents.ranges import POSITIVE, SHARE, one_of
from host_agents.registry import ProtocolInfo, register

NSCC: Final = "nscc"
DCTCP: Final = "dctcp"
CONSTANT: Final = "constant"

_WRAP: Final = 4294967296.0


@dataclass(frozen=True)
class NsccParameters:
    """Defaults are the reference simulator's; its symbols are named where it has them."""

    algorithm: str = field(default=NSCC, metadata=one_of(NSCC, DCTCP, CONSTANT))  # algorithm of the window
    trimming: bool = True  # whether the switches trim; the target delay depends on it
    target_delay_base_rtts: float = field(default=0.75, metadata=POSITIVE)  # the target queuing delay with trimming
    target_delay_untrimmed_base_rtts: float = field(default=1.0, metadata=POSITIVE)  # the same without trimming
    fair_increase_packets: float = 5.0  # fi, in an RTT without marks and with a delay above the target; scaled
    # Increase in an RTT without marks and delay, times the target over the reference's base RTT;
    # scaled. The simulator's alpha is this divided by the target.
    proportional_increase_packets: float = 4.0
    eta_packets: float = 0.15  # added in each update period, regardless of the signals; scaled
    fast_increase_share: float = 0.25  # share of the acknowledged bytes that fast increase adds; scaled
    fast_increase_delay_ns: int = 1_000  # a shorter delay counts as none
    decrease_gain: float = 0.8  # gamma: gain of the average delay's excess over the target
    least_decrease_factor: float = field(default=0.5, metadata=SHARE)  # smallest factor of one decrease
    delay_gain: float = field(default=0.0125, metadata=SHARE)  # weight of a sample in the average of delays
    # Sample with which an ACK without a mark counts in the average if its delay exceeds the target.
    unmarked_delay_base_rtts: float = 0.25
    least_window_packets: float = field(default=1.0, metadata=POSITIVE)  # the smallest window
    # The largest window, for the least measured RTT.
    most_window_bdp: float = field(default=1.5, metadata=POSITIVE)
    first_window_packets: float = 0.0  # the window at the start; 0: the largest
    # Quick adapt acts when less than the largest window divided by 2 to the power of this was
    # delivered in a period.
    quick_adapt_gate: int = field(default=3, metadata={"ge": 0, "le": 30})
    quick_adapt_delay_targets: float = 4.0  # a delay of this many targets lets quick adapt act without a loss
    update_base_rtts: float = field(default=1.0, metadata=POSITIVE)  # the update period
    # An update is made earlier when more than this was acknowledged since the last one.
    update_packets: float = 8.0
    dctcp_increase_packets: float = 1.0  # increase in an RTT without marks, with the algorithm "dctcp"
    # With "dctcp": acknowledged bytes with a mark, divided by this, are taken from the window.
    dctcp_decrease_divisor: float = field(default=3.0, metadata=POSITIVE)
    # Rate at which increases are not scaled.
    reference_rate_bps: float = field(default=REFERENCE_RATE_BPS, metadata=POSITIVE)
    # Base RTT at which increases are not scaled.
    reference_rtt_ns: float = field(default=REFERENCE_RTT_NS, metadata=POSITIVE)
    # The reference simulator seems to do the following unintentionally; on: to reproduce its
    # figures.

    # The pending increase is a sum of 32 bits, which two ACKs overflow at 800 Gb/s.
    as_simulated_wrap: bool = False
    as_simulated_arm: bool = False  # a trimmed packet arms quick adapt until it acts; off: until its period ends
    as_simulated_raise: bool = False  # quick adapt may raise the window
    # Marked ACKs with little delay, and unmarked ones above the target, do not reset the count of
    # fast increase.
    as_simulated_fast: bool = False
    # The RTT of a trimmed packet, which later links carry as 64 bytes, may reduce the base RTT
    # below its true value.
    as_simulated_base: bool = False


class Nscc(ReactionPoint):
    def __init__(self, parameters: NsccParameters, path: Path) -> None:
        super().__init__(path)
        p = parameters
        self.parameters = p
        # Values of the network, which are the same for all flows.
        network_ns = float(path.base_rtt_ns)
        self.packet_bytes = float(path.wire_bytes)
        self.update_ns = p.update_base_rtts * network_ns
        targets = p.target_delay_base_rtts if p.trimming else p.target_delay_untrimmed_base_rtts
        self.target_ns = targets * network_ns
        scaled = scale(path.bottleneck_bps, network_ns, path.mtu_bytes, p.reference_rate_bps, p.reference_rtt_ns)
        self.fair_increase_bytes = scaled.increase_bytes(p.fair_increase_packets)
        # Bytes per ns of delay: alpha.
        self.proportional_increase = scaled.increase_bytes(p.proportional_increase_packets) / p.reference_rtt_ns
        self.eta_bytes = scaled.increase_bytes(p.eta_packets)
        self.fast_increase = p.fast_increase_share * scaled.bdp
        self.update_bytes = p.update_packets * self.packet_bytes
        self.least_window_bytes = p.least_window_packets * self.packet_bytes
        # Values of the flow.
        self.base_ns = 0.0
        self.most_window_bytes = 0.0
        self._set_base_rtt(network_ns)
        first_bytes = p.first_window_packets * self.packet_bytes
        self.window_bytes = self.most_window_bytes
        if first_bytes > 0.0:
            self.window_bytes = min(max(first_bytes, self.least_window_bytes), self.most_window_bytes)
        self.average_delay_ns = 0.0
        self.pending_increase = 0.0  # in bytes squared; divided by the window it is an increase in bytes
        self.received_bytes = 0  # bytes since the last update
        self.updated_ns = 0  # time at which eta was last added
        self.decreased_ns = -1  # time of the last decrease; -1: never
        self.fast_bytes = 0  # bytes acknowledged in succession with hardly any delay
        self.increasing_fast = False
        self.period_end_ns = 0.0  # end of quick adapt's period; 0: none yet
        self.achieved_bytes = 0  # bytes since the period began
        self.armed = False
        self.ignored_bytes = 0  # bytes whose feedback was ignored since quick adapt acted
        self.ignore_bytes = 0  # bytes in flight when quick adapt acted, whose feedback is ignored
        self._started = False

    def may_send(self, inflight_bytes: int) -> bool:
        return float(inflight_bytes) + self.packet_bytes <= self.window_bytes

    def on_start(self, now_ns: int) -> None:
        """Keep window and average after a pause, but stop ignoring feedback, since those packets have arrived."""
        if not self._started:
            self._started = True
            self.updated_ns = now_ns
        if self.traffic.inflight_bytes == 0:
            self.ignore_bytes = 0

    def on_ack(self, feedback: Feedback) -> None:
        now_ns = feedback.now_ns
        size = feedback.acked_bytes
        self.achieved_bytes += size
        self.received_bytes += size
        self.ignored_bytes += size
        delay_ns = self.average_delay_ns
        if feedback.rtt_ns >= 0:
            rtt_ns = float(feedback.rtt_ns)
            if rtt_ns < self.base_ns:
                self._set_base_rtt(rtt_ns)
            delay_ns = rtt_ns - self.base_ns
            self._average(delay_ns, feedback.marked)
        algorithm = self.parameters.algorithm
        if algorithm == NSCC:
            if not self._quick_adapt(now_ns, False, feedback.marked, delay_ns, self.traffic.inflight_bytes):
                self._react(now_ns, size, feedback.marked, delay_ns)
        elif algorithm == DCTCP:
            if feedback.marked:
                self.window_bytes -= float(size) / self.parameters.dctcp_decrease_divisor
            else:
                increase_bytes = self.parameters.dctcp_increase_packets * self.packet_bytes
                self.window_bytes += float(size) * increase_bytes / self.window_bytes
        self._clamp()

    def on_trimmed(self, trimmed: Trimmed) -> None:
        """Reduce the window for a trimmed packet.

        With `rccc+nscc` the receiver reacts to trims at the last hop instead.
        """
        rtt_ns = float(trimmed.rtt_ns)
        if self.parameters.as_simulated_base and 0.0 <= rtt_ns < self.base_ns:
            self._set_base_rtt(rtt_ns)
        self._lose(trimmed.now_ns, trimmed.wire_bytes, trimmed.last_hop and self.whole is not None)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """Reduce the window for a lost packet."""
        self._lose(now_ns, wire_bytes, False)

    def _lose(self, now_ns: int, wire_bytes: int, spared: bool) -> None:
        """Account for a packet that did not arrive; if `spared`, the window does not shrink because of it."""
        self.ignored_bytes += wire_bytes
        self._average(float(self.path.base_rtt_ns), True)
        if self.parameters.algorithm == CONSTANT:
            return
        self.armed = True
        inflight_bytes = self.traffic.inflight_bytes + wire_bytes  # the packet was in flight until now
        dctcp = self.parameters.algorithm == DCTCP
        if (dctcp or not self._quick_adapt(now_ns, True, True, 0.0, inflight_bytes)) and not spared:
            self.window_bytes -= float(wire_bytes)
        self._clamp()

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        if self.parameters.algorithm != CONSTANT:
            self.window_bytes -= float(wire_bytes)
            self._clamp()

    def _average(self, delay_ns: float, marked: bool) -> None:
        """Add a sample to the average delay.

        A sample above the target without a mark has little weight.
        """
        gain = self.parameters.delay_gain
        if not marked and delay_ns > self.target_ns:
            delay_ns = self.parameters.unmarked_delay_base_rtts * self.base_ns
        self.average_delay_ns += gain * (delay_ns - self.average_delay_ns)

    def _quick_adapt(self, now_ns: int, lost: bool, marked: bool, delay_ns: float, inflight_bytes: int) -> bool:
        """Run quick adapt; return True if it acted or ignores this feedback, so that nothing else reacts to it."""
        stops = False
        if self.ignored_bytes < self.ignore_bytes and marked:
            stops = True
        elif float(now_ns) > self.period_end_ns:
            gate_bytes = self.most_window_bytes / float(1 << self.parameters.quick_adapt_gate)
            severe = self.armed or lost or delay_ns > self.parameters.quick_adapt_delay_targets * self.target_ns
            if self.period_end_ns != 0.0 and severe and float(self.achieved_bytes) < gate_bytes:
                adapted_bytes = max(float(self.achieved_bytes), self.least_window_bytes)
                if self.parameters.as_simulated_raise or adapted_bytes < self.window_bytes:
                    self.window_bytes = adapted_bytes
                self.ignore_bytes = inflight_bytes
                self.ignored_bytes = 0
                self.armed = False
                stops = True
            elif not self.parameters.as_simulated_arm:
                self.armed = False
            self.achieved_bytes = 0
            self.period_end_ns = float(now_ns) + self.base_ns + self.target_ns
        if stops:
            self.pending_increase = 0.0
            self.received_bytes = 0
        return stops

    def _react(self, now_ns: int, size: int, marked: bool, delay_ns: float) -> None:
        if not marked:
            if delay_ns >= self.target_ns:
                if not self.parameters.as_simulated_fast:
                    self._stop_increasing_fast()
                self._increase(self.fair_increase_bytes * float(size))
            elif not self._increase_fast(size, delay_ns):
                self._increase(self.proportional_increase * float(size) * (self.target_ns - delay_ns))
        elif delay_ns >= self.target_ns:
            self._decrease(now_ns)
        elif not self.parameters.as_simulated_fast:
            self._stop_increasing_fast()
        self._clamp()
        elapsed_ns = float(now_ns - self.updated_ns)
        if elapsed_ns > self.update_ns or float(self.received_bytes) > self.update_bytes:
            self.window_bytes += self.pending_increase / self.window_bytes
            if elapsed_ns >= self.update_ns:
                self.window_bytes += self.eta_bytes
                self.updated_ns = now_ns
            self.pending_increase = 0.0
            self.received_bytes = 0

    def _increase(self, bytes_squared: float) -> None:
        pending = self.pending_increase + bytes_squared
        if self.parameters.as_simulated_wrap:
            pending = float(int(pending) % int(_WRAP))
        self.pending_increase = pending

    def _increase_fast(self, size: int, delay_ns: float) -> bool:
        """Return whether the window grows by a share of all acknowledged bytes."""
        if delay_ns >= float(self.parameters.fast_increase_delay_ns):
            self._stop_increasing_fast()
            return False
        self.fast_bytes += size
        if self.increasing_fast or float(self.fast_bytes) > self.window_bytes:
            self.window_bytes += self.fast_increase * float(size)
            self.increasing_fast = True
        return self.increasing_fast

    def _stop_increasing_fast(self) -> None:
        self.fast_bytes = 0
        self.increasing_fast = False

    def _decrease(self, now_ns: int) -> None:
        self._stop_increasing_fast()
        p = self.parameters
        average_ns = self.average_delay_ns
        if average_ns <= self.target_ns:
            return
        if self.decreased_ns >= 0 and float(now_ns - self.decreased_ns) <= self.base_ns:
            return
        factor = 1.0 - p.decrease_gain * (average_ns - self.target_ns) / average_ns
        self.window_bytes *= max(factor, p.least_decrease_factor)
        self.decreased_ns = now_ns

    def _clamp(self) -> None:
        self.window_bytes = min(max(self.window_bytes, self.least_window_bytes), self.most_window_bytes)

    def _set_base_rtt(self, base_ns: float) -> None:
        """Set the flow's base RTT and the values derived from it."""
        self.base_ns = base_ns
        most_bytes = self.parameters.most_window_bdp * self.path.bottleneck_bps * base_ns / 8e9
        self.most_window_bytes = max(most_bytes, self.least_window_bytes)


def reaction_point(parameters: NsccParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Nscc(parameters, path)


register(
    ProtocolInfo(
        name="nscc",
        summary="Ultra Ethernet's sender: window from ECN, delay and trimming; quick adapt",
        source="Ultra Ethernet Consortium, specification 1.0, and its reference simulator uet-htsim",
        program="trim",
        parameters=NsccParameters,
        reaction_point=reaction_point,
        selective=True,
    )
)
