"""Figure of start and finish times of flows."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from harness.report.figures.base import MAX_LINES, Figure, register
from harness.report.groups import Comparison, Variant, parts
from harness.report.plots import colour, marker, plain


@register("finish")
class StartAndFinish(Figure):
    needs = ("flows",)
    order = 30

    def fits(self, comparison: Comparison) -> bool:
        return comparison.any_delivered and 1 < comparison.flows["start_ns"].nunique() <= MAX_LINES

    def caption(self, comparison: Comparison) -> str:
        return "When flows start and when they finish"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for i, (name, flows) in enumerate(parts(variants)):
            flows = flows[flows["delivered_ns"] >= 0]
            times = flows["start_ns"] / 1e3, flows["delivered_ns"] / 1e3
            axes.plot(*times, marker(i), ms=4, color=colour(i), clip_on=False, label=plain(name))
        axes.set(xlabel="start of the flow (µs)", ylabel="finish (µs)")
        axes.set_ylim(bottom=0)
