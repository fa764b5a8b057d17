"""Sampling frequency (Snyder and Lebeck, "Fast Convergence to Fairness", IV-B and V-B).

The reference window falls once in a number of ACKs, not once in an RTT, so that a flow with more bandwidth falls more
often. It still rises once in an RTT.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.ranges import POSITIVE
from host_agents.registry import MechanismInfo, register


@dataclass(frozen=True)
class SfParameters:
    acks_per_decrease: int = field(default=30, metadata=POSITIVE)


class SamplingFrequency:
    def __init__(self, parameters: SfParameters) -> None:
        self.acks_per_decrease = parameters.acks_per_decrease
        self.acks = 0  # since the reference window fell

    def may_update(self, decreasing: bool, rtt_over: bool) -> bool:
        """Whether this ACK moves the reference window."""
        self.acks += 1
        if not decreasing:
            return rtt_over
        if self.acks < self.acks_per_decrease:
            return False
        self.acks = 0
        return True


register(
    MechanismInfo(
        name="sf",
        summary="sampling frequency: decreases come once in so many ACKs",
        source="Snyder and Lebeck, Fast Convergence to Fairness for Reduced Long Flow Tail Latency, IV-B",
        parameters=SfParameters,
    )
)
