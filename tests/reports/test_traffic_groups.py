"""Groups of traffic in figures, tables and checks of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.measure import results
from harness.measure.results import Result
from harness.plan import resolve, scenario
from harness.worlds.virtual import VirtualWorld
from reports.figures.fct import CompletionTimes
from reports.figures.finish import StartAndFinish
from reports.figures.slowdown import Slowdown
from reports.findings import findings
from reports.groups import compare
from reports.page import table

TENANTS: dict[str, Any] = {
    "cc": "hpcc",
    "topology": {"name": "single-switch", "hosts": 6},
    "workload": {"name": "permutation", "size_bytes": 40_000},
    "groups": [
        {"name": "old", "cc": "dcqcn", "workload": {"name": "incast", "size_bytes": 60_000}},
        {"name": "late", "workload": {"name": "incast", "senders": 2, "size_bytes": 50_000}, "start_ns": 100_000},
    ],
}


def made(folder: Path, **tables: Any) -> list[Result]:
    folder.mkdir(exist_ok=True)
    runs = resolve.plan("tenants", scenario.check({**TENANTS, **tables}), Path())
    return [results.write(folder / run.label, results.files(run, VirtualWorld(run).run())) for run in runs]


@pytest.mark.parametrize("figure", [CompletionTimes, StartAndFinish, Slowdown])
def test_figures_have_a_line_for_each_group(figure: Any, tmp_path: Path) -> None:
    (comparison,) = compare(made(tmp_path))
    labels = figure().plot(comparison).axes[0].get_legend_handles_labels()[1]
    assert labels == ["old", "late", "workload"]
    (both,) = compare(made(tmp_path / "both", cc=["hpcc", "dctcp"]))
    labels = figure().plot(both).axes[0].get_legend_handles_labels()[1]
    assert labels == [f"{cc}: {name}" for cc in ("hpcc", "dctcp") for name in ("old", "late", "workload")]


def test_findings_begin_with_their_completion_times(tmp_path: Path) -> None:
    (comparison,) = compare(made(tmp_path))
    told = next(sentence for sentence in findings(comparison) if "in old" in sentence)
    means = [comparison.results[0].summary["groups"][name]["fct_ns"]["mean"] / 1e3 for name in ("old", "late")]
    began = f"The mean flow completion time is {means[0]:,.0f} µs in old, {means[1]:,.0f} µs in late and"
    assert told.startswith(began)
    assert findings(comparison)[0].startswith("The 99th-percentile slowdown of all flows is ")  # not of hpcc alone


def test_tables_and_checks_say_them_by_group(tmp_path: Path) -> None:
    """Unfinished flows are reported by group; a limit that the scenario sets is not a failure."""
    (result,) = made(tmp_path, limit_ns=30_000)
    finish = next(check for check in result.summary["checks"] if check["name"] == "flows finish")
    left = {"old": 5, "late": 2, "workload": 0}
    for name, group in result.summary["groups"].items():
        left[name] = group["flows"] - group["flows_delivered"]
    assert f"(old: {left['old']}, late: 2" in finish["detail"]
    (comparison,) = compare(made(tmp_path / "whole"))
    words = {told for told, _ in table(comparison.variants, {})}
    assert {f"{name}: {what}" for name in ("old", "workload") for what in ("FCT p99 (µs)", "retransmitted")} <= words
