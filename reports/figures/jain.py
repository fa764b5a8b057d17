"""Fairness over time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from reports.figures.base import Figure, register
from reports.groups import CONFIDENCE, Comparison, Variant, estimate
from reports.plots import colour, line, plain

_MOST_BANDS = 4  # variants; with more, bands would hide lines


@register("jain")
class Fairness(Figure):
    needs = ("flows", "rates")
    order = 40

    def fits(self, comparison: Comparison) -> bool:
        return all(len(r.jain) for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        seeds = len(comparison.variants[0].results)
        mean = f", mean of {seeds} seeds" if seeds > 1 else ""
        shown = mean and len(comparison.variants) <= _MOST_BANDS
        band = f" and {CONFIDENCE:.0%} confidence interval" if shown else ""
        return f"Fairness of throughput over time{mean}{band}"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw the mean over seeds, and its confidence interval if there are several seeds and few variants."""
        for variant in variants:
            table = pd.concat([r.jain for r in variant.results])
            estimates = {
                time: estimate(values.tolist())
                for time, values in table.groupby("time_ns")["jain"]
                if len(values) == len(variant.results)
            }
            times = pd.Series(list(estimates), dtype=float) / 1e3
            mean = pd.Series([e.mean for e in estimates.values()], dtype=float)
            axes.plot(times, mean, **line(variant.number), label=plain(variant.name))
            if len(variant.results) > 1 and len(variants) <= _MOST_BANDS:
                half = pd.Series([e.half_width or 0.0 for e in estimates.values()])
                axes.fill_between(
                    times,
                    (mean - half).clip(0),
                    (mean + half).clip(upper=1),
                    color=colour(variant.number),
                    alpha=0.2,
                    lw=0,
                )
        axes.set(xlabel="time (µs)", ylabel="Jain index of active flows", ylim=(0, 1.03))
