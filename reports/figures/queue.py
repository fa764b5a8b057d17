"""Queue at the most congested port anywhere in the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from harness.measure.results import Result
from reports.figures.base import Figure, register, which_seed
from reports.groups import Comparison, Variant
from reports.plots import line, plain, thinned

_UNLIKE = 20  # larger ratios of peaks share a logarithmic axis


def _worst(result: Result) -> list[dict[str, Any]]:
    """Return the ports with the longest queues, the longest first; older folders have none."""
    worst: list[dict[str, Any]] = result.summary.get("queues", {}).get("worst", [])
    return worst


def _place(result: Result) -> dict[str, Any] | None:
    """Return the most congested port whose queue was sampled: one of the worst, or that of the busiest link to a host.

    None if no such queue was sampled.
    """
    bottleneck = result.summary["bottleneck"]
    places = [*_worst(result), *([bottleneck] if bottleneck else [])]
    return next((place for place in places if len(_samples(result, place))), None)


def _samples(result: Result, place: dict[str, Any]) -> pd.DataFrame:
    """Return the samples of a port's queue."""
    queues = result.queues
    of_port = (queues["switch"] == place["switch"]) & (queues["port"] == place["port"])
    samples: pd.DataFrame = queues[of_port].reset_index(drop=True)
    return samples


@register("queue")
class WorstQueue(Figure):
    needs = ("queues",)
    order = 60

    def fits(self, comparison: Comparison) -> bool:
        return all(_place(result) for result in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        whole = all(_place(variant.results[0]) in _worst(variant.results[0])[:1] for variant in comparison.variants)
        port = "port" if whole else "sampled port"
        return f"Queue at the most congested {port}{which_seed(comparison)}"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw the queue of the first seed."""
        peaks: list[float] = []
        for variant in variants:
            result = variant.results[0]
            place = _place(result)
            assert place is not None
            here = _samples(result, place)
            peaks.append(float(here["depth_bytes"].max()) / 1e3)
            times, depth = thinned(here["time_ns"], here["depth_bytes"])
            label = plain(f"{variant.name}: {place['switch']} to {place['leads_to']}")
            axes.plot(times / 1e3, depth / 1e3, **line(variant.number), label=label)
        axes.set(xlabel="time (µs)", ylabel="queue depth (KB)")
        if max(peaks) > _UNLIKE * min(peaks):
            axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
