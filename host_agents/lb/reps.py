"""REPS, recycled entropy packet spraying (Bonato et al., "SMaRTT-REPS", algorithm 4).

The first BDP of packets tries the entropies in turn. After that, packets take the entropy of the latest ACK without a
mark; a marked ACK moves on to the next entropy. The switches need ECMP only.

Beyond the listing: while no ACK is back, packets go on trying in turn (the listing would send all of them with entropy
0), a trimmed packet counts as marked, and so does a time-out, or what is sent again would keep to a path that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.lb.base import ENTROPIES, ENTROPY_COUNT, FIRST_ENTROPY, LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class RepsParameters:
    entropies: int = field(default=256, metadata=ENTROPY_COUNT)  # how many there are to choose from
    explore_bdp: float = 1.0  # as long as less than this was sent, entropies are tried in turn


class Reps(LoadBalancer):
    def __init__(self, parameters: RepsParameters, seed: int, path: Path) -> None:
        self.entropies = parameters.entropies
        self.first = seed % ENTROPIES  # entropy 0: other queue pairs begin elsewhere
        bdp_packets = int(parameters.explore_bdp * path.bdp_bytes / float(path.wire_bytes))
        self.exploring = min(bdp_packets, parameters.entropies)  # packets yet to be sent with entropies in turn
        self.next = 0
        self.cached = -1  # none yet

    def next_entropy(self, now_ns: int) -> int:
        if self.exploring > 0 or self.cached < 0:
            self.exploring -= 1
            return self._port(self._advance())
        return self._port(self.cached)

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        if marked:
            self.cached = self._advance()
        else:
            self.cached = (entropy - FIRST_ENTROPY - self.first) % ENTROPIES

    def on_nack(self, now_ns: int, entropy: int) -> None:
        self.cached = self._advance()

    def on_timeout(self, now_ns: int) -> None:
        self.cached = self._advance()

    def _advance(self) -> int:
        entropy = self.next
        self.next = (entropy + 1) % self.entropies
        return entropy

    def _port(self, entropy: int) -> int:
        """The UDP source port of an entropy."""
        return FIRST_ENTROPY + (self.first + entropy) % ENTROPIES


def create(parameters: RepsParameters, seed: int, path: Path) -> LoadBalancer:
    return Reps(parameters, seed, path)


register(
    LoadBalancerInfo(
        name="reps",
        summary="packets take again the paths that came back without a mark",
        source="Bonato et al., SMaRTT-REPS, section 3.6",
        parameters=RepsParameters,
        create=create,
        per_packet=True,
    )
)
