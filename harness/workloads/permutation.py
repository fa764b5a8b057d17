"""Every host sends to one other and receives from one other."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.workloads.base import Flow, Setting, Size, Traffic, WorkloadParameters, register


@register("permutation")
class Permutation(WorkloadParameters):
    """`parallel` permutations at once, each drawn anew. All flows start at 0."""

    size_bytes: Size = 2_000_000
    parallel: Annotated[int, Field(ge=1)] = 1

    def generate(self, setting: Setting) -> Traffic:
        return Traffic(
            [
                Flow(source, destination, self.size_bytes, 0, group=f"permutation{i}" if self.parallel > 1 else "")
                for i in range(self.parallel)
                for source, destination in enumerate(_derangement(setting))
            ]
        )


def _derangement(setting: Setting) -> list[int]:
    """A random permutation without fixed points: drawn until it has none (1 in e is)."""
    order = list(range(setting.hosts))
    while True:
        setting.rng.shuffle(order)
        if all(i != there for i, there in enumerate(order)):
            return order
