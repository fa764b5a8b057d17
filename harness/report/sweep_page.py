"""What a sweep found: tables of all its runs, and plots of flow completion times over the values of its first axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from harness.measure.results import Result
from harness.measure.summary import distribution
from harness.report.figures import figures as report_figures
from harness.report.groups import Estimate, compare, estimate
from harness.report.plots import line, plain, plain_logarithmic, styled, svg

ALL = "all flows"
_MAX_CLASSES = 4  # flows of more sizes are not told apart
_FIGURES = ("flows", "flows_delivered", "last_delivery_ns", "goodput_bps", "packets_sent", "retransmitted", "timeouts")


@dataclass(frozen=True)
class Entry:
    """One run of a sweep."""

    values: Mapping[str, Any]  # by axis
    variant: str
    result: Result


def runs_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """One row a run: variant, values, seed, folder, how it ended, figures of its summary."""
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
                "busy": (summary["bottleneck"] or {}).get("busy"),
                "drops": sum(summary["drops"].values()),
                "pfc_pauses": summary["pfc"]["pauses_sent"],
            }
        )
    return pd.DataFrame(rows)


def fct_table(entries: Sequence[Entry]) -> pd.DataFrame:
    """One row a run and class of flows (all, and each size if there are few): number, FCTs in ns."""
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
            # NaN where no flow was done, which pandas and matplotlib leave out.
            found = {f"fct_{k}_ns": math.nan if v is None else v for k, v in distribution(members["fct_ns"]).items()}
            rows.append({**row, **found})
    return pd.DataFrame(rows)


def _lines(axes: Axes, fct: pd.DataFrame, axis: str, others: Sequence[str], column: str) -> None:
    """A line for each variant and each combination of the other axes' values; means over seeds."""
    for i, (key, rows) in enumerate(fct.groupby(["variant", *others], sort=False)):
        label = ", ".join([str(key[0]), *(f"{name} {value}" for name, value in zip(others, key[1:], strict=True))])
        x: list[Any] = list(rows[axis].unique())
        means = [_estimate(rows[rows[axis] == value][column].dropna().tolist()) for value in x]
        half = [(e.half_width or 0) / 1e3 for e in means]
        axes.errorbar(x, [e.mean / 1e3 for e in means], half, marker="o", ms=3, **line(i), label=plain(label))
    axes.set(xlabel=plain(axis), yscale="log")
    plain_logarithmic(axes.yaxis)
    if pd.api.types.is_numeric_dtype(fct[axis]):
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(True, which="minor", alpha=0.12)


def _estimate(values: list[float]) -> Estimate:
    return estimate(values) if values else Estimate(math.nan, None)


def figures(fct: pd.DataFrame, axes_names: Sequence[str]) -> dict[str, tuple[str, Figure]]:
    """Name -> (caption, figure): mean, 99% and 99.9% FCT of each class over the first axis."""
    axis, *others = axes_names
    found = {}
    for name in fct["class"].unique():
        columns = {"mean": "mean", "p99": "99%", "p99_9": "99.9%"}
        with styled():
            figure = Figure(figsize=(10.8, 3.3), layout="constrained")
            for place, (column, label) in zip(figure.subplots(1, len(columns)), columns.items(), strict=True):
                _lines(place, fct[fct["class"] == name], axis, others, f"fct_{column}_ns")
                place.set(title=label, ylabel="flow completion time (µs)" if column == "mean" else "")
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=7)
        found[f"fct-{name.replace(' ', '-').lower()}"] = (f"Flow completion times, {name}", figure)
    return found


def _of_all_runs(entries: Sequence[Entry]) -> dict[str, tuple[str, Figure]]:
    """Those of a report's figures that say something of a sweep."""
    return {
        name: (figure.caption(comparison), figure.plot(comparison))
        for comparison in compare([entry.result for entry in entries])
        for name, figure in report_figures(comparison).items()
        if figure.of_sweeps
    }


def _written(table: pd.DataFrame) -> list[list[str]]:
    """The rows of the page's table: times in µs."""
    return [
        ["" if v != v else f"{v / 1e3:,.1f}" if str(name).endswith("_ns") else str(v) for name, v in row.items()]
        for row in table.to_dict("records")
    ]


def write_sweep(folder: Path, title: str, axes_names: Sequence[str], entries: Sequence[Entry]) -> None:
    """Writes runs.csv, fct.csv, sweep.html and plots/ into a folder."""
    runs, fct = runs_table(entries), fct_table(entries)
    runs.to_csv(folder / "runs.csv", index=False)
    fct.to_csv(folder / "fct.csv", index=False)
    plots = folder / "plots"
    plots.mkdir()
    drawn = []
    for name, (caption, figure) in {**_of_all_runs(entries), **figures(fct, axes_names)}.items():
        drawn.append((caption, svg(figure, plots / f"{name}.svg")))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.get_template("sweep.html.j2").render(
        title=title,
        runs=len(runs),
        plots=drawn,
        unfinished=runs[runs["ended"] != "done"].to_dict("records"),
        columns=[str(name).removesuffix("_ns") for name in fct.columns],
        rows=_written(fct),
    )
    (folder / "sweep.html").write_text(page, encoding="utf-8")
