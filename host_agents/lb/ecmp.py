"""ECMP per flow: a QP keeps one entropy, so the switches' hash keeps it on one path."""

from __future__ import annotations

from dataclasses import dataclass

from host_agents.cc.base import Path
from host_agents.lb.base import ENTROPIES, FIRST_ENTROPY, LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class EcmpParameters:
    pass


class Ecmp(LoadBalancer):
    balances = False

    def __init__(self, seed: int) -> None:
        self.entropy = FIRST_ENTROPY + seed % ENTROPIES

    def next_entropy(self, now_ns: int) -> int:
        return self.entropy


def create(parameters: EcmpParameters, seed: int, path: Path) -> LoadBalancer:
    return Ecmp(seed)


register(LoadBalancerInfo("ecmp", "one path per QP, chosen by the switches' hash", "", EcmpParameters, create))
