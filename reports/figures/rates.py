"""Throughput over time, and the limits of reaction points."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes

from harness.measure.results import Result
from host_agents.cc.base import UNLIMITED
from reports.figures.base import FigurePerVariant, register, which_seed
from reports.groups import Comparison, Variant
from reports.plots import colour, part_colours, plain, thinned

_BAND = (0.1, 0.9)  # percentiles of many flows that are drawn instead of lines
_MOST_LINES = 7  # largest number of flows with a line each
_EXTREMES = {"slowest": ":", "fastest": "--"}


class OfFlows(FigurePerVariant):
    """Column of `rates` for each queue pair.

    A few queue pairs have a line each; for many, percentiles and the extremes are drawn.
    """

    needs = ("flows", "rates")
    column: ClassVar[str]
    what: ClassVar[str]
    unit: ClassVar[str]
    scale: ClassVar[float]

    def fits(self, comparison: Comparison) -> bool:
        return any(map(self.has, comparison.variants))

    def has(self, variant: Variant) -> bool:
        return _known(variant.results[0], self.column).nunique() > 1

    def caption(self, comparison: Comparison) -> str:
        many = any(len(_names(variant.results[0])) > _MOST_LINES for variant in comparison.variants)
        how = f": median, {_BAND[0]:.0%} to {_BAND[1]:.0%} of the flows, slowest and fastest flow" if many else ""
        return f"{self.what} of each flow{how}{which_seed(comparison)}"

    def draw_one(self, axes: Axes, variant: Variant) -> None:
        """Draw each queue pair of the first seed, in bytes on the wire."""
        result = variant.results[0]
        names = _names(result)
        lines: dict[Any, pd.DataFrame] = {
            qp: rows.reset_index(drop=True)
            for qp, rows in result.rates.assign(value=_known(result, self.column) * self.scale).groupby("qp")
        }
        if len(names) <= _MOST_LINES:
            for (qp, name), look in zip(names.items(), part_colours(len(names)), strict=True):
                if qp in lines:
                    _line(axes, lines[qp], name, look)
        else:
            shade = colour(variant.number)
            _band(axes, lines, shade)
            for (which, dash), qp in zip(_EXTREMES.items(), _extremes(result), strict=False):
                _line(axes, lines[qp], f"{which}: {names.get(qp, qp)}", shade, dash)
        if axes.lines:
            axes.legend(fontsize="small")
        axes.set(xlabel="time (µs)", ylabel=f"{self.what.lower()} ({self.unit})")


def _known(result: Result, column: str) -> pd.Series[float]:
    """Return the values of a column, with NaN where there is no limit."""
    values: pd.Series[float] = result.rates[column]
    return values.where(values.abs() < UNLIMITED)


def _names(result: Result) -> dict[Any, str]:
    """Return a name for each queue pair, in order of starts: its flow's group, or its ends."""
    first = result.messages.sort_values("start_ns", kind="stable").groupby("qp", sort=False).first()
    if first["group"].nunique() == len(first) and len(first) > 1:
        return {qp: str(name) for qp, name in first["group"].items()}
    ends = first["source"].astype(str) + " to " + first["destination"].astype(str)
    return dict(ends.items())


def _line(axes: Axes, rows: pd.DataFrame, name: str, shade: str, dash: str = "-") -> None:
    times, values = thinned(rows["time_ns"], rows["value"])
    axes.plot(times / 1e3, values, dash, color=shade, lw=0.9, label=plain(name))


def _band(axes: Axes, lines: dict[Any, pd.DataFrame], shade: str) -> None:
    together = pd.concat(lines.values()).groupby("time_ns")["value"]
    low, high, median = (together.quantile(level) for level in (*_BAND, 0.5))
    times = median.index.to_numpy(float) / 1e3
    axes.fill_between(times, low, high, color=shade, alpha=0.25, lw=0)
    axes.plot(times, median, color=shade, label=f"median of {len(lines)}")


def _extremes(result: Result) -> list[Any]:
    """Return the queue pairs with the lowest and the highest mean throughput while active."""
    rates = result.rates
    means = rates[rates["throughput_bps"] > 0].groupby("qp")["throughput_bps"].mean()
    return [means.idxmin(), means.idxmax()] if len(means) > 1 else []


@register("rates")
class Throughput(OfFlows):
    order = 70
    column, what, unit, scale = "throughput_bps", "Throughput", "Gb/s", 1e-9


@register("rate-limits")
class RateLimits(OfFlows):
    order = 71
    column, what, unit, scale = "rate_limit_bps", "Rate limit", "Gb/s", 1e-9


@register("windows")
class Windows(OfFlows):
    order = 72
    column, what, unit, scale = "window_bytes", "Window", "KB", 1e-3
