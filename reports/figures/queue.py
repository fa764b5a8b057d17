"""Queue at the most congested port anywhere in the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from harness.measure.results import Result
from reports.figures.base import Figure, register, which_seed
from reports.groups import Comparison, Variant
from reports.plots import line, plain, thinned

_UNLIKE = 20  # larger ratios of peaks share a logarithmic axis


def _place(result: Result) -> dict[str, Any] | None:
    """Return the place of the longest queue; for older folders, that of the busiest link to a host."""
    worst: list[dict[str, Any]] = result.summary.get("queues", {}).get("worst", [])
    return worst[0] if worst else result.summary["bottleneck"]


@register("queue")
class WorstQueue(Figure):
    needs = ("queues",)
    order = 60

    def fits(self, comparison: Comparison) -> bool:
        return all(_place(r) and len(r.queues) for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        return f"Queue at the most congested port{which_seed(comparison)}"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """Draw the queue of the first seed."""
        peaks: list[float] = []
        for variant in variants:
            result = variant.results[0]
            place = _place(result)
            assert place is not None
            queues = result.queues
            here = queues[(queues["switch"] == place["switch"]) & (queues["port"] == place["port"])].reset_index(
                drop=True
            )
            if len(here):
                peaks.append(float(here["depth_bytes"].max()) / 1e3)
            times, depth = thinned(here["time_ns"], here["depth_bytes"])
            label = plain(f"{variant.name}: {place['switch']} to {place['leads_to']}")
            axes.plot(times / 1e3, depth / 1e3, **line(variant.number), label=label)
        axes.set(xlabel="time (µs)", ylabel="queue depth (KB)")
        if peaks and max(peaks) > _UNLIKE * min(peaks):
            axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
