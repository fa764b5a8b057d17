"""Claims of the papers, by the id that a scenario's `claims` use: each `papers/*/paper.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from harness.papers import folders
from harness.plan.scenario import read


class Number(NamedTuple):
    """Range of a paper's figure, in the unit of the summary's key; None: unbounded on that side."""

    least: float | None
    most: float | None

    def joined(self, other: Number) -> Number:
        """Return the range from the smaller minimum to the larger maximum of two ranges."""
        least = None if self.least is None or other.least is None else min(self.least, other.least)
        most = None if self.most is None or other.most is None else max(self.most, other.most)
        return Number(least, most)

    def written(self, scale: float = 1) -> str:
        """Return the range as text, multiplied by `scale`."""
        least, most = (None if bound is None else f"{bound * scale:,g}" for bound in self)
        if least is None or most is None:
            return f"over {least}" if most is None else f"under {most}"
        return least if least == most else f"{least} to {most}"


Numbers = Mapping[str, Mapping[str, Number]]
"""By the name that a variant has in the report, and the key of the summary."""


class Claim(NamedTuple):
    source: str  # paper and figure
    text: str
    paper: Numbers


@cache
def claims() -> dict[str, Claim]:
    """Return all claims of all papers."""
    of_papers = (read(folder / "paper.toml")["claims"] for folder in folders().values())
    return {name: _claim(**entry) for entries in of_papers for name, entry in entries.items()}


def _claim(source: str, text: str, paper: Mapping[str, Mapping[str, Any]] | None = None) -> Claim:
    numbers = {
        variant: {key: number(value) for key, value in of_variant.items()}
        for variant, of_variant in (paper or {}).items()
    }
    return Claim(source, text, numbers)


def number(value: Any) -> Number:
    """Return the range of a number, a list of minimum and maximum, or a table with one of these."""
    if isinstance(value, list):
        return Number(*value)
    return Number(**{"least": None, "most": None, **value}) if isinstance(value, dict) else Number(value, value)


def papers_numbers(names: Iterable[str]) -> Numbers:
    """Return the papers' numbers for those of the named claims that are known."""
    by_variant: dict[str, dict[str, Number]] = {}
    for name in names:
        for variant, numbers in claims()[name].paper.items() if name in claims() else ():
            own = by_variant.setdefault(variant, {})
            for key, number in numbers.items():
                own[key] = number.joined(own[key]) if key in own else number
    return by_variant
