"""Slowdown by flow size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from harness.report.figures.base import Figure, register
from harness.report.groups import Comparison, Variant, by_size, parts
from harness.report.plots import colour, marker, plain, plain_logarithmic

_SIZE_BINS = 12


@register("slowdown")
class Slowdown(Figure):
    needs = ("flows",)
    order = 20

    def fits(self, comparison: Comparison) -> bool:
        return comparison.any_delivered and comparison.flows["size_bytes"].nunique() > 2

    def caption(self, comparison: Comparison) -> str:
        return "Slowdown by flow size, against the empty network: median, dashed 99th percentile"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw median and 99th percentile by size."""
        for i, (name, own) in enumerate(parts(variants)):
            flows = own.dropna(subset=["slowdown"])
            bins = by_size(flows, _SIZE_BINS)
            sizes = bins["size_bytes"].median()
            look: dict[str, Any] = {"color": colour(i), "marker": marker(i), "ms": 3}
            axes.plot(sizes, bins["slowdown"].median(), "-", **look, label=plain(name))
            axes.plot(sizes, bins["slowdown"].quantile(0.99), "--", **look)
        axes.set(xscale="log", yscale="log", xlabel="flow size (bytes)", ylabel="FCT slowdown")
        plain_logarithmic(axes.yaxis)
