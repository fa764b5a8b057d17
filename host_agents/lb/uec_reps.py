"""REPS of Ultra Ethernet's reference simulator: a ring of good entropies that freezes on failure.

Each acknowledgement without a mark writes its entropy as a fresh one into a ring, in place of the
oldest. A packet takes the oldest fresh entropy, which is stale afterwards. If there is none, it
takes a random one. After a time-out a path may have failed. Then packets take the entropies of the
ring in turn for a while, fresh or stale, and good ones are still added. Afterwards the ring is
emptied, and some packets explore with random entropies.

`reps` is the REPS of the paper on SMaRTT. The simulator's older form (`legacy`) has an unlimited
queue instead of the ring, and its first packets take the entropies 1, 2, 3 and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.draws import Draws
from host_agents.fifo import Fifo
from host_agents.lb.base import ENTROPY_COUNT, LoadBalancer
from host_agents.lb.oblivious import Rounds, check_power_of_two
from host_agents.ranges import POSITIVE
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class UecRepsParameters:
    # Number of entropies of a queue pair; a power of two.
    entropies: int = field(default=64, metadata=ENTROPY_COUNT)
    ring_entropies: int = field(default=8, metadata=POSITIVE)  # number of entropies in the ring
    freeze_ns: int = 10_000_000  # time for which the ring is used in turn after a time-out
    explore_packets: int = 16  # number of packets that take random entropies after that
    legacy: bool = False  # the simulator's older form
    legacy_first_bdp: float = 1.5  # data that is first sent with entropies in turn, in the older form


class UecReps(LoadBalancer):
    def __init__(self, parameters: UecRepsParameters, seed: int) -> None:
        p = parameters
        self.rounds = Rounds(p.entropies, Draws(seed))
        self._freeze_ns = p.freeze_ns
        self._explore_packets = p.explore_packets
        self._ring = [0] * p.ring_entropies
        self._head = 0  # slot for the next good entropy
        self._filled = 0  # number of slots that have been written
        self._fresh = 0  # number of slots that were written last and whose entropies are unused
        self._turn = 0  # next slot while frozen
        self._exploring = 0  # remaining packets that explore
        self.frozen_until_ns = -1  # -1: it is not frozen

    def next_entropy(self, now_ns: int) -> int:
        return self.rounds.port(self._next(now_ns))

    def _next(self, now_ns: int) -> int:
        size = len(self._ring)
        if self.frozen_until_ns >= 0:
            if now_ns < self.frozen_until_ns:
                if self._filled == 0:
                    return self.rounds.any()
                self._turn = (self._turn + 1) % self._filled
                return self._ring[self._turn]
            self.frozen_until_ns = -1
            self._head = 0
            self._filled = 0
            self._fresh = 0
            self._exploring = self._explore_packets
        if self._exploring > 0:
            self._exploring -= 1
            return self.rounds.any()
        if self._fresh == 0:
            return self.rounds.any()
        oldest = (self._head - self._fresh) % size
        self._fresh -= 1
        return self._ring[oldest]

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        if marked:
            return
        size = len(self._ring)
        self._ring[self._head] = self.rounds.number(entropy)
        self._head = (self._head + 1) % size
        self._filled = max(self._filled, self._head if self._head > 0 else size)
        self._fresh = min(self._fresh + 1, size)

    def on_timeout(self, now_ns: int) -> None:
        if self._exploring == 0:
            self.frozen_until_ns = now_ns + self._freeze_ns


class LegacyReps(LoadBalancer):
    def __init__(self, parameters: UecRepsParameters, seed: int, path: Path) -> None:
        self.rounds = Rounds(parameters.entropies, Draws(seed))
        first = int(parameters.legacy_first_bdp * path.bdp_bytes / float(path.wire_bytes))
        self._first = min(first, parameters.entropies)
        self._sent = 0  # the number of explored packets so far
        self.good: Fifo[int] = Fifo()

    def next_entropy(self, now_ns: int) -> int:
        if self._sent < self._first:
            self._sent += 1
            return self.rounds.port(self._sent & (self.rounds.entropies - 1))
        return self.rounds.port(self.good.pop() if self.good.size > 0 else self.rounds.any())

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        if not marked:
            self.good.push(self.rounds.number(entropy))


def create(parameters: UecRepsParameters, seed: int, path: Path) -> LoadBalancer:
    check_power_of_two("uec-reps", parameters.entropies)
    if parameters.legacy:
        return LegacyReps(parameters, seed, path)
    return UecReps(parameters, seed)


register(
    LoadBalancerInfo(
        name="uec-reps",
        summary="packets take paths that came back without a mark, of a ring; after a time-out only those",
        source="Ultra Ethernet's reference simulator uet-htsim",
        parameters=UecRepsParameters,
        create=create,
        per_packet=True,
    )
)
