"""Swift (Kumar et al., SIGCOMM 2020, algorithm 1): the window follows the delay.

The target delay grows with the path's hops, and as the window shrinks.

Windows are in wire bytes. A flow starts with one BDP, at line rate, as in the RDMA papers that use
Swift. With variable AI or sampling frequency (`swift+vai+sf`; Snyder and Lebeck, "Fast Convergence
to Fairness", V) the window is computed from a reference window at every ACK, as in HPCC. Then the
additive increase always applies, and the target does not depend on the window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.cc.sf import SamplingFrequency, SfParameters
from host_agents.cc.vai import VaiParameters, VariableAi
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class SwiftParameters:
    """Defaults: thesis, table 3.1."""

    additive_increase_bps: float = 50e6  # increase per RTT: this rate times T
    beta: float = field(default=0.8, metadata=SHARE)  # factor of the relative excess of delay in a decrease
    max_mdf: float = field(default=0.5, metadata=SHARE)  # largest share of the window that one decrease subtracts
    # Target delay of a path without hops and flow scaling.
    base_target_ns: int = field(default=5_000, metadata=POSITIVE)
    per_hop_ns: int = 2_000  # h-bar, added for each router on the path
    flow_scaling: bool = True  # the target grows as the window shrinks
    fs_range_ns: int = 25_000  # largest addition by flow scaling
    fs_min_window_packets: float = field(default=0.1, metadata=POSITIVE)  # window at which flow scaling adds the most
    # Window from which on flow scaling adds nothing.
    fs_max_window_packets: float = field(default=100.0, metadata=POSITIVE)
    max_window_bdp: float = field(default=1.0, metadata=POSITIVE)  # the largest window
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)  # the smallest window is this rate times T
    # Time-outs in succession that reset the window to its smallest value.
    timeouts_to_reset: int = field(default=5, metadata=POSITIVE)
    # Packets are spaced at the window's rate, W / T, as in the HPCC paper's simulator. Otherwise only those of a window
    # below a packet are spaced, as in Swift's paper.
    paced: bool = False
    random_feedback: bool = False  # baseline of the VAI paper: a decrease is omitted with probability 1 - W / W_max


class Swift(ReactionPoint):
    def __init__(
        self,
        parameters: SwiftParameters,
        path: Path,
        variable_ai: VariableAi | None = None,
        sampling: SamplingFrequency | None = None,
    ) -> None:
        super().__init__(path)
        p = parameters
        self.parameters = p
        self.variable_ai = variable_ai
        self.sampling = sampling
        self.by_reference = variable_ai is not None or sampling is not None
        self.max_window_bytes = p.max_window_bdp * path.bdp_bytes
        self.min_window_bytes = p.min_rate_bps * path.base_rtt_ns / 8e9
        self.increase_bytes = p.additive_increase_bps * path.base_rtt_ns / 8e9
        self.window_bytes = self.max_window_bytes
        self.reference_bytes = self.max_window_bytes
        self.update_order = 0  # an ACK of a packet sent from here on ends the RTT
        self.last_decrease_ns = -1 << 62
        self.rtt_ns = path.base_rtt_ns
        self.timeouts = 0  # time-outs in succession
        self._packet_bytes = float(path.wire_bytes)
        span = 1.0 / math.sqrt(p.fs_min_window_packets) - 1.0 / math.sqrt(p.fs_max_window_packets)
        self._fs_alpha = float(p.fs_range_ns) / span
        self._fs_beta = -self._fs_alpha / math.sqrt(p.fs_max_window_packets)
        self._flow_scaling = p.flow_scaling and not self.by_reference

    def target_ns(self, hops: int) -> float:
        """Return the target delay (Kumar et al., 3.5): base, plus hops, plus flow-based scaling."""
        p = self.parameters
        target = float(p.base_target_ns + p.per_hop_ns * hops)
        if self._flow_scaling:
            packets = self.window_bytes / self._packet_bytes
            scaled = self._fs_alpha / math.sqrt(packets) + self._fs_beta
            target += max(0.0, min(scaled, float(p.fs_range_ns)))
        return target

    def on_ack(self, feedback: Feedback) -> None:
        self.timeouts = 0
        if feedback.rtt_ns < 0:
            return
        self.rtt_ns = feedback.rtt_ns
        target = self.target_ns(feedback.hops)
        if self.by_reference:
            self._from_reference(feedback, target)
        else:
            self._from_window(feedback, target)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._lose(now_ns)

    def on_timeout(self, now_ns: int) -> None:
        self.timeouts += 1
        if self.timeouts >= self.parameters.timeouts_to_reset:
            self._set(self.min_window_bytes)
            self.reference_bytes = self.window_bytes
            self.last_decrease_ns = now_ns
        else:
            self._lose(now_ns)

    def _from_window(self, feedback: Feedback, target_ns: float) -> None:
        """Set the window by algorithm 1 of the paper."""
        delay_ns = float(feedback.rtt_ns)
        window = self.window_bytes
        if delay_ns < target_ns:
            packets = float(feedback.acked_bytes) / self._packet_bytes
            if window >= self._packet_bytes:
                packets *= self._packet_bytes / window
            self._set(window + self.increase_bytes * packets)
        elif feedback.now_ns - self.last_decrease_ns >= self.rtt_ns:
            self.last_decrease_ns = feedback.now_ns  # an omitted decrease also counts as the one of this RTT
            if not (self.parameters.random_feedback and self._ignores()):
                self._set(window * self._decrease(delay_ns, target_ns))

    def _from_reference(self, feedback: Feedback, target_ns: float) -> None:
        """Set the window from the reference window at every ACK, as in HPCC."""
        delay_ns = float(feedback.rtt_ns)
        decreasing = delay_ns >= target_ns
        rtt_over = feedback.order >= self.update_order
        vai = self.variable_ai
        if vai is not None:
            vai.observe(delay_ns - target_ns, decreasing)
            if rtt_over:
                vai.end_rtt()
        update = rtt_over
        if self.sampling is not None:
            update = self.sampling.may_update(decreasing, rtt_over)
        increase = self.increase_bytes
        if vai is not None:
            increase *= vai.multiplier(update)
        factor = self._decrease(delay_ns, target_ns) if decreasing else 1.0
        self._set(self.reference_bytes * factor + increase)
        if update:
            self.reference_bytes = self.window_bytes
        if rtt_over:
            self.update_order = self.traffic.sent_packets

    def _decrease(self, delay_ns: float, target_ns: float) -> float:
        p = self.parameters
        return max(1.0 - p.beta * (delay_ns - target_ns) / delay_ns, 1.0 - p.max_mdf)

    def _lose(self, now_ns: int) -> None:
        if now_ns - self.last_decrease_ns >= self.rtt_ns:
            self._set(self.window_bytes * (1.0 - self.parameters.max_mdf))
            self.reference_bytes = self.window_bytes
            self.last_decrease_ns = now_ns

    def _ignores(self) -> bool:
        return self.window_bytes < self.host.random.random() * self.max_window_bytes

    def _set(self, window_bytes: float) -> None:
        window = min(max(window_bytes, self.min_window_bytes), self.max_window_bytes)
        self.window_bytes = window
        if self.parameters.paced:
            self.set_rate(self.path.charged_bps(window * 8e9 / float(self.path.base_rtt_ns)))
        elif window < self._packet_bytes:
            self.set_rate(self.path.charged_bps(window * 8e9 / float(self.rtt_ns)))
        else:
            self.set_rate(self.path.line_rate_bps)


def reaction_point(parameters: SwiftParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    vai = mechanisms.get("vai")
    sf = mechanisms.get("sf")
    variable_ai = None
    if isinstance(vai, VaiParameters):
        variable_ai = VariableAi(vai, vai.token_threshold_ns, vai.ns_per_token)
    return Swift(parameters, path, variable_ai, SamplingFrequency(sf) if isinstance(sf, SfParameters) else None)


register(
    ProtocolInfo(
        name="swift",
        summary="window from delay, target scaled by hops and by flow",
        source="Kumar et al., Swift: Delay is Simple and Effective for Congestion Control, SIGCOMM 2020",
        program="ecn",
        parameters=SwiftParameters,
        reaction_point=reaction_point,
        mechanisms=("vai", "sf"),
    )
)
