"""Page of a sweep: tables of all runs, and plots of completion times over the values of its first axis.

If runs have collectives and no flows, effective bandwidth and latencies replace completion times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from harness.columns.flows import swept
from harness.measure.provenance import differences
from harness.measure.results import Result
from harness.measure.summary import distribution
from reports.claims import claims
from reports.figures import figures as report_figures
from reports.groups import Comparison, Estimate, Variant, estimate
from reports.plots import line, plain, plain_logarithmic, styled, svg

ALL = "all flows"
_MAX_CLASSES = 4  # largest number of flow sizes that have a class each
_FIGURES = ("flows", "flows_delivered", "last_delivery_ns", "goodput_bps")
_COLLECTIVES = ("operations", "unanswered", "repeats", "cycles", "effective_bandwidth")


@dataclass(frozen=True)
class Entry:
    """One run of a sweep."""

    values: Mapping[str, Any]  # by axis
    variant: str
    result: Result


def runs_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return a row for each run: variant, values, seed, folder, reason of the end, figures of its summary."""
    rows = []
    for entry in entries:
        summary = entry.result.summary
        rows.append(
            {
                "variant": entry.variant,
                **entry.values,
                "seed": summary["seed"],
                "folder": entry.result.folder.name,
                "ended": summary["ended"],
                **{name: summary[name] for name in _FIGURES},
                **{total.name: summary.get(total.name) for total in swept()},
                "busy": (summary["bottleneck"] or {}).get("busy"),
                "drops": sum(summary["drops"].values()),
                "pfc_pauses": summary["pfc"]["pauses_sent"],
                **_of_collectives(summary["workload"]),
            }
        )
    return pd.DataFrame(rows)


def _of_collectives(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a run with collectives; latencies are in cycles."""
    if "latency_cycles" not in workload:
        return {}
    latencies = {f"latency_{key}_cycles": value for key, value in workload["latency_cycles"].items()}
    return {**{key: workload[key] for key in _COLLECTIVES}, **latencies}


def fct_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """Return a row for each run and class of flows: number of flows, and FCTs in ns.

    Classes are all flows, and each size if there are few sizes.
    """
    rows = []
    for entry in entries:
        flows = entry.result.flows
        sizes = sorted(flows["size_bytes"].unique())
        classes = {ALL: flows}
        if 1 < len(sizes) <= _MAX_CLASSES:
            classes.update({f"{size / 1e3:g} KB": flows[flows["size_bytes"] == size] for size in sizes})
        for name, members in classes.items():
            row = {"variant": entry.variant, **entry.values, "seed": entry.result.summary["seed"], "class": name}
            row["flows"] = int(members["fct_ns"].notna().sum())
            # NaN if no flow finished; then there is no mean over seeds.
            times = {f"fct_{k}_ns": math.nan if v is None else v for k, v in distribution(members["fct_ns"]).items()}
            rows.append({**row, **times})
    return pd.DataFrame(rows)


def _lines(axes: Axes, fct: pd.DataFrame, axis: str, others: Sequence[str], column: str) -> None:
    """Draw a line for each variant and each combination of other axes' values: means over seeds."""
    for i, (key, rows) in enumerate(fct.groupby(["variant", *others], sort=False)):
        label = ", ".join([str(key[0]), *(f"{name} {value}" for name, value in zip(others, key[1:], strict=True))])
        x: list[Any] = list(rows[axis].unique())
        means = [_estimate(rows[rows[axis] == value][column].tolist()) for value in x]
        half = [(e.half_width or 0) / 1e3 for e in means]
        shown = [plain(value) if isinstance(value, str) else value for value in x]
        axes.errorbar(shown, [e.mean / 1e3 for e in means], half, marker="o", ms=3, **line(i), label=plain(label))
    axes.set(xlabel=plain(axis), yscale="log")
    plain_logarithmic(axes.yaxis)
    if pd.api.types.is_numeric_dtype(fct[axis]):
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(True, which="minor", alpha=0.12)


def _estimate(values: list[float]) -> Estimate:
    """Return the mean over seeds; NaN if a seed has no finished flow."""
    return Estimate(math.nan, None) if not values or any(map(math.isnan, values)) else estimate(values)


def figures(fct: pd.DataFrame, axes_names: Sequence[str]) -> dict[str, tuple[str, Figure]]:
    """Return captions and figures by name: mean, 99% and 99.9% FCT of each class over the first axis."""
    axis, *others = axes_names
    drawn = {}
    for name in fct["class"].unique():
        columns = {"mean": "mean", "p99": "p99", "p99_9": "p99.9"}
        with styled():
            figure = Figure(figsize=(10.8, 3.3), layout="constrained")
            for place, (column, label) in zip(figure.subplots(1, len(columns)), columns.items(), strict=True):
                _lines(place, fct[fct["class"] == name], axis, others, f"fct_{column}_ns")
                place.set(title=label, ylabel="flow completion time (µs)" if column == "mean" else "")
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=7)
        drawn[f"fct-{name.replace(' ', '-').lower()}"] = (f"Flow completion times, {name}", figure)
    return drawn


