"""Collectives: effective bandwidth and latency by setting, with protocols and the paper's numbers side by side.

The x axis has the settings of the thesis' figures: numbers of initiators (figures 6.2, 6.3, 6.10,
6.11), numbers of transactions (6.12), kinds of operations of all GPUs (6.13 to 6.16), or
applications (6.17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib import figure as matplotlib_figure
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.claims import Number, papers_numbers
from reports.figures.base import Figure, register
from reports.groups import Comparison, Estimate, Variant, over_seeds
from reports.plots import PAPER, colour, draw_paper, plain, plain_logarithmic, styled

_MOST_NARROW = 8  # points; more take the page's width
_UPRIGHT = 3  # settings; with more, their names are rotated
_BANDWIDTH = "effective_bandwidth"
# Styles of the latencies, by key. The mean is inside the median, which has the same marker; the
# longest latency is the end of a line.
_LATENCIES: dict[str, dict[str, Any]] = {
    "median": {"marker": "o", "ms": 6, "mfc": "white", "label": "median"},
    "mean": {"marker": "o", "ms": 3, "label": "mean"},
    "max": {"marker": "_", "ms": 8, "mew": 1.5, "label": "longest"},
}


@dataclass(frozen=True)
class _Point:
    """Result of one application in one variant of the scenario."""

    protocol: str
    setting: str  # rest of the variant's name, and the application if there are several
    bandwidth: Estimate
    cycles: Mapping[str, float]  # mean latencies over seeds, by key
    paper: Mapping[str, Number]  # by key of the summary


def _points(variants: Sequence[Variant], comparison: Comparison) -> list[_Point]:
    """Return the points of variants in which at least one collective operation was answered."""
    paper = papers_numbers(comparison.claims)
    points = []
    for variant in variants:
        summary = variant.results[0].summary
        protocol = summary["protocol"]
        named = variant.name.removeprefix(protocol).removeprefix(", ")
        kinds = [application["kind"].replace("_", "-") for application in summary["workload"].get("applications", [])]
        for place, kind in enumerate(kinds):
            which = f"{kind} {place + 1}" if kinds.count(kind) > 1 else kind
            bandwidth = _over_seeds(variant, place, _BANDWIDTH)
            cycles = {key: _over_seeds(variant, place, "latency_cycles", key) for key in _LATENCIES}
            known = {key: value.mean for key, value in cycles.items() if value is not None}
            if bandwidth is not None and known:
                setting = ": ".join(filter(None, [named, which if len(kinds) > 1 or not named else ""]))
                points.append(_Point(protocol, setting, bandwidth, known, paper.get(variant.name, {})))
    return points


def _over_seeds(variant: Variant, place: int, *keys: str) -> Estimate | None:
    def find(summary: dict[str, Any]) -> float | None:
        value: Any = summary["workload"]["applications"][place]
        for key in keys:
            value = value[key]
        return None if value is None else float(value)

    return over_seeds(variant, find)


@register("collectives")
class Collectives(Figure):
    """Bandwidth as bars with confidence intervals over seeds, and latencies below it."""

    order = 3
    of_sweeps: ClassVar[bool] = True

    def fits(self, comparison: Comparison) -> bool:
        return bool(_points(comparison.variants, comparison))

    def wide(self, comparison: Comparison) -> bool:
        return len(_points(comparison.variants, comparison)) > _MOST_NARROW

    def caption(self, comparison: Comparison) -> str:
        paper = any(point.paper for point in _points(comparison.variants, comparison))
        also = "; black: the paper's numbers, of “under” a triangle" if paper else ""
        return f"Effective bandwidth, and latency of operations from injection to the answer{also}"

    def draw(self, axes: Axes, variants: Sequence[Variant]) -> None:
        raise NotImplementedError("it has two axes")

    def plot(self, comparison: Comparison) -> matplotlib_figure.Figure:
        points = _points(comparison.variants, comparison)
        settings = list(dict.fromkeys(point.setting for point in points))
        protocols = list(dict.fromkeys(point.protocol for point in points))
        width = 10.8 if self.wide(comparison) else 5.4
        with styled():
            figure = matplotlib_figure.Figure(figsize=(width, 5.2), layout="constrained")
            upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 3))
            each = 0.8 / len(protocols)  # the width of a point
            for i, protocol in enumerate(protocols):
                own = [point for point in points if point.protocol == protocol]
                middle = (i - (len(protocols) - 1) / 2) * each
                places = np.array([settings.index(point.setting) + middle for point in own])
                _draw(upper, lower, own, places, each, colour(i))
            turned = len(settings) > _UPRIGHT
            lower.set_xticks(
                range(len(settings)),
                [plain(setting) for setting in settings],
                rotation=30 if turned else 0,
                ha="right" if turned else "center",
            )
            for axes in (upper, lower):
                axes.grid(visible=False, axis="x")
            upper.set(ylabel="effective bandwidth")
            lower.set(ylabel="latency (cycles)", yscale="log")
            plain_logarithmic(lower.yaxis)
            colours, shapes = _legends(protocols, points)
            figure.legend(handles=colours, loc="outside upper center", ncols=4, fontsize="small")
            figure.legend(handles=shapes, loc="outside lower center", ncols=4, fontsize="small")
        return figure


def _draw(upper: Axes, lower: Axes, own: Sequence[_Point], places: Any, room: float, shade: str) -> None:
    """Draw the points of one protocol at these positions."""
    half = [point.bandwidth.half_width or 0 for point in own]
    label = plain(own[0].protocol)
    upper.bar(places, [point.bandwidth.mean for point in own], 0.9 * room, yerr=half, color=shade, label=label)
    for key, look in _LATENCIES.items():
        values = [point.cycles.get(key, np.nan) for point in own]
        lower.plot(places, values, ls="none", color=shade, zorder=3, **{**look, "label": f"{label}: {look['label']}"})
    ends = [sorted(point.cycles.values()) for point in own]
    lower.vlines(places, [low for low, *_ in ends], [high for *_, high in ends], color=shade, lw=1)
    for point, place in zip(own, places, strict=True):
        draw_paper(upper, place, point.paper.get(f"workload.{_BANDWIDTH}"))
        for key in _LATENCIES:
            draw_paper(lower, place + 0.3 * room, point.paper.get(f"workload.latency_cycles.{key}"))


def _legends(protocols: Sequence[str], points: Sequence[_Point]) -> tuple[list[Line2D], list[Line2D]]:
    """Return the legends: colours are protocols, and shapes are quantities."""
    colours = [
        Line2D([], [], marker="s", ls="none", color=colour(i), label=plain(protocol))
        for i, protocol in enumerate(protocols)
    ]
    shapes = [Line2D([], [], ls="none", color="grey", **look) for look in _LATENCIES.values()]
    if any(point.paper for point in points):
        shapes.append(Line2D([], [], marker="D", label="paper", **PAPER))
    return colours, shapes
