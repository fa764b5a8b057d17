"""Runs by scenario and variant, and means over seeds with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from harness.measure.results import Result
from harness.measure.summary import WORKLOAD

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Variant:
    """Runs of one scenario that differ by their seeds only.

    `number` is its place on the page, from 0.
    """

    name: str
    results: tuple[Result, ...]
    number: int = 0


@dataclass(frozen=True)
class Comparison:
    """The variants of one scenario."""

    scenario: str
    title: str
    variants: tuple[Variant, ...]

    @property
    def results(self) -> list[Result]:
        return [result for variant in self.variants for result in variant.results]

    @cached_property
    def claims(self) -> list[str]:
        """Claims of papers that the scenario belongs to."""
        return list(dict.fromkeys(claim for result in self.results for claim in result.claims))

    @cached_property
    def flows(self) -> pd.DataFrame:
        """Flows of all runs."""
        return pd.concat([result.flows for result in self.results])

    @property
    def any_delivered(self) -> bool:
        return bool(self.flows["fct_ns"].notna().any())


@dataclass(frozen=True)
class Part:
    """Flows of a variant over all seeds, or those of one of its groups of traffic.

    `group` is the number of the group.
    """

    name: str
    flows: pd.DataFrame
    variant: Variant
    group: int = 0


def parts(variants: Sequence[Variant]) -> list[Part]:
    """Return the flows of each variant; a variant with groups has a part for each group."""
    split = []
    for variant in variants:
        flows = pd.concat([result.flows for result in variant.results])
        names = list(dict.fromkeys(name for result in variant.results for name in result.summary.get("groups", ())))
        whose = flows["group"].where(flows["group"].isin(names), WORKLOAD) if names else None
        for group, name in enumerate(names):
            label = name if len(variants) == 1 else f"{variant.name}: {name}"
            split.append(Part(label, flows[whose == name], variant, group))
        if not names:
            split.append(Part(variant.name, flows, variant))
    return split


def by_size(flows: pd.DataFrame, most: int) -> Any:
    """Return flows by size: each size separately, or at most `most` bins with similar numbers of flows."""
    sizes = flows["size_bytes"]
    return flows.groupby(sizes if sizes.nunique() <= most else pd.qcut(sizes, most, duplicates="drop"), observed=True)


def compare(results: Sequence[Result]) -> list[Comparison]:
    """Return runs grouped by scenario and variant, in their order of appearance."""
    scenarios: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        variants = scenarios.setdefault(result.summary["scenario"], {})
        variants.setdefault(result.summary["variant"], []).append(result)
    return [
        Comparison(
            name,
            next(iter(variants.values()))[0].summary["title"],
            tuple(Variant(variant, tuple(runs), i) for i, (variant, runs) in enumerate(variants.items())),
        )
        for name, variants in scenarios.items()
    ]


@dataclass(frozen=True)
class Estimate:
    """Mean over seeds.

    `half_width` is that of its confidence interval (Student's t), or None for fewer than two seeds.
    `partly` is the number of seeds with a value and the number of all seeds, if some have no value.
    Such a mean does not represent all seeds, because those without a value may be the worst.
    """

    mean: float
    half_width: float | None
    partly: tuple[int, int] | None = None

    def is_apart_from(self, other: Estimate) -> bool:
        """Return whether the two intervals are disjoint."""
        return abs(self.mean - other.mean) > (self.half_width or 0.0) + (other.half_width or 0.0)


def estimate(values: Sequence[float], missing: int = 0) -> Estimate:
    """Return the mean of these values; `missing` further seeds have no value."""
    mean = float(np.mean(values))
    partly = (len(values), len(values) + missing) if missing else None
    if len(values) < 2:
        return Estimate(mean, None, partly)
    from scipy.special import stdtrit  # loading it takes long, and most reports have one seed

    degrees = len(values) - 1
    standard_error = np.std(values, ddof=1) / np.sqrt(len(values))
    return Estimate(mean, float(stdtrit(degrees, (1 + CONFIDENCE) / 2) * standard_error), partly)


def over_seeds(variant: Variant, figure: Callable[[dict[str, Any]], float | None]) -> Estimate | None:
    """Return the mean of a figure over the seeds that have it."""
    values = [value for value in (figure(result.summary) for result in variant.results) if value is not None]
    return estimate(values, len(variant.results) - len(values)) if values else None