def _together(entries: Sequence[Entry]) -> Comparison:
    """Return a comparison of all runs; runs that differ only by seed are one variant.

    A variant is named by protocol and values, and also by the sweep's variant if a protocol has
    several with the same values.
    """
    varied = [axis for axis in entries[0].values if len({str(entry.values[axis]) for entry in entries}) > 1]
    places = []
    for entry in entries:
        values = ", ".join(f"{axis.rpartition('.')[2]} {entry.values[axis]}" for axis in varied if axis != "cc")
        places.append((entry.result.summary["protocol"], values, entry.result.summary["seed"]))
    several = len(set(places)) < len(places)
    variants: dict[str, list[Result]] = {}
    for entry, (protocol, values, _) in zip(entries, places, strict=True):
        own = entry.variant.removeprefix(protocol).removeprefix(", ") if several else ""
        variants.setdefault(", ".join(filter(None, [protocol, own, values])), []).append(entry.result)
    summary = entries[0].result.summary
    grouped = tuple(Variant(name, tuple(results)) for name, results in variants.items())
    return Comparison(summary["scenario"], summary["title"], grouped)


def _of_all_runs(entries: Sequence[Entry]) -> dict[str, tuple[str, Figure]]:
    """Return the report's figures that apply to a sweep."""
    comparison = _together(entries)
    return {
        name: (figure.caption(comparison), figure.plot(comparison))
        for name, figure in report_figures(comparison).items()
        if figure.of_sweeps
    }


def _written(table: pd.DataFrame) -> list[list[str]]:
    """Return the rows of the page's table, with times in µs."""
    return [[_cell(str(name), value) for name, value in row.items()] for row in table.to_dict("records")]


def _cell(name: str, value: Any) -> str:
    if value != value:
        return ""
    if name.endswith("_ns"):
        return f"{value / 1e3:,.1f}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def write_sweep(
    folder: Path, title: str, axes_names: Sequence[str], entries: Sequence[Entry], named_claims: Sequence[str] = ()
) -> None:
    """Write runs.csv, fct.csv, sweep.html and plots/ into a folder.

    `named_claims` are the claims of papers that the sweep belongs to.
    """
    runs, fct = runs_table(entries), fct_table(entries)
    runs.to_csv(folder / "runs.csv", index=False)
    fct.to_csv(folder / "fct.csv", index=False)
    plots = folder / "plots"
    plots.mkdir()
    of_flows = bool(runs["flows"].any())
    shown = fct if of_flows else runs.drop(columns=["folder", "busy", *_FIGURES, *(total.name for total in swept())])
    drawn = []
    for name, (caption, figure) in {**_of_all_runs(entries), **(figures(fct, axes_names) if of_flows else {})}.items():
        drawn.append((caption, svg(figure, plots / f"{name}.svg")))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("sweep.html.j2").render(
        title=title,
        runs=len(runs),
        mixed=differences(entry.result.provenance for entry in entries),
        claims=[(name, claim) for name, claim in claims().items() if name in named_claims],
        provenance=entries[0].result.provenance,
        plots=drawn,
        unfinished=runs[runs["ended"] != "done"].to_dict("records"),
        of_flows=of_flows,
        columns=[re.sub("_ns$", " (µs)", str(name)) for name in shown.columns],
        rows=_written(shown),
    )
    (folder / "sweep.html").write_text(page, encoding="utf-8")
