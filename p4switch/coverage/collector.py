"""Coverage of all switches that tests create while coverage is collected.

A switch may outlive the test that created it (in a fixture of a wider scope), and a test may create
thousands. A switch is therefore kept until nothing else refers to it; then only its counts are kept.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch.coverage.model import Coverage
from p4switch.engine.points import Points

if TYPE_CHECKING:
    from p4switch.engine import Switch

_SWEEP = 32
_NOBODY_ELSE = 2  # number of references if only the list and the caller refer to a switch


@dataclass
class _Watched:
    """Switches of one program. `counts` are the counts of deleted switches minus those already taken."""

    points: Points
    switches: list[Switch] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    sweep_at: int = _SWEEP

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.points.all)

    def watch(self, switch: Switch) -> None:
        self.switches.append(switch)
        if len(self.switches) >= self.sweep_at:
            kept = []
            while self.switches:
                one = self.switches.pop()
                if sys.getrefcount(one) > _NOBODY_ELSE:
                    kept.append(one)
                else:
                    self._count(one, 1)
            self.switches = kept
            self.sweep_at = 2 * len(kept) + _SWEEP

    def _count(self, switch: Switch, sign: int) -> None:
        self.counts = [have + sign * passed for have, passed in zip(self.counts, switch.passed(), strict=True)]

    def take(self, total: Coverage) -> None:
        for switch in self.switches:
            self._count(switch, 1)
        total.add(self.points, self.counts)
        self.counts = [0] * len(self.counts)
        for switch in self.switches:
            self._count(switch, -1)


_watched: dict[int, _Watched] | None = None


def start() -> None:
    """Start to record switches."""
    global _watched
    _watched = {}


def collecting() -> bool:
    """Return whether coverage is collected. If so, pipelines should be built for tracing."""
    return _watched is not None


def watch(points: Points, switch: Switch) -> None:
    """Record a switch with a traced pipeline if coverage is collected."""
    if _watched is not None:
        _watched.setdefault(id(points), _Watched(points)).watch(switch)


def take() -> Coverage:
    """Return the switches' counts since the previous call."""
    total = Coverage()
    for watched in (_watched or {}).values():
        watched.take(total)
    return total
