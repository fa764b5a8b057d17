"""Plots and sentences of results from Python."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
import pytest

import p4cc

STAR: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 4},
    "workload": {"name": "incast", "size_bytes": 20_000},
}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> p4cc.Results:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    return p4cc.run(STAR, cc=["dcqcn", "hpcc"])


def test_plots_are_drawn_into_axes(results: p4cc.Results) -> None:
    axes = results.plot.fct()
    assert [line.get_label() for line in axes.get_lines()] == ["dcqcn", "hpcc"]
    drawn = len(axes.get_lines())
    assert results.plot.queues(ax=axes) is axes
    assert len(axes.get_lines()) == drawn + 2


def test_a_series_has_a_line_for_each_run_and_each_place(results: p4cc.Results) -> None:
    (first, *_) = results
    axes = results["dcqcn"].plot.timeseries("rates", "throughput_bps")
    labels = [str(line.get_label()) for line in axes.get_lines()]
    assert labels == [f"dcqcn, seed 1 {qp}" for qp in sorted(first.rates["qp"].unique())]


def test_rows_are_chosen_by_their_values(results: p4cc.Results) -> None:
    axes = results.plot.timeseries("queues", "depth_bytes", switch="s0", port=1)
    assert [str(line.get_label()) for line in axes.get_lines()] == ["dcqcn, seed 1 s0 1", "hpcc, seed 1 s0 1"]
    queues = results[0].queues
    chosen = queues[(queues["switch"] == "s0") & (queues["port"] == 1)]
    assert np.asarray(axes.get_lines()[0].get_ydata()).tolist() == chosen["depth_bytes"].tolist()
    with pytest.raises(p4cc.UserError, match="no row has"):
        results.plot.timeseries("queues", "depth_bytes", switch="s9")


def test_an_unknown_column_is_named(results: p4cc.Results) -> None:
    with pytest.raises(p4cc.UserError, match="no column 'depth_byte'; did you mean 'depth_bytes'"):
        results.plot.timeseries("queues", "depth_byte")


def test_a_notebook_shows_what_was_found(results: p4cc.Results) -> None:
    (first, *_) = results.findings()
    assert "hpcc" in first
    assert f"<li>{first}</li>" in results._repr_html_()
    assert "<table" in results[0]._repr_html_()


def test_a_run_keeps_the_temporary_folder_of_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    run = p4cc.run(STAR, cc="hpcc")[0]
    gc.collect()
    assert len(run.flows) == 3


def test_findings_of_damaged_results_name_the_folder(results: p4cc.Results) -> None:
    summary = results[0].folder / "summary.json"
    read = json.loads(summary.read_text())
    summary.write_text(json.dumps({**read, "queues": {"worst": [[]]}}))
    with pytest.raises(p4cc.UserError, match="damaged results"):
        p4cc.load(results.folder).findings()
