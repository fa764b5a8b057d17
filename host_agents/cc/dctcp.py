"""DCTCP (RFC 8257): the window shrinks by the share of its bytes that were marked. Windows are in wire bytes.

An ACK echoes the mark of all packets that it acknowledges: with any protocol, the receiver sends
one at once when marks change (RFC 8257, 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class DctcpParameters:
    gain: float = field(default=1 / 16, metadata=SHARE)  # g, weight of the newest window's share of marks
    initial_alpha: float = field(default=1.0, metadata=SHARE_OR_NONE)  # initial share of marks
    initial_window_packets: float = 0.0  # 0: one BDP, at line rate, as in RDMA comparisons
    slow_start: bool = False  # the first window doubles each RTT until a mark
    max_window_bdp: float = field(default=4.0, metadata=POSITIVE)  # the largest window
    min_window_packets: float = field(default=1.0, metadata=POSITIVE)  # the smallest window


class MarkedShare:
    """Marked share of the acknowledged bytes, averaged over windows of data (RFC 8257, 3.3)."""

    def __init__(self, gain: float, initial_alpha: float) -> None:
        self.alpha = initial_alpha
        self._gain = gain
        self._window_order = 0  # an ACK of a packet sent from here on ends the observation window
        self._acked_bytes = 0
        self._marked_bytes = 0

    def on_ack(self, feedback: Feedback, sent_packets: int) -> None:
        """Count an ACK, and update `alpha` if it ends the window; the next one begins after `sent_packets`."""
        self._acked_bytes += feedback.acked_bytes
        if feedback.marked:
            self._marked_bytes += feedback.acked_bytes
        if feedback.order < self._window_order:
            return
        if self._acked_bytes > 0:
            share = float(self._marked_bytes) / float(self._acked_bytes)
            self.alpha = (1.0 - self._gain) * self.alpha + self._gain * share
        self._acked_bytes = 0
        self._marked_bytes = 0
        self._window_order = sent_packets


class Dctcp(ReactionPoint):
    def __init__(self, parameters: DctcpParameters, path: Path) -> None:
        super().__init__(path)
        p = parameters
        self.marked_share = MarkedShare(p.gain, p.initial_alpha)
        self.packet_bytes = float(path.wire_bytes)
        self.max_window_bytes = max(p.max_window_bdp * path.bdp_bytes, self.packet_bytes)
        self.min_window_bytes = p.min_window_packets * self.packet_bytes
        initial = p.initial_window_packets * self.packet_bytes
        self.window_bytes = initial if initial > 0.0 else max(path.bdp_bytes, self.packet_bytes)
        self.threshold_bytes = self.max_window_bytes if p.slow_start else 0.0  # ssthresh
        self.cut_order = -1  # marks of packets sent before this one have had their cut
        self.acked_order = -1  # the latest packet acknowledged

    def on_ack(self, feedback: Feedback) -> None:
        self.acked_order = max(self.acked_order, feedback.order)
        self.marked_share.on_ack(feedback, self.traffic.sent_packets)
        if feedback.marked:
            if feedback.order >= self.cut_order:
                self._cut(1.0 - self.marked_share.alpha / 2.0)
        elif self.window_bytes < self.threshold_bytes:
            self._set(self.window_bytes + float(feedback.acked_bytes))
        else:
            self._set(self.window_bytes + self.packet_bytes * float(feedback.acked_bytes) / self.window_bytes)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """Halve the window for a loss, once per window in flight (RFC 8257, 3.4)."""
        if self.acked_order >= self.cut_order:
            self._cut(0.5)

    def on_timeout(self, now_ns: int) -> None:
        self.threshold_bytes = max(self.window_bytes / 2.0, 2.0 * self.packet_bytes)
        self._set(self.packet_bytes)
        self.cut_order = self.traffic.sent_packets

    def _cut(self, factor: float) -> None:
        self._set(self.window_bytes * factor)
        self.threshold_bytes = self.window_bytes
        self.cut_order = self.traffic.sent_packets

    def _set(self, window_bytes: float) -> None:
        self.window_bytes = min(max(window_bytes, self.min_window_bytes), self.max_window_bytes)


def reaction_point(parameters: DctcpParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Dctcp(parameters, path)


register(
    ProtocolInfo(
        name="dctcp",
        summary="window cut by the share of bytes marked",
        source="RFC 8257",
        program="ecn",
        parameters=DctcpParameters,
        reaction_point=reaction_point,
    )
)
