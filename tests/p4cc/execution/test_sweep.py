"""Sweeps: the runs that a file describes, and those that `without` leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness import workloads
from harness.measure import results
from harness.plan.scenario import find, override, read
from harness.worlds.virtual import VirtualWorld
from p4cc.execution import sweep
from p4cc.execution.planned_run import PlannedRun
from p4switch.errors import UserError
from reports.claims import claims
from reports.sweep_page import ALL, Entry, write_sweep
from tests.e2e.runs import forked

SCENARIO = """
cc = "none"
[topology]
name = "single-switch"
hosts = 4
[workload]
name = "incast"
size_bytes = 20_000
"""
SWEEP = """
scenario = "base.toml"
[axes]
workload.size_bytes = [10_000, 30_000]
topology.link_rate_bps = [10e9, 25e9]
[[variants]]
name = "fast"
[[variants]]
name = "small packets"
set = { nic.mtu_bytes = 256, seeds = [1, 2] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(SCENARIO)
    (tmp_path / "sizes.toml").write_text(SWEEP)
    return tmp_path


def points(folder: Path, *settings: str) -> list[PlannedRun]:
    return sweep.points(*sweep.load(str(folder / "sizes.toml")), override({}, settings))


def test_each_variant_is_run_with_every_combination_of_values(folder: Path) -> None:
    found = points(folder)
    assert len(found) == 4 + 2 * 4
    assert [p.variant for p in found] == ["fast"] * 4 + ["small packets"] * 8
    values: list[dict[str, Any]] = [dict(p.values) for p in found[:4]]
    assert values == [
        {"workload.size_bytes": size, "topology.link_rate_bps": rate}
        for size in (10_000, 30_000)
        for rate in (10e9, 25e9)
    ]
    for point in found:
        run = point.run()
        assert run.scenario.workload["size_bytes"] == point.values["workload.size_bytes"]
        assert run.topology.links[0].rate_bps == point.values["topology.link_rate_bps"]
        assert run.scenario.nic.mtu_bytes == (1000 if point.variant == "fast" else 256)
    assert [p.run().seed for p in found[4:6]] == [1, 2]


def test_values_with_units_are_numbers(folder: Path) -> None:
    """They become numbers, because tables have them as columns and plots as axes."""
    without = '[[without]]\nworkload.size_bytes = ["0.01 MB"]\ntopology.link_rate_bps = ["25 Gb/s"]\n'
    axes = SWEEP.replace("[10_000, 30_000]", '["10 kB", "30 kB"]').replace("[10e9, 25e9]", '["10 Gb/s", "25 Gb/s"]')
    (folder / "sizes.toml").write_text(axes + without)
    found = [dict(point.values) for point in points(folder) if point.variant == "fast"]
    assert found == [
        {"workload.size_bytes": 10_000, "topology.link_rate_bps": 10**10},
        {"workload.size_bytes": 30_000, "topology.link_rate_bps": 10**10},
        {"workload.size_bytes": 30_000, "topology.link_rate_bps": 25 * 10**9},
    ]


def test_combinations_can_be_left_out(folder: Path) -> None:
    without = "[[without]]\nworkload.size_bytes = [10_000]\ntopology.link_rate_bps = [25e9]\n"
    (folder / "sizes.toml").write_text(SWEEP + without)
    found = points(folder)
    assert len(found) == 3 + 2 * 3
    assert (10_000, 25e9) not in [tuple(p.values.values()) for p in found]


def test_settings_go_below_what_the_sweep_says(folder: Path) -> None:
    found = points(folder, "nic.mtu_bytes=500", "switch.cell_bytes=64")
    assert [p.run().scenario.nic.mtu_bytes for p in found] == [500] * 4 + [256] * 8
    assert {p.run().scenario.switch.cell_bytes for p in found} == {64}


def test_what_is_set_for_all_runs_stands_between_the_scenario_and_the_variants(folder: Path) -> None:
    common = '[set]\nnic = { mtu_bytes = "2 kB", data_priority = 2 }\nworkload.senders = 2\nseeds = [7]\n'
    (folder / "sizes.toml").write_text(SWEEP.replace("[[variants]]", common + "[[variants]]", 1))
    runs = [point.run() for point in points(folder, "nic.mtu_bytes=500", "nic.data_priority=1", "switch.cell_bytes=64")]
    assert [run.scenario.nic.mtu_bytes for run in runs] == [2_000] * 4 + [256] * 8
    assert [run.seed for run in runs] == [7] * 4 + [1, 2] * 4
    assert {run.scenario.nic.data_priority for run in runs} == {2}
    assert {run.scenario.switch.cell_bytes for run in runs} == {64}
    assert [run.scenario.workload["size_bytes"] for run in runs[:4]] == [10_000, 10_000, 30_000, 30_000]
    assert {run.scenario.workload["senders"] for run in runs} == {2}


def test_what_is_set_is_set_without_variants_too(folder: Path) -> None:
    (folder / "sizes.toml").write_text('scenario = "base.toml"\n[axes]\nseeds = [1, 2]\n[set]\ncc = "dcqcn"')
    assert [p.variant for p in points(folder)] == ["dcqcn", "dcqcn"]


def test_without_variants_the_scenarios_own_protocols_are_compared(folder: Path) -> None:
    (folder / "sizes.toml").write_text('scenario = "base.toml"\n[axes]\ncc = ["dcqcn", "none"]')
    assert [p.variant for p in points(folder)] == ["dcqcn", "none"]


def test_a_sweep_writes_every_run_and_tables_of_them_all(folder: Path) -> None:
    done = forked("sweep", str(folder / "sizes.toml"), "--jobs", "1", "--out", str(folder / "out"))
    assert done.returncode == 0, done.stderr
    runs = pd.read_csv(folder / "out" / "runs.csv")
    assert len(runs) == 12
    assert (runs["flows_delivered"] == 3).all()
    assert all((folder / "out" / name / "flows.parquet").is_file() for name in runs["folder"])
    run = points(folder)[-1].run()
    own = results.write(folder / "own", results.files(run, VirtualWorld(run).run())).folder
    for table in ("flows.parquet", "queues.parquet", "rates.parquet"):  # whichever process makes it
        assert (own / table).read_bytes() == (folder / "out" / runs["folder"].iloc[-1] / table).read_bytes()
    fct = pd.read_csv(folder / "out" / "fct.csv")
    assert set(fct["class"]) == {ALL}
    means = fct.groupby(["workload.size_bytes", "topology.link_rate_bps"])["fct_mean_ns"].mean()
    assert means[10_000, 1e10] > means[10_000, 2.5e10]
    assert means[30_000, 1e10] > means[10_000, 1e10]
    assert (folder / "out" / "sweep.html").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('scenario = "base.toml"\n[axes]\ncc = "none"', "axes.cc: should be a list of values, got 'none'"),
        ('scenario = "base.toml"\n[axes]\nseed = [1]', "seed: no such key; did you mean 'seeds'?"),
        ('scenario = "base.toml"\n[axes]\nseeds.a = [1]', "seeds"),
        ('scenario = "base.toml"\n[axes]\n"nic.mtu_bytes" = [256]', "nic.mtu_bytes: no such key; expected it without"),
        ('scenario = "other.toml"\n[axes]\nseeds = [1]', "no scenario file"),
        ('scenario = "base.toml"', "axes: missing"),
        (SWEEP + "[[without]]\nnic.mtu_bytes = [1]", "without.0.nic.mtu_bytes: 1 is not a value of an axis"),
        (SWEEP + "[[without]]\nworkload.size_bytes = [5]", "without.0.workload.size_bytes: 5 is not a value"),
        (SWEEP + "[[without]]\nworkload.size_bytes = 5", "without.0.workload.size_bytes: should be a list"),
        (SWEEP + "[[without]]\nworkload.size_bytes = [10_000, 30_000]", "without: excludes every run"),
        (SWEEP + "[set]\nnic.mtu_byts = 256", "nic.mtu_byts: no such key; did you mean 'mtu_bytes'?"),
        (SWEEP + "[set]\nnic.mtu_bytes = 1", "nic.mtu_bytes: should be greater than or equal to 64, got 1"),
        (SWEEP + '[set]\nnic.rto_ns = "1 km"', "set.nic.rto_ns: no unit 'km' here"),
        (SWEEP + "[set]\ncc.eta = 1", "'cc' is a value, not a table"),
        (SWEEP + "[set]\ntopology.link_rate_bps = 40e9", "set.topology.link_rate_bps: is an axis, too"),
        ("set = 5\n" + SWEEP, "set: should be a valid dictionary, got 5"),
        ("axes = {", "not a TOML file"),
    ],
)
def test_mistakes_are_named(folder: Path, text: str, message: str) -> None:
    (folder / "sizes.toml").write_text(text)
    with pytest.raises(UserError) as raised:
        points(folder)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", sweep.built_in())
