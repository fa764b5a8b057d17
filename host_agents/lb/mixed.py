"""Mixed, the default of Ultra Ethernet's reference simulator: recycled good entropies, else those of `bitmap`.

Each acknowledgement without a mark adds its entropy to an unlimited queue, and a packet takes the
oldest one. If there is none, it takes the next entropy without a penalty. Both parts get all
feedback.
"""

from __future__ import annotations

from host_agents.cc.base import Path
from host_agents.fifo import Fifo
from host_agents.lb.base import LoadBalancer
from host_agents.lb.bitmap import Bitmap, BitmapParameters
from host_agents.registry import LoadBalancerInfo, register


class Mixed(Bitmap):
    def __init__(self, parameters: BitmapParameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self.good: Fifo[int] = Fifo()

    def next_entropy(self, now_ns: int) -> int:
        number = self.good.pop() if self.good.size > 0 else self.penalties.next()
        return self.rounds.port(number)

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        super().on_ack(now_ns, entropy, marked)
        if not marked:
            self.good.push(self.rounds.number(entropy))


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
