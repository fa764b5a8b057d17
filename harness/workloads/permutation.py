"""Permutation: every host sends to one other host and receives from one other host."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final, Literal

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Traffic, WorkloadParameters, expect_flows, register
from p4switch.errors import UserError

_PREFIX_BITS: Final = {"hosts": 32, "racks": 24, "pods": 16}


@register("permutation")
class Permutation(WorkloadParameters):
    """Permutations that are drawn independently, `parallel` of them at once.

    All flows start at 0. `across` is the least distance of a flow; addresses are 10.pod.rack.host.
    The first flow has `first_size_bytes`, if that is given.
    """

    size_bytes: Size = 2_000_000  # size of each flow
    first_size_bytes: Size | None = None  # size of the first flow; none: like the others
    parallel: Annotated[int, Field(ge=1)] = 1  # number of permutations at the same time
    across: Literal["hosts", "racks", "pods"] = "hosts"  # a flow leads at least to another host, rack or pod

    def generate(self, setting: Setting) -> Traffic:
        expect_flows("parallel", self.parallel * setting.hosts)
        flows = [
            Flow(source, destination, self.size_bytes, 0, group=f"permutation{i}" if self.parallel > 1 else "")
            for i in range(self.parallel)
            for source, destination in enumerate(self._draw(setting))
        ]
        if self.first_size_bytes is not None:
            flows[0].size_bytes = self.first_size_bytes
        return Traffic(flows)

    def _draw(self, setting: Setting) -> list[int]:
        """Return a random permutation in which every destination is far enough.

        Hosts with a destination that is too close exchange it with random hosts until there are
        none.
        """
        bits = _PREFIX_BITS[self.across]
        places = [int(host.address) >> (32 - bits) for host in setting.topology.hosts]
        most = max(Counter(places).values())
        if 2 * most > len(places):
            raise UserError(
                f"workload.across: {most} of {len(places)} hosts share one of the {self.across}: not all can leave"
            )
        order = list(range(len(places)))
        setting.rng.shuffle(order)
        while near := [i for i, there in enumerate(order) if places[i] == places[there]]:
            for i in near:
                other = setting.rng.randrange(len(order))
                order[i], order[other] = order[other], order[i]
        return order
