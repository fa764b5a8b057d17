"""Two runs of one scenario and seed have identical tables, byte for byte; another seed gives another run."""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.runs import p4cc, run

TABLES = ("flows.parquet", "queues.parquet", "rates.parquet", "summary.json", "scenario.toml")
SMALL = ("--set", "workload.size_bytes=200000")
BOTH = ("incast", "--cc", "dcqcn", "--cc", "hpcc", *SMALL)


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def test_two_runs_are_byte_identical(tmp_path: Path) -> None:
    """Check runs that differ in order, forking, hashes, locale and captures."""
    others = ("--cc", "hpcc", "--cc", "dcqcn", *SMALL, "--no-report", "--pcap")
    environment = {**os.environ, "PYTHONHASHSEED": "1", "LC_ALL": "C"}
    done = p4cc("run", "incast", *others, "--out", str(tmp_path / "again"), env=environment)
    assert done.returncode == 0, done.stderr
    for first in run(*BOTH):
        assert tables(first.folder) == tables(tmp_path / "again" / first.folder.name)


def test_the_resolved_scenario_gives_the_same_tables(tmp_path: Path) -> None:
    first = run(*BOTH)[0].folder
    scenario = tmp_path / "incast.toml"
    scenario.write_bytes((first / "scenario.toml").read_bytes())
    (again,) = run(str(scenario))
    assert tables(first) == tables(again.folder)


def test_plain_python_hosts_do_exactly_what_compiled_ones_do(tmp_path: Path) -> None:
    environment = {**os.environ, "P4CC_NATIVE": "0", "PYTHONHASHSEED": "2"}
    done = p4cc("run", *BOTH, "--no-report", "--out", str(tmp_path / "plain"), env=environment)
    assert done.returncode == 0, done.stderr
    for first in run(*BOTH):
        assert tables(first.folder) == tables(tmp_path / "plain" / first.folder.name)


def test_another_seed_is_another_run() -> None:
    one = run(*BOTH)[0]
    (two,) = run("incast", "--cc", "dcqcn", *SMALL, "--seed", "2")
    assert one.summary["protocol"] == two.summary["protocol"] == "dcqcn"
    assert one.flows["delivered_ns"].tolist() != two.flows["delivered_ns"].tolist()
