"""Figure of start and finish times of flows."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from reports.figures.base import MAX_LINES, Figure, register, styles_of_parts
from reports.groups import Comparison, Variant
from reports.plots import plain


@register("finish")
class StartAndFinish(Figure):
    needs = ("flows",)
    order = 30

    def fits(self, comparison: Comparison) -> bool:
        return comparison.any_delivered and 1 < comparison.flows["start_ns"].nunique() <= MAX_LINES

    def caption(self, comparison: Comparison) -> str:
        return "When flows start and when they finish"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for part, look in styles_of_parts(variants):
            flows = part.flows[part.flows["delivered_ns"] >= 0]
            times = flows["start_ns"] / 1e3, flows["delivered_ns"] / 1e3
            axes.plot(*times, ls="none", **look.points, ms=4, clip_on=False, label=plain(part.name))
        axes.set(xlabel="start of the flow (µs)", ylabel="finish (µs)")
        axes.set_ylim(bottom=0)
