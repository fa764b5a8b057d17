"""Same scenario, same seed: the same tables, byte for byte. Another seed: another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.runs import p4cc, run

TABLES = ("flows.parquet", "queues.parquet", "rates.parquet", "summary.json", "scenario.toml")
SMALL = ("--set", "workload.size_bytes=200000")


def tables(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc"])
def test_two_runs_are_byte_identical(tmp_path: Path, cc: str) -> None:
    first = run("incast", "--cc", cc, *SMALL)[0].folder
    done = p4cc("run", "incast", "--cc", cc, *SMALL, "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert tables(first) == tables(tmp_path / "again" / first.name)


def test_the_resolved_scenario_gives_the_same_tables(tmp_path: Path) -> None:
    first = run("incast", "--cc", "dcqcn", *SMALL)[0].folder
    scenario = tmp_path / "incast.toml"
    scenario.write_bytes((first / "scenario.toml").read_bytes())
    done = p4cc("run", str(scenario), "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    assert tables(first) == tables(tmp_path / "again" / first.name)


def test_plain_python_hosts_do_exactly_what_compiled_ones_do(tmp_path: Path) -> None:
    import os

    for cc in ("dcqcn", "hpcc"):
        first = run("incast", "--cc", cc, *SMALL)[0].folder
        target = tmp_path / cc
        environment = {**os.environ, "P4CC_NATIVE": "0"}
        done = p4cc("run", "incast", "--cc", cc, *SMALL, "--out", str(target), env=environment)
        assert done.returncode == 0, done.stderr
        assert tables(first) == tables(target / first.name)


def test_another_seed_is_another_run() -> None:
    one = run("incast", "--cc", "dcqcn", *SMALL)[0]
    two = run("incast", "--cc", "dcqcn", *SMALL, "--seed", "2")[0]
    assert one.flows["delivered_ns"].tolist() != two.flows["delivered_ns"].tolist()
