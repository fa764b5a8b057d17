"""Bitmap of Ultra Ethernet's reference simulator: all entropies in turn, except those with a penalty.

Each mark, trimmed packet and time-out of an entropy adds to its penalty. When it is the turn of one
with a penalty, the penalty decreases by one, and the packet takes the next entropy without a
penalty. In the simulator a time-out adds to the penalty of entropy 0, whichever path lost the
packet (`as_simulated_timeout`); here it adds to that of the lost packet's entropy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.draws import Draws
from host_agents.lb.base import ENTROPY_COUNT, LoadBalancer
from host_agents.lb.oblivious import Rounds, check_power_of_two
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class BitmapParameters:
    # Number of entropies of a queue pair; a power of two.
    entropies: int = field(default=64, metadata=ENTROPY_COUNT)
    mark_penalty: int = 1  # penalty of a marked packet
    trim_penalty: int = 4  # penalty of a trimmed packet
    timeout_penalty: int = 15  # penalty for a packet that was not answered within a time-out
    most_penalty: int = 15  # penalties do not grow beyond this
    # A time-out adds to the penalty of entropy 0, whichever path lost the packet.
    as_simulated_timeout: bool = False

    def __post_init__(self) -> None:
        check_power_of_two("bitmap and mixed", self.entropies)


class Penalties:
    """Penalties of entropies by number, and the order of their turns."""

    def __init__(self, parameters: BitmapParameters, rounds: Rounds) -> None:
        self._mark = parameters.mark_penalty
        self._trim = parameters.trim_penalty
        self._timeout = parameters.timeout_penalty
        self._most = parameters.most_penalty
        self._timeout_is_first = parameters.as_simulated_timeout
        self._rounds = rounds
        self.penalties = [0] * rounds.entropies

    def next(self) -> int:
        """Return the next entropy without a penalty, or any if all have one."""
        number = self._rounds.next()
        if self.penalties[number] == 0:
            return number
        self.penalties[number] -= 1
        for _ in range(self._rounds.entropies):
            number = self._rounds.next()
            if self.penalties[number] == 0:
                break
        return number

    def on_mark(self, number: int) -> None:
        self._add(number, self._mark)

    def on_trim(self, number: int) -> None:
        self._add(number, self._trim)

    def on_timeout(self, number: int) -> None:
        self._add(0 if self._timeout_is_first else number, self._timeout)

    def _add(self, number: int, penalty: int) -> None:
        self.penalties[number] = min(self.penalties[number] + penalty, self._most)


class Bitmap(LoadBalancer):
    def __init__(self, parameters: BitmapParameters, seed: int) -> None:
        self.rounds = Rounds(parameters.entropies, Draws(seed))
        self.penalties = Penalties(parameters, self.rounds)

    def next_entropy(self, now_ns: int) -> int:
        return self.rounds.port(self.penalties.next())

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        if marked:
            self.penalties.on_mark(self.rounds.number(entropy))

    def on_nack(self, now_ns: int, entropy: int) -> None:
        self.penalties.on_trim(self.rounds.number(entropy))

    def on_expired(self, now_ns: int, entropy: int) -> None:
        self.penalties.on_timeout(self.rounds.number(entropy))


def create(parameters: BitmapParameters, seed: int, path: Path) -> LoadBalancer:
    return Bitmap(parameters, seed)


register(
    LoadBalancerInfo(
        name="bitmap",
        summary="all paths in turn, but for those that were congested lately",
        source="Ultra Ethernet's reference simulator uet-htsim",
        parameters=BitmapParameters,
        create=create,
        per_packet=True,
    )
)
