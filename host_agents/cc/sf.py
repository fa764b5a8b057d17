"""Sampling frequency (Snyder and Lebeck, "Fast Convergence to Fairness", IV-B and V-B).

The reference window falls once in a number of ACKs, not once in an RTT, so that a flow with more bandwidth falls more
often. It still rises once in an RTT. With so many flows that 30 ACKs take dozens of RTTs, windows then rise often and
fall rarely; `at_least_once_an_rtt` lets them also fall at the end of an RTT (papers/fairness/README.md, C9).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.ranges import POSITIVE
from host_agents.registry import MechanismInfo, register


@dataclass(frozen=True)
class SfParameters:
    acks_per_decrease: int = field(default=30, metadata=POSITIVE)  # ACKs between two decreases of the reference window
    at_least_once_an_rtt: bool = False  # the paper's text does not have this, but its figures at 96 to 1 agree with it


class SamplingFrequency:
    def __init__(self, parameters: SfParameters) -> None:
        self.acks_per_decrease = parameters.acks_per_decrease
        self.at_least_once_an_rtt = parameters.at_least_once_an_rtt
        self.acks = 0  # ACKs since the last decrease of the reference window

    def may_update(self, decreasing: bool, rtt_over: bool) -> bool:
        """Return whether this ACK may change the reference window."""
        self.acks += 1
        if not decreasing:
            return rtt_over
        if self.acks < self.acks_per_decrease and not (rtt_over and self.at_least_once_an_rtt):
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
