"""MP-RDMA's window (Lu et al., NSDI 2018, 3.2): it follows the ECN mark of every ACK.

An ACK without a mark adds 1/cwnd packets, and one with a mark subtracts half a packet, over all
paths together. Its choice of paths is not implemented: SMaRTT's evaluation (section 4) runs it over
REPS, with trimming, and so do scenarios. The transport (selective repeat) handles reordered and
lost packets. Windows are in wire bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class MpRdmaParameters:
    increase_packets: float = 1.0  # packets added for a window of ACKs without a mark
    decrease_packets: float = 0.5  # packets subtracted for each ACK with a mark
    # Packets subtracted for each packet trimmed or lost; not in the paper: the same as for a mark.
    trim_decrease_packets: float = 0.5
    # SMaRTT's evaluation starts all windows with 1.25 BDP (figure 2).
    initial_window_bdp: float = field(default=1.25, metadata=POSITIVE)
    max_window_bdp: float = field(default=1.25, metadata=POSITIVE)  # the largest window
    min_window_packets: float = field(default=1.0, metadata=POSITIVE)  # the smallest window


class MpRdma(ReactionPoint):
    def __init__(self, parameters: MpRdmaParameters, path: Path) -> None:
        super().__init__(path)
        p = parameters
        self.parameters = p
        self.packet_bytes = float(path.wire_bytes)
        self.min_window_bytes = p.min_window_packets * self.packet_bytes
        self.max_window_bytes = max(p.max_window_bdp * path.bdp_bytes, self.min_window_bytes)
        self.window_bytes = 0.0
        self._set(p.initial_window_bdp * path.bdp_bytes)

    def on_ack(self, feedback: Feedback) -> None:
        p = self.parameters
        if feedback.marked:
            self._set(self.window_bytes - p.decrease_packets * self.packet_bytes)
        else:
            increase = p.increase_packets * self.packet_bytes * float(feedback.acked_bytes)
            self._set(self.window_bytes + increase / self.window_bytes)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._set(self.window_bytes - self.parameters.trim_decrease_packets * self.packet_bytes)

    def on_timeout(self, now_ns: int) -> None:
        """Restart from the smallest window."""
        self._set(self.min_window_bytes)

    def _set(self, window_bytes: float) -> None:
        self.window_bytes = min(max(window_bytes, self.min_window_bytes), self.max_window_bytes)


def reaction_point(parameters: MpRdmaParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return MpRdma(parameters, path)


register(
    ProtocolInfo(
        name="mprdma",
        summary="window from the ECN mark of every ACK",
        source="Lu et al., Multi-Path Transport for RDMA in Datacenters, NSDI 2018",
        program="ecn",
        parameters=MpRdmaParameters,
        reaction_point=reaction_point,
    )
)
