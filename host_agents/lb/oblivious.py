"""Oblivious spraying of Ultra Ethernet's reference simulator: all entropies in turn, in a changing order.

Each round of N packets uses each of N entropies once: the i-th packet has entropy i xor x, where x
is drawn for each round. So the entropies of a queue pair are used evenly, and packets on the same
path are far apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.draws import Draws
from host_agents.errors import ParameterError
from host_agents.lb.base import ENTROPIES, ENTROPY_COUNT, FIRST_ENTROPY, LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class ObliviousParameters:
    # Number of entropies of a queue pair; a power of two.
    entropies: int = field(default=64, metadata=ENTROPY_COUNT)

    def __post_init__(self) -> None:
        check_power_of_two("oblivious", self.entropies)


def check_power_of_two(owner: str, entropies: int) -> None:
    """Raise ParameterError unless the number is a power of two, since `i xor x` could leave the range."""
    if entropies & (entropies - 1) != 0:
        raise ParameterError(f"{owner}: parameter entropies: should be a power of two (got {entropies})")


class Rounds:
    """Endless sequence of entropy numbers. Each round of N has every number from 0 to N - 1 once."""

    def __init__(self, entropies: int, draws: Draws) -> None:
        self.entropies = entropies
        self._draws = draws
        # The bits of a port beyond those of a number are drawn for each queue pair, so that queue
        # pairs take different paths.
        self._first = FIRST_ENTROPY + int(draws.random() * float(ENTROPIES // entropies)) * entropies
        self._place = entropies
        self._order = 0

    def next(self) -> int:
        """Return the number of the next entropy."""
        if self._place == self.entropies:
            self._place = 0
            self._order = self.any()
        number = self._place ^ self._order
        self._place += 1
        return number

    def any(self) -> int:
        """Return any number, at random."""
        return int(self._draws.random() * float(self.entropies))

    def port(self, number: int) -> int:
        """Return the UDP source port of a number."""
        return self._first + number

    def number(self, port: int) -> int:
        """Return the number of a port from an answer."""
        return (port - self._first) & (self.entropies - 1)


class Oblivious(LoadBalancer):
    def __init__(self, entropies: int, seed: int) -> None:
        self.rounds = Rounds(entropies, Draws(seed))

    def next_entropy(self, now_ns: int) -> int:
        return self.rounds.port(self.rounds.next())


def create(parameters: ObliviousParameters, seed: int, path: Path) -> LoadBalancer:
    return Oblivious(parameters.entropies, seed)


register(
    LoadBalancerInfo(
        name="oblivious",
        summary="all paths in turn, in an order that changes, regardless of feedback",
        source="Ultra Ethernet's reference simulator uet-htsim",
        parameters=ObliviousParameters,
        create=create,
        per_packet=True,
    )
)
