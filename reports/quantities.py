"""Numbers of a run's summary, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Quantity = Callable[[dict[str, Any]], float | None]


@dataclass(frozen=True)
class At:
    """Value under a key of a summary, whose parts are separated by dots; None if it is absent."""

    key: str

    def __call__(self, summary: dict[str, Any]) -> float | None:
        value: Any = summary
        for part in self.key.split("."):
            value = None if value is None else value.get(part)
        return None if value is None else float(value)


@dataclass(frozen=True)
class OfFlows(At):
    """Count of queue pairs, like `At`; None for a run with collectives alone."""

    def __call__(self, summary: dict[str, Any]) -> float | None:
        return super().__call__(summary) if summary["flows"] else None


@dataclass(frozen=True)
class AllDone(At):
    """Figure of a run in which all flows were done at its end, like `At`; None for others."""

    def __call__(self, summary: dict[str, Any]) -> float | None:
        """Return the value in this summary."""
        return super().__call__(summary) if summary["flows_delivered"] == summary["flows"] else None


def worst_queue(key: str) -> Quantity:
    """Return a function that reads this value for the longest queue."""

    def find(summary: dict[str, Any]) -> float | None:
        worst = summary.get("queues", {}).get("worst", [])
        return None if not worst or worst[0][key] is None else float(worst[0][key])

    return find
