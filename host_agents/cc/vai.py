"""Variable additive increase (Snyder and Lebeck, "Fast Convergence to Fairness", algorithms 1 and 2).

Congestion mints tokens, because a growing queue indicates a new flow. An additive increase is
multiplied by the tokens that it spends. A dampener prevents tokens from causing congestion that
mints more tokens. The measure of congestion depends on the protocol: bytes of queue for HPCC, ns of
delay beyond the target for Swift.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.ranges import POSITIVE
from host_agents.registry import MechanismInfo, register


@dataclass(frozen=True)
class VaiParameters:
    token_threshold_bytes: float = 50_000.0  # HPCC: the smallest BDP of the network
    # Bytes of queue over the threshold that mint a token of HPCC.
    bytes_per_token: float = field(default=1_000.0, metadata=POSITIVE)
    token_threshold_ns: float = 4_000.0  # Swift: the delay of that queue, beyond the target delay
    # Delay over the threshold that mints a token of Swift.
    ns_per_token: float = field(default=30.0, metadata=POSITIVE)
    ai_cap_tokens: float = 100.0  # largest number of tokens spent in one update
    bank_cap_tokens: float = 1_000.0  # largest number of tokens kept
    # The dampener divided by this reduces the effect of tokens.
    dampener_constant: float = field(default=8.0, metadata=POSITIVE)


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
        self.congested = False  # the protocol had a reason to decrease in this RTT

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
        """Return the factor of the additive increase (algorithm 2).

        With `spend` the tokens are spent, because the reference rate is adjusted by the factor.
        """
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
