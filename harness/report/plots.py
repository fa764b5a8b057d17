"""The plots of a comparison, as SVG. Every function takes axes and the variants of one scenario."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.report.groups import CONFIDENCE, Comparison, Variant, estimate

# Okabe and Ito's palette, told apart with any colour vision, without its yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")  # for the second seven, and so on
_MARKERS = ("o", "^", "s", "D")
_MAX_INSIDE = 4  # a longer legend stands below the plot
_MAX_POINTS = 1500  # of a line: more are not seen, and an SVG keeps every one
_SIZE_BINS = 12
_UNLIKE = 20  # queues whose peaks differ by more share a logarithmic axis
STYLE = Path(__file__).with_name("report.mplstyle")

_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


def plain(name: str) -> str:
    """A user's name as matplotlib is to write it: a dollar sign begins no formula."""
    return name.replace("$", r"\$")


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def line(index: int) -> dict[str, Any]:
    """How the lines of the variant of that number look, in every plot."""
    return {"color": colour(index), "ls": _DASHES[index // len(COLOURS) % len(_DASHES)]}


def marker(index: int) -> str:
    return _MARKERS[index // len(COLOURS) % len(_MARKERS)]


def _thinned(times: pd.Series[Any], values: pd.Series[Any]) -> tuple[Any, Any]:
    """At most _MAX_POINTS points: the largest of each stretch, so that no peak is lost."""
    step = -(-len(times) // _MAX_POINTS)
    if step <= 1:
        return times, values
    groups = np.arange(len(times)) // step
    return times.groupby(groups).first(), values.groupby(groups).max()


def fct_cdf(axes: Axes, variants: Sequence[Variant]) -> None:
    for i, variant in enumerate(variants):
        fct = np.sort(np.concatenate([r.flows["fct_ns"].dropna().to_numpy() for r in variant.results])) / 1e3
        axes.step(fct, np.arange(1, len(fct) + 1) / len(fct), where="post", **line(i), label=plain(variant.name))
    axes.set(xlabel="flow completion time (µs)", ylabel="fraction of flows", ylim=(0, 1.02))


def slowdown_by_size(axes: Axes, variants: Sequence[Variant]) -> None:
    """Median and 99th percentile over bins with about as many flows each."""
    for i, variant in enumerate(variants):
        flows = pd.concat([r.flows for r in variant.results]).dropna(subset=["slowdown"])
        bins = flows.groupby(pd.qcut(flows["size_bytes"], _SIZE_BINS, duplicates="drop"), observed=True)
        sizes = bins["size_bytes"].median()
        look: dict[str, Any] = {"color": colour(i), "marker": marker(i), "ms": 3}
        axes.plot(sizes, bins["slowdown"].median(), "-", **look, label=plain(variant.name))
        axes.plot(sizes, bins["slowdown"].quantile(0.99), "--", **look)
    axes.set(xscale="log", yscale="log", xlabel="flow size (bytes)", ylabel="FCT slowdown")


def start_and_finish(axes: Axes, variants: Sequence[Variant]) -> None:
    for i, variant in enumerate(variants):
        flows = pd.concat([r.flows for r in variant.results])
        flows = flows[flows["delivered_ns"] >= 0]
        times = flows["start_ns"] / 1e3, flows["delivered_ns"] / 1e3
        axes.plot(*times, marker(i), ms=4, color=colour(i), label=plain(variant.name))
    axes.set(xlabel="start of the flow (µs)", ylabel="finish (µs)")
    axes.set_ylim(bottom=0)


def jain_over_time(axes: Axes, variants: Sequence[Variant]) -> None:
    """The mean over seeds, with its confidence interval where there are several and they leave lines to be seen."""
    for i, variant in enumerate(variants):
        table = pd.concat([r.jain for r in variant.results])
        estimates = {time: estimate(values.tolist()) for time, values in table.groupby("time_ns")["jain"]}
        times = pd.Series(list(estimates), dtype=float) / 1e3
        mean = pd.Series([e.mean for e in estimates.values()], dtype=float)
        axes.plot(times, mean, **line(i), label=plain(variant.name))
        if len(variant.results) > 1 and len(variants) <= _MAX_INSIDE:
            half = pd.Series([e.half_width or 0.0 for e in estimates.values()])
            axes.fill_between(times, mean - half, mean + half, color=colour(i), alpha=0.2, lw=0)
    axes.set(xlabel="time (µs)", ylabel="Jain index of active flows", ylim=(0, 1.03))


def rtt_cdf(axes: Axes, variants: Sequence[Variant]) -> None:
    """The latest RTT of each queue pair at every sample, in base RTTs."""
    for i, variant in enumerate(variants):
        sampled = [r.rates["rtt_ns"][r.rates["rtt_ns"] >= 0] / r.summary["base_rtt_ns"] for r in variant.results]
        rtts = np.sort(np.concatenate(sampled))
        if len(rtts):
            levels = np.linspace(0, 1, min(len(rtts), _MAX_POINTS))
            axes.plot(np.quantile(rtts, levels), levels, **line(i), label=plain(variant.name))
    axes.set(xlabel="RTT (base RTTs)", ylabel="fraction of samples", ylim=(0, 1.02))


def bottleneck_queue(axes: Axes, variants: Sequence[Variant]) -> None:
    """The first seed's; the port is the one that its summary names."""
    peaks: list[float] = []
    for i, variant in enumerate(variants):
        result = variant.results[0]
        place = result.summary["bottleneck"]
        queues = result.queues
        here = queues[(queues["switch"] == place["switch"]) & (queues["port"] == place["port"])].reset_index(drop=True)
        if len(here):
            peaks.append(float(here["depth_bytes"].max()) / 1e3)
        times, depth = _thinned(here["time_ns"], here["depth_bytes"])
        label = plain(f"{variant.name}: {place['switch']} to {place['leads_to']}")
        axes.plot(times / 1e3, depth / 1e3, **line(i), label=label)
    axes.set(xlabel="time (µs)", ylabel="queue depth (KB)")
    if peaks and max(peaks) > _UNLIKE * min(peaks):
        axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)


def flow_rates(axes: Axes, variant: Variant) -> None:
    """Throughput of each queue pair on the wire; the first seed's. A few named flows have colours and a legend, others
    are dark if they start early and light if they start late.
    """
    result = variant.results[0]
    starts = result.flows.groupby("qp").agg(start=("start_ns", "min"), name=("group", "first")).sort_values("start")
    named = len(starts) <= len(COLOURS) and starts["name"].nunique() == len(starts)
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.92, max(len(starts), 2)))
    colours = dict(zip(starts.index, COLOURS if named else shades, strict=False))
    for qp, rows in result.rates.groupby("qp"):
        times, rates = _thinned(rows["time_ns"].reset_index(drop=True), rows["throughput_bps"].reset_index(drop=True))
        label = plain(str(starts["name"][qp])) if named else None
        axes.plot(times / 1e3, rates / 1e9, color=colours[qp], lw=0.9, label=label)
    if named:
        axes.legend(ncols=len(starts))
    axes.set(xlabel="time (µs)", ylabel="throughput (Gb/s)")
    axes.set_ylim(bottom=0)


_MAX_RATE_LINES = 128


def figures(comparison: Comparison) -> dict[str, tuple[str, Figure]]:
    """Name -> (caption, figure) for what this comparison has data for."""
    variants = comparison.variants
    flows = pd.concat([r.flows for r in comparison.results])
    found: dict[str, tuple[str, Figure]] = {}

    def add(name: str, caption: str, draw: Callable[[Axes, Sequence[Variant]], None]) -> None:
        with mpl.rc_context(fname=STYLE):
            below = -(-len(variants) // 2) if len(variants) > _MAX_INSIDE else 0  # lines of the legend
            figure = Figure(figsize=(5.4, 3.3 + 0.17 * below), layout="constrained")
            axes = figure.subplots()
            draw(axes, variants)
            if below:
                figure.legend(loc="outside lower center", ncols=2, fontsize=7)
            else:
                axes.legend()
        found[name] = (caption, figure)

    if flows["fct_ns"].notna().any():
        add("fct", "Flow completion times", fct_cdf)
        if flows["size_bytes"].nunique() > 2:
            caption = "Slowdown by flow size, against the empty network: median, dashed 99th percentile"
            add("slowdown", caption, slowdown_by_size)
        if 1 < flows["start_ns"].nunique() <= _MAX_RATE_LINES:
            add("finish", "When flows start and when they finish", start_and_finish)
    if all(len(r.jain) for r in comparison.results):
        seeds = len(variants[0].results)
        mean = f", mean of {seeds} seeds" if seeds > 1 else ""
        band = f" and {CONFIDENCE:.0%} confidence interval" if mean and len(variants) <= _MAX_INSIDE else ""
        add("jain", f"Fairness of throughput over time{mean}{band}", jain_over_time)
    if any((r.rates["rtt_ns"] >= 0).any() for r in comparison.results):
        add("rtt", "Round-trip times", rtt_cdf)
    if all(r.summary["bottleneck"] and len(r.queues) for r in comparison.results):
        add("queue", "Queue at the busiest link to a host", bottleneck_queue)
    if all(0 < r.rates["qp"].nunique() <= _MAX_RATE_LINES for r in comparison.results):
        caption = "Throughput of each flow (without a legend: early starters dark, late ones light)"
        found["rates"] = (caption, _rates_figure(variants))
    return found


def _rates_figure(variants: Sequence[Variant]) -> Figure:
    with mpl.rc_context(fname=STYLE):
        figure = Figure(figsize=(5.4 * min(2, len(variants)), 3.3 * -(-len(variants) // 2)), layout="constrained")
        grid = figure.subplots(-(-len(variants) // 2), min(2, len(variants)), sharey=True, sharex=True, squeeze=False)
        for i, (axes, variant) in enumerate(zip(grid.flat, variants, strict=False)):
            flow_rates(axes, variant)
            axes.set_title(plain(variant.name), color=colour(i))
        for axes in grid.flat[len(variants) :]:
            axes.remove()
    return figure


def svg(figure: Figure) -> str:
    """The figure as an SVG element that can stand in a page."""
    text = io.StringIO()
    with mpl.rc_context(fname=STYLE):
        figure.savefig(text, format="svg", metadata=_NO_METADATA)
    return text.getvalue()[text.getvalue().index("<svg") :]


def save(figure: Figure, path: Path) -> None:
    """The figure as a file, in the format that its name says."""
    metadata = _NO_METADATA if path.suffix == ".svg" else None
    with mpl.rc_context(fname=STYLE):
        figure.savefig(path, dpi=150, metadata=metadata)
