"""Coverage of switches that tests make wherever they like: who collects starts it, and takes what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.coverage.model import Coverage
from p4switch.engine.points import Points

if TYPE_CHECKING:
    from p4switch.engine import Switch

_watched: list[tuple[Points, Switch]] | None = None


def start() -> None:
    """From now on switches are remembered, until `take`."""
    global _watched
    _watched = []


def collecting() -> bool:
    """Whether somebody wants to know: then pipelines are worth building for tracing."""
    return _watched is not None


def watch(points: Points, switch: Switch) -> None:
    """Remembers a switch whose pipeline counts, if somebody collects."""
    if _watched is not None:
        _watched.append((points, switch))


def take() -> Coverage:
    """What the switches since the last call have counted; they are forgotten."""
    total = Coverage()
    for points, switch in _watched or ():
        total.add(points, switch.passed())
    if _watched:
        _watched.clear()
    return total
