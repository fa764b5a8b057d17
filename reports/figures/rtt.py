"""Round-trip times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from harness.measure.results import Result
from reports.figures.base import Figure, register
from reports.groups import Comparison, Variant
from reports.plots import MAX_POINTS, line, plain, plain_logarithmic

_UNLIKE = 20  # larger ratios of the longest RTTs share a logarithmic axis


@register("rtt")
class RoundTripTimes(Figure):
    needs = ("rates",)
    order = 50

    def fits(self, comparison: Comparison) -> bool:
        return any((r.rates["rtt_ns"] >= 0).any() for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        return "Round-trip times, over the base RTT of each flow"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw the latest RTT of each queue pair at every sample, in base RTTs of its flow."""
        longest = []
        for variant in variants:
            rtts = np.sort(np.concatenate([_in_base_rtts(result) for result in variant.results]))
            if len(rtts):
                longest.append(float(rtts[-1]))
                levels = np.linspace(0, 1, min(len(rtts), MAX_POINTS))
                axes.plot(np.quantile(rtts, levels), levels, **line(variant.number), label=plain(variant.name))
        axes.set(xlabel="RTT (base RTTs)", ylabel="fraction of samples", ylim=(0, 1.02))
        if max(longest, default=0.0) > _UNLIKE * min(longest, default=0.0):
            axes.set_xscale("log")
            plain_logarithmic(axes.xaxis)


def _in_base_rtts(result: Result) -> NDArray[np.float64]:
    """Return all sampled RTTs.

    Older folders have only the largest base RTT of the network.
    """
    rates = result.rates[result.rates["rtt_ns"] >= 0]
    messages = result.messages
    if "base_rtt_ns" not in messages:
        return rates["rtt_ns"].to_numpy(np.float64) / float(result.summary["base_rtt_ns"])
    own = rates["qp"].map(messages.groupby("qp")["base_rtt_ns"].first())
    in_base_rtts: NDArray[np.float64] = (rates["rtt_ns"] / own).to_numpy(np.float64)
    return in_base_rtts
