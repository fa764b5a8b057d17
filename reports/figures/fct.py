"""Figure of flow completion times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from reports.figures.base import Figure, register, styles_of_parts
from reports.groups import Comparison, Variant
from reports.plots import plain, plain_logarithmic

_UNLIKE = 20  # largest ratio of the longest FCT to the median on a linear axis


@register("fct")
class CompletionTimes(Figure):
    needs = ("flows",)
    order = 10

    def fits(self, comparison: Comparison) -> bool:
        return comparison.any_delivered

    def caption(self, comparison: Comparison) -> str:
        return "Flow completion times"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        spread = 0.0
        for part, look in styles_of_parts(variants):
            fct = np.sort(part.flows["fct_ns"].dropna().to_numpy()) / 1e3
            axes.step(fct, np.arange(1, len(fct) + 1) / len(fct), where="post", **look.line, label=plain(part.name))
            if len(fct):
                spread = max(spread, float(fct[-1] / np.median(fct)))
        axes.set(xlabel="flow completion time (µs)", ylabel="fraction of flows", ylim=(0, 1.02))
        if spread > _UNLIKE:
            axes.set_xscale("log")
            plain_logarithmic(axes.xaxis)