def test_the_sweeps_that_come_with_p4cc_can_be_run(name: str) -> None:
    """Check all points. Random flows start during a short time only, because generating them takes longest."""
    whole, folder = sweep.load(name)
    random = read(find(whole.scenario))["workload"].get("name") == "incast-mix"
    assert sweep.points(whole, folder, {"workload": {"duration_ns": 100_000}} if random else None)


def test_a_traffic_is_made_once_for_all_points_that_share_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    build = workloads.build

    def counted(*what: Any) -> Any:
        made.append(what[1]["size_bytes"])
        return build(*what)

    monkeypatch.setattr(workloads, "build", counted)
    text = SWEEP.replace("topology.link_rate_bps = [10e9, 25e9]", "nic.mtu_bytes = [512, 1024]")
    (folder / "sizes.toml").write_text(text)
    assert len(points(folder)) == 12
    assert made == [10_000, 30_000]


def test_the_page_has_claims_and_provenance_and_tells_of_runs_in_which_no_flow_is_done(folder: Path) -> None:
    entries = []
    for i, point in enumerate(points(folder, "limit_ns=14_000")[:2]):  # enough for two flows at 25 Gb/s, not at 10
        run = point.run()
        result = results.write(folder / str(i), results.files(run, VirtualWorld(run).run()))
        entries.append(Entry(point.values, point.variant, result))
    entries[1].result.__dict__["provenance"] = {**entries[1].result.provenance, "version": "0.0.9"}
    write_sweep(folder, "sizes", list(entries[0].values), entries, ["S1"])
    table = pd.read_csv(folder / "fct.csv")
    assert table["flows"].tolist() == [0, 2]
    assert table["fct_mean_ns"].isna().tolist() == [True, False]
    page = (folder / "sweep.html").read_text()
    assert "2 of 2 runs ended before all flows were done" in " ".join(page.split())
    assert "<li>0: 0 of 3 flows were delivered (limit)</li>" in page
    assert "<li>1: 2 of 3 flows were delivered (limit)</li>" in page
    assert "nan" not in page[page.index("<table") : page.index("</table>")]
    assert "<th>fct_mean (µs)</th>" in page
    assert page.startswith("<!DOCTYPE html>")
    assert claims()["S1"].text.partition(";")[0] in page
    made = entries[0].result.provenance
    assert f"different versions of p4cc: {made['version']}, 0.0.9" in page
    assert f"sources {made['sources'][:12]}" in page


def test_values_of_an_axis_are_no_formulas(folder: Path) -> None:
    """Matplotlib reads text between two dollar signs as a formula, and this formula is invalid."""
    run = points(folder)[0].run()
    result = results.write(folder / "run", results.files(run, VirtualWorld(run).run()))
    odd = r"$\frac{x}$"
    entries = [Entry({"workload.file": value, "x": odd}, odd, result) for value in (odd, "plain")]
    write_sweep(folder, odd, ["workload.file", "x"], entries)
    assert odd in (folder / "sweep.html").read_text()
