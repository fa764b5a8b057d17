"""SMaRTT (Bonato et al., "SMaRTT-REPS", algorithms 1 to 3): a window from ECN marks, delay and trimmed packets.

Each ACK is one of four cases, by its mark and by whether its RTT exceeds the target (1.5 base
RTTs). QuickAdapt reacts to a trimmed packet, or a time-out, and sets the window to the bytes
acknowledged over one target RTT. FastIncrease uses capacity that others have released.
Wait-to-decrease leaves marks to the load balancer until a quarter of the packets have one.

Each trimmed packet is sent again by itself (algorithm 1, line 31), so the default is selective
repeat.

Where the listing and the text of the paper differ, p4cc follows the text:

- `acked` counts ACKs only.
- Trimmed packets neither cut the window nor arm QuickAdapt while feedback is ignored.
- The bounds hold wherever the algorithm ends.

QuickAdapt's measurement starts anew when ignoring ends. Otherwise it would mistake a few packets for
those of a target RTT. It also starts anew when a message starts and nothing is in flight. A
multiplicative decrease is "in any case" at most the packet's size; this bound applies to the sum
with the fair decrease. The average of marks follows the listing: packets whose feedback is ignored
are not counted, although section 3.6.1 says "for each packet".

State of a flow, in bytes, with the widths that hardware would need:

    window 3, acknowledged 3, to ignore 3, uncongested 3, end of the measurement 4, average of marks 2, flags 1

That is 19 bytes, the paper's sum. Seven numbers of 4 bytes are shared ("28 bytes globally"): packet, BDP, largest
window, target RTT, bound of an RTT near the base RTT, and fair and multiplicative increase, which include gamma.
The other parameters are constants of the logic. One counter downwards is enough for `bytes_ignored` and
`bytes_to_ignore`. Windows are in wire bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE, one_of
from host_agents.registry import ProtocolInfo, register

REFERENCE_BDP_BYTES: Final = 150e3  # BDP at which gamma is 1: 100 Gb/s, 12 us (section 3.5)
SIGNALS: Final = ("both", "ecn", "delay")


@dataclass(frozen=True)
class SmarttParameters:
    """Parameters of SMaRTT.

    Defaults are those of section 3.5. papers/smartt/README.md has sweeps of those that the paper
    leaves open.
    """

    target_base_rtts: float = field(default=1.5, metadata={"gt": 1})  # trtt, the target RTT
    fair_increase: float = 0.25  # fi, packets by which the window grows in an RTT, times gamma
    fair_decrease: float = 0.8  # fd, factor of the decrease by ACKs with marks and a short RTT
    multiplicative_decrease: float = 2.0  # md; twice that without trimming
    max_window_bdp: float = field(default=1.25, metadata=POSITIVE)  # the largest window
    initial_window_bdp: float = 0.0  # the first window; 0: the largest. The paper has it only for figure 2.
    scaling: bool = True  # gamma = BDP / reference BDP; off: 1
    trimming: bool = True  # whether the switches trim; if not, losses are found by time-out
    quick_adapt: bool = True  # after a loss or trim the window becomes what was delivered in an RTT
    quick_adapt_scaling: float = field(default=0.8, metadata=POSITIVE)  # share of the delivered bytes
    fast_increase: bool = True  # the window grows by k packets an ACK after one without congestion
    fast_increase_packets: float = 2.0  # k, packets that FastIncrease adds for each acknowledged one
    # Open: an RTT this far above the base RTT, as a share of it, counts as uncongested.
    near_base_rtt: float = 0.05
    wait_to_decrease: bool = True  # marks cut the window only if their average is high
    wait_gain: float = field(default=0.0625, metadata=SHARE)  # open: alpha of the average of marks
    # Average of marks from which on they cut the window.
    wait_threshold: float = field(default=0.25, metadata=SHARE_OR_NONE)
    # Figure 3b: evaluate the four cases once in this many ACKs.
    react_every_packets: int = field(default=1, metadata=POSITIVE)
    # Signals to which the window reacts. With a single one it is the plain window of figures 2 and 3a
    # instead of the four cases: it subtracts at most half of the acknowledged bytes, and has no
    # QuickAdapt, FastIncrease and wait-to-decrease.
    signals: str = field(default="both", metadata=one_of(*SIGNALS))


class Smartt(ReactionPoint):
    def __init__(self, parameters: SmarttParameters, path: Path) -> None:
        super().__init__(path)
        p = parameters
        self.parameters = p
        alone = p.signals != "both"
        self.by_mark = p.signals != "delay"
        self.by_delay = p.signals != "ecn"
        self.quick_adapts = p.quick_adapt and not alone
        self.increases_fast = p.fast_increase and not alone
        self.waits = p.wait_to_decrease and not alone
        self.packet_bytes = float(path.wire_bytes)  # the paper's mtu
        self.bdp_bytes = path.bdp_bytes
        self.max_window_bytes = max(p.max_window_bdp * path.bdp_bytes, self.packet_bytes)
        gamma = path.bdp_bytes / REFERENCE_BDP_BYTES if p.scaling else 1.0
        self.fair_increase_bytes = p.fair_increase * gamma * self.packet_bytes
        # mi = brtt / (trtt - brtt): one packet in an RTT without queues (section 3.2.4)
        self.increase_bytes = gamma * self.packet_bytes / (p.target_base_rtts - 1.0)
        self.md = p.multiplicative_decrease if p.trimming else 2.0 * p.multiplicative_decrease
        self.hops = -1  # number of routers of the path whose base RTT is in use
        self._set_path(-1)
        # Values of the flow.
        self.window_bytes = self.max_window_bytes
        if p.initial_window_bdp > 0.0:
            self.window_bytes = min(max(p.initial_window_bdp * path.bdp_bytes, self.packet_bytes), self.window_bytes)
        self.acked_bytes = 0  # bytes acknowledged since the measurement began
        self.ignore_bytes = 0  # still to be acknowledged or trimmed before feedback counts again
        self.end_ns = 0  # end of the measurement; 0: none yet
        self.adapt = False  # trigger_qa
        self.marked_average = 0.0  # avg_wtd
        self.uncongested_bytes = 0  # count
        self.increasing = False  # increase
        self.pending_bytes = 0  # bytes acknowledged since the last reaction, and the number of ACKs (figure 3b)
        self.pending_acks = 0

    def on_start(self, now_ns: int) -> None:
        """Forget QuickAdapt's measurement and a pending trim if nothing is in flight."""
        if self.traffic.inflight_bytes == 0:
            self.adapt = False
            self.end_ns = 0
            self.acked_bytes = 0

    def on_ack(self, feedback: Feedback) -> None:
        size = feedback.acked_bytes
        if size == 0:
            return
        if self.ignore_bytes > 0:
            self._ignore(feedback.now_ns, size)
            return
        self.acked_bytes += size
        may_decrease = self._wait_to_decrease(feedback.marked)
        if not self._quick_adapt(feedback.now_ns) and feedback.rtt_ns >= 0:
            if feedback.hops != self.hops:
                self._set_path(feedback.hops)
            if not self._fast_increase(feedback):
                self._react(feedback, may_decrease)
        self._clamp()

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._lose(now_ns, wire_bytes)

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        self._lose(now_ns, wire_bytes)

    def _lose(self, now_ns: int, size: int) -> None:
        """React to a loss (algorithm 1, lines 28 to 34); the transport retransmits."""
        self.uncongested_bytes = 0
        self.increasing = False
        if self.ignore_bytes > 0:
            self._ignore(now_ns, size)
            return
        self.adapt = self.quick_adapts
        self.window_bytes -= float(size)
        self._quick_adapt(now_ns)
        self._clamp()

    def _ignore(self, now_ns: int, size: int) -> None:
        """Ignore feedback of a packet that was in flight when QuickAdapt set the window."""
        self.ignore_bytes -= size
        if self.ignore_bytes <= 0:
            self.ignore_bytes = 0
            self._measure_from(now_ns)

    def _measure_from(self, now_ns: int) -> None:
        self.end_ns = now_ns + self.target_ns
        self.acked_bytes = 0

    def _quick_adapt(self, now_ns: int) -> bool:
        """Adapt the window at most once in a target RTT (algorithm 2); return whether it did."""
        if now_ns < self.end_ns:
            return False
        adapts = self.adapt and self.end_ns != 0
        if adapts:
            self.adapt = False
            scaling = self.parameters.quick_adapt_scaling
            self.window_bytes = max(float(self.acked_bytes), self.packet_bytes) * scaling
            self.ignore_bytes += self.traffic.inflight_bytes
        self._measure_from(now_ns)
        return adapts

    def _fast_increase(self, feedback: Feedback) -> bool:
        """Add k packets per acknowledged one after a window without congestion (algorithm 3).

        Returns whether it did.
        """
        if not self.increases_fast:
            return False
        if feedback.marked or feedback.rtt_ns > self.near_ns:
            self.uncongested_bytes = 0
            self.increasing = False
        else:
            self.uncongested_bytes += feedback.acked_bytes
            if self.increasing or float(self.uncongested_bytes) > self.window_bytes:
                self.window_bytes += self.parameters.fast_increase_packets * self.packet_bytes
                self.increasing = True
        return self.increasing

    def _wait_to_decrease(self, marked: bool) -> bool:
        """Return whether marks may cut the window (section 3.6.1)."""
        if not self.waits:
            return True
        p = self.parameters
        average = (1.0 - p.wait_gain) * self.marked_average
        self.marked_average = average + p.wait_gain if marked else average
        return self.marked_average >= p.wait_threshold

    def _react(self, feedback: Feedback, may_decrease: bool) -> None:
        self.pending_bytes += feedback.acked_bytes
        self.pending_acks += 1
        if self.pending_acks < self.parameters.react_every_packets:
            return
        size = float(self.pending_bytes)
        self.pending_bytes = 0
        self.pending_acks = 0
        rtt_ns = float(feedback.rtt_ns)
        is_slow = rtt_ns > float(self.target_ns)
        if not self.by_mark:
            if is_slow:
                self.window_bytes -= min(size / 2.0, self._multiplicative_decrease(size, rtt_ns))
            else:
                self._multiplicative_increase(size, rtt_ns)
        elif feedback.marked:
            if not self.by_delay:
                self.window_bytes -= size / 2.0
            elif may_decrease:
                decrease = self.window_bytes / self.bdp_bytes * self.parameters.fair_decrease * size  # equation 1
                if is_slow:
                    decrease += self._multiplicative_decrease(size, rtt_ns)
                self.window_bytes -= min(size, decrease)
        elif is_slow or not self.by_delay:
            self._fair_increase(size)
        else:
            self._multiplicative_increase(size, rtt_ns)

    def _multiplicative_decrease(self, size: float, rtt_ns: float) -> float:
        """Return equation 2 without its bound."""
        return (rtt_ns - float(self.target_ns)) / rtt_ns * self.md * size

    def _fair_increase(self, size: float) -> None:
        """Increase the window by equation 3."""
        self.window_bytes += size / self.window_bytes * self.fair_increase_bytes

    def _multiplicative_increase(self, size: float, rtt_ns: float) -> None:
        """Increase the window by equation 4 and a fair increase."""
        nearness = (float(self.target_ns) - rtt_ns) / rtt_ns
        self.window_bytes += min(size, nearness * size / self.window_bytes * self.increase_bytes)
        self._fair_increase(size)

    def _clamp(self) -> None:
        self.window_bytes = min(max(self.window_bytes, self.packet_bytes), self.max_window_bytes)

    def _set_path(self, hops: int) -> None:
        """Set the base RTT of paths over `hops` routers and the values derived from it (section 3, overview)."""
        self.hops = hops
        base_ns = self.path.base_rtt_over(hops)
        self.target_ns = int(self.parameters.target_base_rtts * float(base_ns))
        self.near_ns = int((1.0 + self.parameters.near_base_rtt) * float(base_ns))


def reaction_point(parameters: SmarttParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Smartt(parameters, path)


register(
    ProtocolInfo(
        name="smartt",
        summary="window from ECN, delay and trimming; QuickAdapt, FastIncrease",
        source="Bonato et al., SMaRTT-REPS: Sender-based Marked Rapidly-adapting Trimmed & Timed Transport",
        program="trim",
        parameters=SmarttParameters,
        reaction_point=reaction_point,
        selective=True,
    )
)
