"""InfiniBand's congestion control (InfiniBand Architecture Specification, volume 1, annex A10), on RoCEv2 marks.

A switch marks a packet (FECN, here ECN's CE), and the receiver notifies the sender with the ACK
(BECN, here the ACK's echo). Each such ACK increases an index into the congestion control table, and
a timer decreases it. The entry is the delay between two packets, in packet times. The table is
linear, as Gran et al. (IPDPS 2010) suggest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents.cc.base import Feedback, Path, ReactionOutlet, ReactionPoint
from host_agents.ranges import POSITIVE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

TIMER_UNIT_NS: Final = 1_024


@dataclass(frozen=True)
class InfinibandParameters:
    """Parameters that the annex leaves open. Defaults are Gran et al.'s; `delay_packets` is a choice."""

    ccti_increase: int = field(default=1, metadata=POSITIVE)  # increase of the index for each BECN
    ccti_limit: int = field(default=127, metadata=POSITIVE)  # the last entry of the table
    ccti_min: int = 0  # lower limit of the index for the timer
    # Period of decreasing the index by 1, in units of 1.024 us.
    ccti_timer: int = field(default=150, metadata=POSITIVE)
    delay_packets: float = field(default=1.0, metadata=POSITIVE)  # difference of successive entries of the table


class Infiniband(ReactionPoint):
    """Reaction point whose rate inserts the table's delay between packets: line rate / (1 + delay)."""

    def __init__(self, parameters: InfinibandParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.ccti = min(parameters.ccti_min, parameters.ccti_limit)  # congestion control table index
        self._timer_ns = parameters.ccti_timer * TIMER_UNIT_NS
        self._apply()

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._timer = self.timer()

    def on_ack(self, feedback: Feedback) -> None:
        if feedback.marked and self.ccti < self.parameters.ccti_limit:
            self.ccti = min(self.ccti + self.parameters.ccti_increase, self.parameters.ccti_limit)
            self._apply()
            if not self._timer.is_armed():
                self._timer.arm(feedback.now_ns + self._timer_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self.ccti > self.parameters.ccti_min:
            self.ccti -= 1
            self._apply()
            timer.arm(now_ns + self._timer_ns)

    def _apply(self) -> None:
        self.set_rate(self.path.line_rate_bps / (1.0 + self.parameters.delay_packets * float(self.ccti)))


def reaction_point(parameters: InfinibandParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Infiniband(parameters, path)


register(
    ProtocolInfo(
        name="infiniband",
        summary="a delay between packets from a table: up with each mark, down with time",
        source="InfiniBand Architecture Specification, volume 1, annex A10",
        program="ecn",
        parameters=InfinibandParameters,
        reaction_point=reaction_point,
    )
)
