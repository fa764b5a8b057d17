"""Round-trip times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from harness.report.figures.base import Figure, register
from harness.report.groups import Comparison, Variant
from harness.report.plots import MAX_POINTS, line, plain, plain_logarithmic

_UNLIKE = 20  # longest RTTs that differ by more share a logarithmic axis


@register("rtt")
class RoundTripTimes(Figure):
    needs = ("rates",)
    order = 50

    def fits(self, comparison: Comparison) -> bool:
        return any((r.rates["rtt_ns"] >= 0).any() for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        return "Round-trip times"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw the latest RTT of each queue pair at every sample, in base RTTs."""
        longest = []
        for variant in variants:
            sampled = [r.rates["rtt_ns"][r.rates["rtt_ns"] >= 0] / r.summary["base_rtt_ns"] for r in variant.results]
            rtts = np.sort(np.concatenate(sampled))
            if len(rtts):
                longest.append(float(rtts[-1]))
                levels = np.linspace(0, 1, min(len(rtts), MAX_POINTS))
                axes.plot(np.quantile(rtts, levels), levels, **line(variant.number), label=plain(variant.name))
        axes.set(xlabel="RTT (base RTTs)", ylabel="fraction of samples", ylim=(0, 1.02))
        if max(longest, default=0.0) > _UNLIKE * min(longest, default=0.0):
            axes.set_xscale("log")
            plain_logarithmic(axes.xaxis)
