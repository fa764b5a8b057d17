"""REPS, recycled entropy packet spraying (Bonato et al., "SMaRTT-REPS", algorithm 4).

The first BDP of packets tries the entropies in turn. After that a packet takes the entropy of the
latest ACK without a mark. After a marked ACK it takes the next entropy in turn. The switches need
ECMP only.

The listing uses a cached entropy until the next ACK, so that all packets in between take the same
path; at the start of a message or after a gap in the ACKs this may be a whole window. According to
the text, packets on healthy paths replenish the cache (4.1), and the load is never shifted in
substantial portions (section 1). In later publications on REPS an ACK's entropy is used once. p4cc
does the same, and packets without a cached entropy take the entropies in turn.

After a time-out a path may have failed, and taking entropies in turn would use it repeatedly. So a
queue pair that had a time-out follows the listing, as REPS "freezes" then. `use_once = false`
follows the listing from the start.

p4cc deviates in three more points. Before the first ACK packets take entropies in turn, while the
listing would send all with entropy 0. They do so from a time-out to the next ACK, too. A trimmed
packet counts as marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from host_agents.cc.base import Path
from host_agents.lb.base import ENTROPIES, ENTROPY_COUNT, FIRST_ENTROPY, LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class RepsParameters:
    entropies: int = field(default=256, metadata=ENTROPY_COUNT)  # number of entropies to choose from
    explore_bdp: float = 1.0  # bytes in BDPs that are first sent with entropies in turn
    use_once: bool = True  # an ACK's entropy is used for one packet; off: for all until the next ACK


class Reps(LoadBalancer):
    def __init__(self, parameters: RepsParameters, seed: int, path: Path) -> None:
        self.entropies = parameters.entropies
        self.first = seed % ENTROPIES  # entropy 0; it differs among queue pairs
        bdp_packets = int(parameters.explore_bdp * path.bdp_bytes / float(path.wire_bytes))
        self.exploring = min(bdp_packets, parameters.entropies)  # packets yet to be sent with entropies in turn
        self.use_once = parameters.use_once
        self.next = 0
        self.cached = -1  # no cached entropy
        self.next_control = 0

    def next_entropy(self, now_ns: int) -> int:
        if self.exploring > 0 or self.cached < 0:
            self.exploring -= 1
            return self._port(self._advance())
        entropy = self.cached
        if self.use_once:
            self.cached = -1
        return self._port(entropy)

    def control_entropy(self, now_ns: int) -> int:
        """Return control entropies in turn.

        Control packets are not acknowledged, so they neither explore nor confirm a path.
        """
        entropy = self.next_control
        self.next_control = (entropy + 1) % self.entropies
        return self._port(entropy)

    def on_ack(self, now_ns: int, entropy: int, marked: bool) -> None:
        if marked:
            self.cached = self._advance()
        else:
            self.cached = (entropy - FIRST_ENTROPY - self.first) % ENTROPIES

    def on_nack(self, now_ns: int, entropy: int) -> None:
        self.cached = self._advance()

    def on_timeout(self, now_ns: int) -> None:
        self.cached = -1
        self.use_once = False

    def _advance(self) -> int:
        entropy = self.next
        self.next = (entropy + 1) % self.entropies
        return entropy

    def _port(self, entropy: int) -> int:
        """Return the UDP source port of an entropy."""
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
