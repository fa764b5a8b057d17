"""Heat maps of links over time: utilisation, marks, queues, and pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, SymLogNorm
from numpy.typing import NDArray

from harness.measure.results import Result
from reports.figures.base import Figure, register, which_seed
from reports.groups import Comparison, Variant
from reports.plots import plain, styled

_MOST_LINKS = 20  # links that are shown
_MOST_VARIANTS = 6


@dataclass(frozen=True)
class _Panel:
    title: str
    of: Callable[[pd.DataFrame], pd.Series[float]]
    most: float | None = None  # end of the scale; None: the largest value of all variants

    def scale(self, tables: Sequence[pd.DataFrame]) -> tuple[Normalize, Sequence[float] | None]:
        """Return a scale for all variants, and its ticks, or None for matplotlib's.

        Without a fixed end it is logarithmic, because one variant's queues may be a hundred times
        those of another, and both should be visible. It then has few ticks, so that they fit in a
        column of a paper.
        """
        if self.most is not None:
            return Normalize(0, self.most), None
        most = max(float(self.of(table).max()) for table in tables)
        return SymLogNorm(linthresh=1, vmin=0, vmax=most), (0, 1, 10 ** np.floor(np.log10(most)))


_PANELS = (
    _Panel("utilisation (%)", lambda t: (t["busy_ns"] / t["interval_ns"] * 100).clip(upper=100), 100),
    _Panel("queue (KB)", lambda t: t["depth_bytes"] / 1e3),
    _Panel("ECN marks (packets)", lambda t: t["marked"].astype(float)),
    _Panel("paused (%)", lambda t: (t["paused_ns"] / t["interval_ns"] * 100).clip(upper=100), 100),
    _Panel("drops (packets)", lambda t: t["dropped"].astype(float)),
)


@register("links")
class Links(Figure):
    """Links over time, the most congested first: a row for each variant, a column for each quantity."""

    needs = ("links",)
    order = 62

    def fits(self, comparison: Comparison) -> bool:
        return all(len(variant.results[0].table("links")) for variant in comparison.variants)

    def wide(self, comparison: Comparison) -> bool:
        return True

    def caption(self, comparison: Comparison) -> str:
        links = max(len(_ranked(variant.results[0])) for variant in comparison.variants)
        some = f", the {_MOST_LINKS} most congested of {links}" if links > _MOST_LINKS else ""
        variants = len(comparison.variants)
        first = f", the first {_MOST_VARIANTS} of {variants} variants" if variants > _MOST_VARIANTS else ""
        return f"Links over time{some}{first}{which_seed(comparison)}"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        raise NotImplementedError("it has several axes")

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        variants = comparison.variants[:_MOST_VARIANTS]
        tables = [variant.results[0].table("links") for variant in variants]
        shown = [_ranked(variant.results[0])[:_MOST_LINKS] for variant in variants]
        panels = [panel for panel in _PANELS if any(panel.of(table).any() for table in tables)]
        heights = [0.5 + 0.15 * len(names) for names in shown]
        with styled():
            figure = matplotlib_figure.Figure(figsize=(10.8, 0.6 + sum(heights)), layout="constrained")
            grid = figure.subplots(len(variants), len(panels), squeeze=False, height_ratios=heights, sharey="row")
            for column, panel in zip(grid.T, panels, strict=True):
                scale, ticks = panel.scale(tables)
                words = panel.title if panel.most is not None else f"{panel.title[:-1]}, log)"
                for axes, variant, table, names in zip(column, variants, tables, shown, strict=True):
                    times_us, cells = _cells(table.assign(value=panel.of(table)), names)
                    edges = np.arange(len(names) + 1) - 0.5
                    mesh = axes.pcolormesh(times_us, edges, cells, norm=scale, cmap="viridis", rasterized=True)
                    axes.set_label(f"{variant.name}: {panel.title}")
                    axes.set_xlim(0, float(times_us[-1]))
                    if not cells.any():  # an empty heat map would look like a missing one
                        axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color="white")
                # In a column of a paper there is room for a word of each of many panels.
                words = words.replace(" ", "\n") if len(panels) > 3 else words.replace(" (", "\n(")
                column[0].set_title(words, size=8)
                figure.colorbar(
                    mesh,
                    ax=list(column),
                    orientation="horizontal",
                    aspect=30,
                    pad=0.02,
                    ticks=ticks,
                    format="{x:,g}",
                )
            for row, variant, names in zip(grid, variants, shown, strict=True):
                row[0].set_yticks(range(len(names)), [plain(name) for name in names], size=6)
                row[0].invert_yaxis()
                row[0].set_ylabel(plain(variant.name))
                for axes in row:
                    axes.grid(False)
            for axes in grid[-1]:
                axes.set_xlabel("time (µs)")
        return figure


def _named(table: pd.DataFrame) -> pd.Series[str]:
    """Return the names of links; parallel links also have their port."""
    ends = table["node"].astype(str) + " → " + table["leads_to"].astype(str)
    ports = table.groupby(ends)["port"].transform("nunique")
    return ends.where(ports == 1, ends + " (" + table["port"].astype(str) + ")")


def _ranked(result: Result) -> list[str]:
    """Return all used links, by their longest queue and then by their utilisation."""
    table = result.table("links")
    of = table.assign(name=_named(table)).groupby("name", sort=True)
    order = pd.DataFrame({"held": of["depth_bytes"].max(), "busy": of["busy_ns"].sum()})
    return [str(name) for name in order.sort_values(["held", "busy"], ascending=False, kind="stable").index]


def _cells(table: pd.DataFrame, names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the edges of the intervals in µs, and the values by link and interval."""
    wide = table.assign(name=_named(table)).pivot_table(index="name", columns="time_ns", values="value", observed=True)
    times = wide.columns.to_numpy(float) / 1e3
    return np.concatenate([[0.0], times]), wide.reindex(list(names)).fillna(0).to_numpy(float)
