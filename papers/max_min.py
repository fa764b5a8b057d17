"""The max-min fair allocation, computed offline as the reference for protocols."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Link = TypeVar("Link", bound=Hashable)

_EQUAL = 1e-9  # shares with a smaller relative difference count as equal


def max_min(
    capacity: Mapping[Link, float], paths: Sequence[Sequence[Link]], weights: Sequence[float] | None = None
) -> list[float]:
    """Return the max-min rate of each flow, in the unit of `capacity`; `paths` has the links of each flow.

    The algorithm is water-filling. The link with the smallest share for a unit of weight fixes the
    rates of its flows, and the other links divide their remaining capacity. In the result no rate,
    divided by its weight, can grow unless one that is not larger falls. Each flow has weight 1
    unless `weights` are given.
    """
    return water_filling(capacity, paths, weights)[0]


def water_filling(
    capacity: Mapping[Link, float], paths: Sequence[Sequence[Link]], weights: Sequence[float] | None = None
) -> tuple[list[float], int]:
    """Return the rates, and the number of iterations of a parallel water-filling.

    An iteration fixes every link whose share is the smallest among all links of its undecided
    flows. In Jose et al., SIGMETRICS 2019, the number of iterations bounds the convergence time of
    s-PERC.
    """
    weight = list(weights) if weights is not None else [1.0] * len(paths)
    left = dict(capacity)
    rates: dict[int, float] = {}
    undecided: dict[Link, set[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            undecided.setdefault(link, set()).add(flow)
    iterations = 0
    while undecided:
        share = {link: left[link] / sum(weight[flow] for flow in flows) for link, flows in undecided.items()}
        level: dict[int, float] = {}
        for link, flows in undecided.items():
            beside = min(share[other] for flow in flows for other in paths[flow])
            if share[link] <= beside * (1 + _EQUAL):
                level.update(dict.fromkeys(flows, share[link]))
        for flow, each in level.items():
            rates[flow] = each * weight[flow]
            for link in set(paths[flow]):
                left[link] -= rates[flow]
                undecided[link].discard(flow)
                if not undecided[link]:
                    del undecided[link]
        iterations += 1
    return [rates[flow] for flow in range(len(paths))], iterations
