"""PLB, protective load balancing (Qureshi et al., SIGCOMM 2022): a flow moves to another path when it stays congested.

ACKs are judged by rounds of one base RTT. A round is congested when at least `marked_share` of its
ACKs are marked (a trimmed packet counts as marked). A new path is a new random entropy. A flow that
has been congested for `idle_rounds` rounds in a row takes it once the flow has been idle for a
round. A flow that has been congested for `rounds` rounds, or that timed out, takes it at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.lb.base import ENTROPIES, FIRST_ENTROPY, LoadBalancer
from host_agents.ranges import POSITIVE, SHARE
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class PlbParameters:
    """Defaults: those of the Linux kernel's PLB (congestion threshold 50%, 3 and 12 rounds)."""

    # Share of marked ACKs from which on a round is congested.
    marked_share: float = field(default=0.5, metadata=SHARE)
    idle_rounds: int = field(default=3, metadata=POSITIVE)  # congested rounds after which an idle flow takes a new path
    rounds: int = field(default=12, metadata=POSITIVE)  # congested rounds after which any flow takes a new path


class Plb(LoadBalancer):
    def __init__(self, parameters: PlbParameters, seed: int, path: Path) -> None:
        self.parameters = parameters
        self.round_ns = path.base_rtt_ns
        self.random = random.Random(seed)
        self.entropy = FIRST_ENTROPY + seed % ENTROPIES
        self.round_end_ns = 0
        self.acks = 0  # ACKs of this round
        self.marks = 0
        self.congested_rounds = 0  # congested rounds in succession
        self.last_ns = 0  # time at which something was last sent or received

    def next_entropy(self, now_ns: int) -> int:
        idle = now_ns - self.last_ns >= self.round_ns
        if idle and self.congested_rounds >= self.parameters.idle_rounds:
            self._move()
        self.last_ns = now_ns
        return self.entropy

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        self.last_ns = now_ns
        self.acks += 1
        if marked:
            self.marks += 1
        if now_ns >= self.round_end_ns:
            self._end_round(now_ns)

    def on_nack(self, now_ns: int, entropy: int) -> None:
        self.on_ack(now_ns, entropy, True)

    def on_timeout(self, now_ns: int) -> None:
        self._move()

    def _end_round(self, now_ns: int) -> None:
        p = self.parameters
        if float(self.marks) >= p.marked_share * float(self.acks):
            self.congested_rounds += 1
        else:
            self.congested_rounds = 0
        self.acks = 0
        self.marks = 0
        self.round_end_ns = now_ns + self.round_ns
        if self.congested_rounds >= p.rounds:
            self._move()

    def _move(self) -> None:
        self.entropy = FIRST_ENTROPY + int(self.random.random() * float(ENTROPIES))
        self.congested_rounds = 0


def create(parameters: PlbParameters, seed: int, path: Path) -> LoadBalancer:
    return Plb(parameters, seed, path)


register(
    LoadBalancerInfo(
        name="plb",
        summary="one path per QP, left when it stays congested",
        source="Qureshi et al., PLB: congestion signals are simple and effective for network load balancing, 2022",
        parameters=PlbParameters,
        create=create,
        per_packet=True,
    )
)
