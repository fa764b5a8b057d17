"""Mixed, the default of Ultra Ethernet's reference simulator: recycled good entropies, else those of `bitmap`.

Each acknowledgement without a mark adds its entropy to an unlimited queue, and a packet takes the
oldest one. If there is none, it takes the next entropy without a penalty. Both parts get all
feedback.
"""

from __future__ import annotations

from host_agents.cc.base import Path
from host_agents.draws import Draws
from host_agents.fifo import Fifo
from host_agents.lb.base import LoadBalancer
from host_agents.lb.bitmap import BitmapParameters, Penalties
from host_agents.lb.oblivious import Rounds
from host_agents.registry import LoadBalancerInfo, register


class Mixed(LoadBalancer):
    def __init__(self, parameters: BitmapParameters, seed: int) -> None:
        self.rounds = Rounds(parameters.entropies, Draws(seed))
        self.penalties = Penalties(parameters, self.rounds)
        self.good: Fifo[int] = Fifo()

    def next_entropy(self, now_ns: int) -> int:
        number = self.good.pop() if self.good.size > 0 else self.penalties.next()
        return self.rounds.port(number)

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        number = self.rounds.number(entropy)
        if marked:
            self.penalties.on_mark(number)
        else:
            self.good.push(number)

    def on_nack(self, now_ns: int, entropy: int) -> None:
        self.penalties.on_trim(self.rounds.number(entropy))

    def on_expired(self, now_ns: int, entropy: int) -> None:
        self.penalties.on_timeout(self.rounds.number(entropy))


def create(parameters: BitmapParameters, seed: int, path: Path) -> LoadBalancer:
    return Mixed(parameters, seed)


register(
    LoadBalancerInfo(
        name="mixed",
        summary="packets take paths that came back without a mark, else those not congested lately",
        source="Ultra Ethernet's reference simulator uet-htsim",
        parameters=BitmapParameters,
        create=create,
        per_packet=True,
    )
)
