"""Slowdown by flow size."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from reports.figures.base import Figure, register, styles_of_parts
from reports.groups import Comparison, Variant, by_size
from reports.plots import plain, plain_logarithmic

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
        for part, look in styles_of_parts(variants):
            flows = part.flows.dropna(subset=["slowdown"])
            bins = by_size(flows, _SIZE_BINS)
            sizes = bins["size_bytes"].median()
            axes.plot(sizes, bins["slowdown"].median(), "-", **look.points, ms=3, label=plain(part.name))
            axes.plot(sizes, bins["slowdown"].quantile(0.99), "--", **look.points, ms=3)
        axes.set(xscale="log", yscale="log", xlabel="flow size (bytes)", ylabel="FCT slowdown")
        plain_logarithmic(axes.yaxis)
