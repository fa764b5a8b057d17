"""What is foreseen of a run, beside what it takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.plan.experiment import Run, plan
from harness.plan.scenario import check
from harness.worlds.expected import best_workers, expected
from harness.worlds.virtual import VirtualWorld

Write = Callable[[str], Path]
NOT_RECORDED = {"queue_interval_ns": 0, "rate_interval_ns": 0}


def planned(workload: dict[str, Any], **tables: Any) -> Run:
    given = {"cc": "hpcc", "topology": {"name": "fat-tree", "k": 4}, "workload": workload, "record": NOT_RECORDED}
    return plan("x", check({**given, **tables}), Path())[0]


@pytest.mark.parametrize(
    ("workload", "tables"),
    [
        ({"name": "incast", "senders": 4, "size_bytes": 20_000}, {}),
        ({"name": "permutation", "size_bytes": 10_000}, {}),
        ({"name": "permutation", "size_bytes": 10_000}, {"nic": {"ack_every_packets": 5}}),
        ({"name": "multicast", "senders": 2, "receivers": 6, "size_bytes": 20_000}, {}),
        ({"name": "multicast", "size_bytes": 20_000}, {}),
        ({"name": "permutation", "size_bytes": 1_000_000}, {"limit_ns": 25_000, "lb": "spray"}),
        ({"name": "incast", "senders": 4, "size_bytes": 1_000_000}, {"limit_ns": 40_000}),
    ],
)
def test_what_is_foreseen_is_what_comes(workload: dict[str, Any], tables: dict[str, Any]) -> None:
    run = planned(workload, **tables)
    foreseen = expected(run)
    recording = VirtualWorld(run).run()
    hops = int(recording.port_stats["tx_packets"].sum())
    assert hops / 1.5 < foreseen.packet_hops < hops * 1.5
    assert foreseen.model_ns <= recording.end_ns < 3 * foreseen.model_ns


def test_a_limit_counts_for_work_and_workers() -> None:
    long = planned({"name": "permutation", "size_bytes": 1_000_000_000})
    short = replace(long, scenario=long.scenario.model_copy(update={"limit_ns": 100_000}))
    assert [best_workers(run, expected(run), 8) for run in (long, short)] == [8, 1]
    assert expected(short).packet_hops < expected(long).packet_hops / 800
    assert expected(short).model_ns == 100_000


def test_the_last_start_is_a_part_of_the_model_time() -> None:
    late = expected(planned({"name": "multicast", "senders": 3, "receivers": 2, "size_bytes": 1, "interval_ns": 10**6}))
    assert 2_000_000 < late.model_ns < 2_100_000


def test_what_ends_by_the_clock_is_foreseen_until_then() -> None:
    workload = {"name": "incasts", "senders": 2, "size_bytes": 1_000, "count": 1, "interval_ns": 10_000, "jitter_ns": 0}
    foreseen = expected(planned(workload, limit_ns=1_000_000))
    assert 20_000 * 12.5 / 1_100 < foreseen.data_packets < 20_000 * 12.5 / 1_000 + 3


COLLECTIVES = """
cc = "3cpo"
[topology]
name = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[workload]
name = "collectives"
[[workload.applications]]
operations = 4
"""
SMALL = """
cc = "hpcc"
workers = 2
[topology]
name = "single-switch"
hosts = 4
[workload]
name = "permutation"
size_bytes = 10_000
"""


def dry_run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    file = folder / "own.toml"
    file.write_text(text)
    done = CliRunner().invoke(cli, ["run", str(file), "--dry-run", *arguments])
    return done.exit_code, done.output + str(done.exception or "")


def test_a_dry_run_says_that_collectives_are_not_foreseen(tmp_path: Path) -> None:
    status, told = dry_run(tmp_path, COLLECTIVES)
    assert status == 0
    assert "collectives: of 4 hosts; what these take is not foreseen" in told
    assert "workers: 1; whether more would pay is not foreseen" in told


def test_collectives_beside_much_work_get_one_worker() -> None:
    """Whatever else the run has to do: shares of it would be guessed."""
    run = planned({"name": "permutation", "size_bytes": 1_000_000_000})
    much = expected(run)
    for hosts, workers in ((0, 8), (4, 1)):
        assert best_workers(run, replace(much, in_collectives=hosts), 8) == workers


@pytest.mark.parametrize(("arguments", "workers"), [((), 2), (("--workers", "3"), 3), (("--workers", "auto"), 1)])
def test_a_dry_run_tells_the_workers_of_the_run(tmp_path: Path, arguments: tuple[str, ...], workers: int) -> None:
    status, told = dry_run(tmp_path, SMALL, *arguments)
    assert status == 0
    assert f"workers: {workers}, " in told
    assert ("--workers auto gives 1," in told) == (workers > 1)


def test_a_dry_run_counts_processors_as_the_run_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(9), raising=False)
    asked: list[int] = []
    monkeypatch.setattr("harness.worlds.parallel.MOST_WORKERS", 4)
    monkeypatch.setattr("harness.worlds.parallel.best_workers", lambda run, _, most: asked.append(most) or 1)
    assert dry_run(tmp_path, SMALL)[0] == 0
    assert asked == [4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workers", "999"), "--workers 999: expected auto, or a number from 1 to 64"),
        (("--set", "memory_bytes=100000", "--set", "topology.hosts=200"), "200 hosts and 1 switches take some"),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    status, told = dry_run(tmp_path, SMALL, *arguments)
    assert status != 0
    assert words in told
