"""Numbers of a run's summary, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Quantity = Callable[[dict[str, Any]], float | None]


@dataclass(frozen=True)
class At:
    """The value under a key of a summary; a dot separates the key's parts. None where there is none."""

    key: str

    def __call__(self, summary: dict[str, Any]) -> float | None:
        value: Any = summary
        for part in self.key.split("."):
            value = None if value is None else value.get(part)
        return None if value is None else float(value)


@dataclass(frozen=True)
class OfFlows(At):
    """Count of queue pairs, as `At`; None for a run of collectives alone, which has no queue pairs."""

    def __call__(self, summary: dict[str, Any]) -> float | None:
        return super().__call__(summary) if summary["flows"] else None


@dataclass(frozen=True)
class AllDone(At):
    """Figure of a run in which all flows were done at its end, as `At`; None for others."""

    def __call__(self, summary: dict[str, Any]) -> float | None:
        """Return the value in this summary."""
        return super().__call__(summary) if summary["flows_delivered"] == summary["flows"] else None


def worst_queue(key: str) -> Quantity:
    """Return how to read this value of the queue that held most."""

    def find(summary: dict[str, Any]) -> float | None:
        worst = summary.get("queues", {}).get("worst", [])
        return None if not worst or worst[0][key] is None else float(worst[0][key])

    return find
