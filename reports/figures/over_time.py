"""Figures of the scenario's probes over time, which need no file of their own."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.axes import Axes

from harness.plan.probes import Probe
from reports.figures.base import FigurePerVariant, which_seed
from reports.groups import Comparison, Variant
from reports.plots import part_colours, plain, thinned

_PREFIX = "probe-"
_MOST = 32  # places with the largest values, which are shown
_MOST_INSIDE = 7  # places that fit into a legend inside the axes


class OverTime(FigurePerVariant):
    """First column of a probe's values at each of its places, for the first seed."""

    from_zero = False

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def caption(self, comparison: Comparison) -> str:
        having = filter(self.has, comparison.variants)
        tables = [variant.results[0].table(self.probe.name) for variant in having]
        places = max(len(table.groupby(list(self.probe.places))) for table in tables)
        of_many = f", the {_MOST} of {places} that get largest" if places > _MOST else ""
        what = f"{self.probe.name}: {self.probe.kind.replace('_', ' ')} {self.probe.reads}"
        return f"{what}{of_many}{which_seed(comparison)}"

    def has(self, variant: Variant) -> bool:
        result = variant.results[0]
        return self.probe.name in result.tables and len(result.table(self.probe.name)) > 0

    def draw_one(self, axes: Axes, variant: Variant) -> None:
        table = variant.results[0].table(self.probe.name)
        places = list(self.probe.places)
        value = table.columns[1 + len(places)]
        largest = table.groupby(places, sort=False)[value].max().nlargest(_MOST)
        rows_at = dict(iter(table.groupby(places, sort=False)))
        for place, look in zip(sorted(largest.index), part_colours(len(largest)), strict=True):
            rows = rows_at[place].reset_index(drop=True)
            times, values = thinned(rows["time_ns"], rows[value])
            axes.plot(times / 1e3, values, color=look, lw=0.9, label=plain(" ".join(map(str, place))))
        title = plain(", ".join(place.replace("_", " ") for place in places))
        if len(largest) <= _MOST_INSIDE:
            axes.legend(title=title)
        else:  # the legend is beside the axes, because there is no room inside
            axes.legend(title=title, ncols=2, fontsize="xx-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        unit = self.probe.unit_of(str(value))
        what = self.probe.reads if value in ("value", unit) else str(value).replace("_", " ")
        # A name may end in the unit, which is written only once.
        words = what.removesuffix(f" {str(value).rpartition('_')[2]}") if unit and not self.probe.unit else what
        axes.set(xlabel="time (µs)", ylabel=plain(f"{words} ({unit})" if unit else words))


def over_time(comparison: Comparison) -> Iterator[tuple[str, OverTime]]:
    """Yield named figures of all probes that were read more than once."""
    probes = {probe.name: probe for result in comparison.results for probe in result.probes if probe.interval_ns}
    for name, probe in sorted(probes.items()):
        figure = OverTime(probe)
        if any(map(figure.has, comparison.variants)):
            yield _PREFIX + name, figure
