"""TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1): the rate follows the gradient of the RTT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from host_agents.cc.base import Feedback, Path, ReactionPoint
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import ProtocolInfo, register


@dataclass(frozen=True)
class TimelyParameters:
    """Parameters of TIMELY.

    Defaults are those of the paper, section 6; the gain is that of the published HPCC simulator.
    """

    gain: float = field(default=0.875, metadata=SHARE)  # alpha, weight of the newest RTT difference
    beta: float = field(default=0.8, metadata=SHARE)  # factor of the multiplicative decrease
    t_low_ns: int = field(default=50_000, metadata=POSITIVE)  # RTT below which the rate always grows
    t_high_ns: int = field(default=500_000, metadata=POSITIVE)  # RTT above which the rate always falls
    min_rtt_ns: int = field(default=20_000, metadata=POSITIVE)  # divisor that normalizes gradients
    additive_increase_bps: float = 10e6  # delta, which an additive increase adds
    # increases in succession after which the step is this many times delta
    hyper_increase_steps: int = field(default=5, metadata=POSITIVE)
    # wire bytes acknowledged between two RTT samples: a completion event
    segment_bytes: int = field(default=16_000, metadata=POSITIVE)
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)  # the smallest rate


class Timely(ReactionPoint):
    def __init__(self, parameters: TimelyParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.last_rtt_ns = -1
        self.rtt_difference_ns = 0.0
        self.increases = 0  # increases in succession by the gradient
        self._acked_bytes = 0

    def on_ack(self, feedback: Feedback) -> None:
        self._acked_bytes += feedback.acked_bytes
        if feedback.rtt_ns >= 0 and self._acked_bytes >= self.parameters.segment_bytes:
            self._acked_bytes = 0
            self.on_completion(feedback.rtt_ns)

    def on_completion(self, rtt_ns: int) -> None:
        """Handle a completion event with this RTT."""
        p = self.parameters
        last = self.last_rtt_ns
        self.last_rtt_ns = rtt_ns
        if last < 0:
            return
        self.rtt_difference_ns = (1.0 - p.gain) * self.rtt_difference_ns + p.gain * float(rtt_ns - last)
        gradient = self.rtt_difference_ns / float(p.min_rtt_ns)
        rate = self.rate_bps
        if rtt_ns < p.t_low_ns:
            self.increases = 0
            rate += p.additive_increase_bps
        elif rtt_ns > p.t_high_ns:
            self.increases = 0
            rate *= 1.0 - p.beta * (1.0 - float(p.t_high_ns) / float(rtt_ns))
        elif gradient <= 0.0:
            self.increases += 1
            steps = p.hyper_increase_steps if self.increases >= p.hyper_increase_steps else 1
            rate += float(steps) * p.additive_increase_bps
        else:
            self.increases = 0
            rate *= 1.0 - p.beta * gradient
        self.set_rate(min(max(rate, p.min_rate_bps), self.path.line_rate_bps))


def reaction_point(parameters: TimelyParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Timely(parameters, path)


register(
    ProtocolInfo(
        name="timely",
        summary="rate from the gradient of the RTT",
        source="Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
        program="ecn",
        parameters=TimelyParameters,
        reaction_point=reaction_point,
    )
)
