"""Variable additive increase (Snyder and Lebeck, "Fast Convergence to Fairness", algorithms 1 and 2).

Congestion mints tokens, because a queue that grows tells of a new flow; an additive increase is multiplied by the
tokens it spends. A dampener keeps tokens from causing the congestion that mints more. What counts as congestion is the
protocol's own: bytes of queue for HPCC, ns of delay beyond the target for Swift.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.ranges import POSITIVE
from host_agents.registry import MechanismInfo, register


@dataclass(frozen=True)
class VaiParameters:
    token_threshold_bytes: float = 50_000.0  # HPCC: the smallest BDP of the network
    # Of a queue over the threshold, that mint a token of HPCC.
    bytes_per_token: float = field(default=1_000.0, metadata=POSITIVE)
    token_threshold_ns: float = 4_000.0  # Swift: what that queue costs, beyond the target delay
    # Of a delay over the threshold, that mint a token of Swift.
    ns_per_token: float = field(default=30.0, metadata=POSITIVE)
    ai_cap_tokens: float = 100.0  # spent at most in one update
    bank_cap_tokens: float = 1_000.0  # the most tokens that are kept
    dampener_constant: float = field(default=8.0, metadata=POSITIVE)  # the dampener over this lowers what tokens add


class VariableAi:
    def __init__(self, parameters: VaiParameters, threshold: float, per_token: float) -> None:
        self.threshold = threshold
        self.per_token = per_token
        self.ai_cap = parameters.ai_cap_tokens
        self.bank_cap = parameters.bank_cap_tokens
        self.dampener_constant = parameters.dampener_constant
        self.bank = 0.0  # tokens
        self.dampener = 0.0
        self.measured = 0.0  # the worst congestion of this RTT
        self.congested = False  # the protocol saw a reason to decrease in this RTT

    def observe(self, congestion: float, congested: bool) -> None:
        """Record the congestion that one ACK reports."""
        if congestion > self.measured:
            self.measured = congestion
        if congested:
            self.congested = True

    def end_rtt(self) -> None:
        """Mint tokens and set the dampener (algorithm 1)."""
        if self.measured > self.threshold:
            self.bank = min(self.measured / self.per_token + self.bank, self.bank_cap)
            self.dampener += self.measured / self.threshold
        elif self.bank == 0.0:
            if not self.congested:
                self.dampener = 0.0
            elif self.measured < self.threshold:
                self.dampener = max(self.dampener - 1.0, 0.0)
        self.measured = 0.0
        self.congested = False

    def multiplier(self, spend: bool) -> float:
        """Return the factor of the additive increase (algorithm 2); `spend`: the reference rate is adjusted by it."""
        tokens = min(self.ai_cap, self.bank)
        if spend:
            self.bank = max(self.bank - tokens, 0.0)
        return max(tokens / (self.dampener / self.dampener_constant + 1.0), 1.0)


register(
    MechanismInfo(
        name="vai",
        summary="variable additive increase: congestion mints tokens, increases spend them",
        source="Snyder and Lebeck, Fast Convergence to Fairness for Reduced Long Flow Tail Latency, algorithms 1-2",
        parameters=VaiParameters,
    )
)
