"""Figure of the busiest port's delay over time, as delays.p4 measures it, for the first seed."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from p4cc.figures import Comparison, Figure, Variant, line, plain, register


@register("port-delay")
class PortDelay(Figure):
    needs = ("port_delay",)  # the table of the scenario's probe

    def caption(self, comparison: Comparison) -> str:
        return "Smoothed queueing delay of the busiest port"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        for i, variant in enumerate(variants):
            table = variant.results[0].table("port_delay")
            if table.empty:
                continue
            switch, port = table.groupby(["switch", "index"])["value"].max().idxmax()
            here = table[(table["switch"] == switch) & (table["index"] == port)]
            label = plain(f"{variant.name}: {switch} port {port}")
            axes.plot(here["time_ns"] / 1e3, here["value"] * 1.024 / 1e3, **line(i), label=label)
        axes.set(xlabel="time (µs)", ylabel="delay (µs)")
        axes.set_ylim(bottom=0)
