"""Coverage of switches that tests make wherever they like: who collects starts it, and takes what there is.

A switch may outlive the test that made it (a fixture of a wider scope), so all are kept until the collection ends, with
what they had counted when they were last asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.coverage.model import Coverage
from p4switch.engine.points import Points

if TYPE_CHECKING:
    from p4switch.engine import Switch


class _Watched:
    def __init__(self, points: Points, switch: Switch) -> None:
        self._points = points
        self._switch = switch
        self._before = [0] * len(points.all)

    def add_to(self, total: Coverage) -> None:
        now = list(self._switch.passed())
        total.add(self._points, [count - before for count, before in zip(now, self._before, strict=True)])
        self._before = now


_watched: list[_Watched] | None = None


def start() -> None:
    """From now on switches are remembered."""
    global _watched
    _watched = []


def collecting() -> bool:
    """Whether somebody wants to know: then pipelines are worth building for tracing."""
    return _watched is not None


def watch(points: Points, switch: Switch) -> None:
    """Remembers a switch whose pipeline counts, if somebody collects."""
    if _watched is not None:
        _watched.append(_Watched(points, switch))


def take() -> Coverage:
    """What the switches have counted since the last call."""
    total = Coverage()
    for watched in _watched or ():
        watched.add_to(total)
    return total
