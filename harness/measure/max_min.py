"""The max-min fair allocation, computed offline: what protocols that aim at it are judged by."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Link = TypeVar("Link", bound=Hashable)


def max_min(capacity: Mapping[Link, float], paths: Sequence[Sequence[Link]]) -> list[float]:
    """The rate of each flow, in the unit of `capacity`; `paths` has the links that each flow takes.

    Water-filling: the link with the smallest equal share decides the rates of its flows, the others divide what is
    left. No rate can then grow but at the cost of one that is not larger.
    """
    left = dict(capacity)
    rates: dict[int, float] = {}
    undecided: dict[Link, set[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            undecided.setdefault(link, set()).add(flow)
    while undecided:
        bottleneck = min(undecided, key=lambda link: left[link] / len(undecided[link]))
        share = left[bottleneck] / len(undecided[bottleneck])
        for flow in list(undecided[bottleneck]):
            rates[flow] = share
            for link in set(paths[flow]):
                left[link] -= share
                undecided[link].discard(flow)
                if not undecided[link]:
                    del undecided[link]
    return [rates[flow] for flow in range(len(paths))]
