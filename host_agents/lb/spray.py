"""Oblivious packet spraying: every packet takes a random entropy, independent of feedback."""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.draws import Draws
from host_agents.lb.base import ENTROPIES, ENTROPY_COUNT, FIRST_ENTROPY, LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class SprayParameters:
    entropies: int = field(default=ENTROPIES, metadata=ENTROPY_COUNT)  # number of entropies of a queue pair


class Spray(LoadBalancer):
    def __init__(self, entropies: int, seed: int) -> None:
        self.entropies = entropies
        self._draws = Draws(seed)

    def next_entropy(self, now_ns: int) -> int:
        return FIRST_ENTROPY + int(self._draws.random() * float(self.entropies))


def create(parameters: SprayParameters, seed: int, path: Path) -> LoadBalancer:
    return Spray(parameters.entropies, seed)


register(
    LoadBalancerInfo(
        name="spray",
        summary="every packet on a path at random",
        source="",
        parameters=SprayParameters,
        create=create,
        per_packet=True,
    )
)
