"""The queue at the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from harness.report.figures.base import Figure, register
from harness.report.groups import Comparison, Variant
from harness.report.plots import line, plain, thinned

_UNLIKE = 20  # queues whose peaks differ by more share a logarithmic axis


@register("queue")
class BottleneckQueue(Figure):
    needs = ("queues",)
    order = 60

    def fits(self, comparison: Comparison) -> bool:
        return all(r.summary["bottleneck"] and len(r.queues) for r in comparison.results)

    def caption(self, comparison: Comparison) -> str:
        return "Queue at the busiest link to a host"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        """The first seed's; the port is the one that its summary names."""
        peaks: list[float] = []
        for i, variant in enumerate(variants):
            result = variant.results[0]
            place = result.summary["bottleneck"]
            queues = result.queues
            here = queues[(queues["switch"] == place["switch"]) & (queues["port"] == place["port"])].reset_index(
                drop=True
            )
            if len(here):
                peaks.append(float(here["depth_bytes"].max()) / 1e3)
            times, depth = thinned(here["time_ns"], here["depth_bytes"])
            label = plain(f"{variant.name}: {place['switch']} to {place['leads_to']}")
            axes.plot(times / 1e3, depth / 1e3, **line(i), label=label)
        axes.set(xlabel="time (µs)", ylabel="queue depth (KB)")
        if peaks and max(peaks) > _UNLIKE * min(peaks):
            axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
