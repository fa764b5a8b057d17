"""Throughput over time."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from harness.report.figures.base import MAX_LINES, FigurePerVariant, register
from harness.report.groups import Comparison, Variant
from harness.report.plots import COLOURS, plain, thinned


@register("rates")
class Throughput(FigurePerVariant):
    needs = ("flows", "rates")
    order = 70

    def fits(self, comparison: Comparison) -> bool:
        return all(0 < r.rates["qp"].nunique() <= MAX_LINES for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        return "Throughput of each flow (without a legend: early starters dark, late ones light)"

    def draw_one(self, axes: Axes, variant: Variant) -> None:
        """Of each queue pair, on the wire; the first seed's. A few named flows have colours and a legend, others are
        dark if they start early and light if they start late.
        """
        result = variant.results[0]
        of_qps = result.messages.groupby("qp")
        starts = of_qps.agg(start=("start_ns", "min"), name=("group", "first")).sort_values("start")
        named = len(starts) <= len(COLOURS) and starts["name"].nunique() == len(starts)
        shades = mpl.colormaps["viridis"](np.linspace(0, 0.92, max(len(starts), 2)))
        colours = dict(zip(starts.index, COLOURS if named else shades, strict=False))
        for qp, of_qp in result.rates.groupby("qp"):
            rows = of_qp.reset_index(drop=True)
            times, rates = thinned(rows["time_ns"], rows["throughput_bps"])
            label = plain(str(starts["name"][qp])) if named else None
            axes.plot(times / 1e3, rates / 1e9, color=colours[qp], lw=0.9, label=label)
        if named:
            axes.legend(ncols=len(starts))
        axes.set(xlabel="time (µs)", ylabel="throughput (Gb/s)")
        axes.set_ylim(bottom=0)
