"""TCP Reno's window rules (RFC 5681) over this transport: slow start, congestion avoidance, a halving per loss.

A NAK or a gap in selective ACKs stands for three duplicate ACKs (fast retransmit). Losses among packets that were in
flight at a cut belong to it (fast recovery), so there is one cut a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class RenoParameters:
    initial_window_packets: float = field(default=10.0, metadata=POSITIVE)  # the first window (RFC 6928)
    max_window_bytes: int = field(default=65_535, metadata=POSITIVE)  # the receiver's window, without scaling
    min_ssthresh_packets: float = field(default=2.0, metadata=POSITIVE)  # the smallest slow-start threshold


class Reno(ReactionPoint):
    """Reno, whose `window_bytes` is the congestion window in wire bytes.

    The rate is the line's, so ACKs clock the packets.
    """

    def __init__(self, parameters: RenoParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.segment_bytes = float(path.wire_bytes)
        self.max_bytes = max(float(parameters.max_window_bytes), self.segment_bytes)
        self.ssthresh_bytes = self.max_bytes
        self.recover = 0  # losses of packets first sent before this one belong to the last cut
        self.window_bytes = min(parameters.initial_window_packets * self.segment_bytes, self.max_bytes)

    def on_ack(self, feedback: Feedback) -> None:
        acked = float(feedback.acked_bytes)
        if acked <= 0.0:
            return
        if self.window_bytes < self.ssthresh_bytes:
            grown = self.window_bytes + acked  # slow start, by bytes (RFC 3465)
        else:
            grown = self.window_bytes + self.segment_bytes * acked / self.window_bytes
        self.set_window(min(grown, self.max_bytes))

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """Retransmit fast and cut the window.

        A loss counts only after everything that was in flight at the last cut is acknowledged.
        """
        if self.traffic.oldest_unacked() >= self.recover:
            self._cut()
            self.set_window(self.ssthresh_bytes)

    def on_timeout(self, now_ns: int) -> None:
        self._cut()
        self.set_window(self.segment_bytes)

    def _cut(self) -> None:
        self.recover = self.traffic.fresh_packets
        self.ssthresh_bytes = max(self.window_bytes / 2.0, self.parameters.min_ssthresh_packets * self.segment_bytes)


def reaction_point(parameters: RenoParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Reno(parameters, path)


register(
    ProtocolInfo(
        name="reno",
        summary="TCP Reno's window rules",
        source="RFC 5681",
        program="ecn",
        parameters=RenoParameters,
        reaction_point=reaction_point,
    )
)
