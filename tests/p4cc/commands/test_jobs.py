"""Several runs at the same time write the files of runs in sequence; an early end keeps finished runs."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DeadWorkerError
from harness.plan.how import How, Tracing
from harness.plan.portable import PortableRun
from p4cc.execution import pool, runners
from p4cc.execution.batch import planned
from p4cc.execution.make_world import maker
from p4cc.execution.pool import Cluster
from p4switch.errors import UserError
from tests.p4cc.commands.test_commands import call

SCENARIO = """
cc = ["dcqcn", "none"]
[topology]
name = "single-switch"
hosts = 3
[workload]
name = "incast"
size_bytes = 20_000
"""
ALL = ("--pcap", "--trace", "1", "--coverage")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    """Return digests of all files that do not depend on the processes of runs."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    kept = [file for file in files if file.name not in ("performance.json", "provenance.json")]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in kept}


def test_jobs_write_what_one_after_the_other_writes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ("run", "small.toml", "--seed", "1", "--seed", "2", "--no-report", *ALL)
    for out, more in (("one", ()), ("jobs", ("--jobs", "2"))):
        status, told, err = call(capsys, *run, "--out", out, *more)
        assert status == 0, err
        assert re.fullmatch(rf"4 runs in [\d,.]+ s: {out}", told.splitlines()[-1])
        assert [line[:6] for line in err.splitlines()] == ["[1/4] ", "[2/4] ", "[3/4] ", "[4/4] "]
    one = digests(folder / "one")
    assert {"hosts.pcapng", "trace.txt", "trace.jsonl", "coverage.json"} <= {Path(name).name for name in one}
    assert len(one) > 4 * 10
    assert digests(folder / "jobs") == one


def test_a_cluster_sends_the_same_files_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def there(
        work: Callable[[Any], Any], items: Sequence[Any], where: object, names: Sequence[str]
    ) -> Iterator[tuple[int, Any]]:
        assert isinstance(where, Cluster)
        assert names == ["small-dcqcn-seed1", "small-none-seed1"]
        for i in reversed(range(len(items))):
            yield i, work(items[i])

    monkeypatch.setattr(pool, "distribute", there)
    how = How(pcap=True, trace=Tracing(1), coverage=True)
    runs = planned(["small.toml"], [], {})
    for out in ("one", "cluster"):
        (folder / out).mkdir()
    own = [(run, folder / "one" / run.label, lambda: None) for run in runs]
    assert len(list(runners.one_by_one(own, maker(how), how))) == 2
    portable = [(PortableRun.of(run), folder / "cluster" / run.label) for run in runs]
    assert [i for i, _ in runners.at_once(portable, how, Cluster("tls://nowhere:1"))] == [1, 0]
    assert digests(folder / "cluster") == digests(folder / "one")


@pytest.mark.parametrize("end", [KeyboardInterrupt(), DeadWorkerError("process 7 was ended"), UserError("no room")])
def test_what_is_done_is_kept_whatever_ends_the_others(
    end: BaseException, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_one_first(
        work: Callable[[Any], Any], items: Sequence[Any], where: object, names: Sequence[str]
    ) -> Iterator[tuple[int, Any]]:
        yield len(items) - 1, work(items[-1])
        if len(items) > 1:
            items[0][1].mkdir()  # it has begun
            raise end

    monkeypatch.setattr(pool, "distribute", last_one_first)
    monkeypatch.setattr(sys, "argv", ["p4cc", "run", "small.toml", "--jobs", "2", "--no-report", "--out", "out"])
    status, _, told = call(capsys, *sys.argv[1:])
    assert status == (2 if isinstance(end, UserError) else 1)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["runs.json", "small-none-seed1"]
    (line,) = (line for line in told.splitlines() if "runs are kept" in line)
    assert line.startswith("1 of 2 runs are kept; to make the others: p4cc run ")
    _, *arguments = shlex.split(line.partition("others: ")[2])
    status, out, told = call(capsys, *arguments)
    assert status == 0, told
    assert [line[:6] for line in told.splitlines()] == ["[1/2] ", "[2/2] "]
    assert "small-none-seed1: taken from out/" in told.splitlines()[0]
    whole = folder / out.partition(": ")[2].strip()
    assert sorted(path.name for path in whole.iterdir()) == ["runs.json", "small-dcqcn-seed1", "small-none-seed1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "2", "--workers", "2"], "--workers 2: with --jobs 2 each run is one process's; expected"),
        (["--jobs", "2", "--workers", "auto"], "--workers auto: with --jobs 2 each run is one process's"),
        (["--jobs", "2", "--world", "mininet"], "--jobs 2: a machine has one Mininet network at a time; expected"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler tcp://127.0.0.1:1: expected tls://HOST:PORT"),
        (["--tls-key", "no.pem"], "--tls-key: expected --scheduler with it"),
    ],
)
def test_what_does_not_go_together_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    for more in ([], ["--dry-run"]):
        status, _, err = call(capsys, "run", "small.toml", *options, *more)
        assert (status, len(err.splitlines())) == (2, 1)
        assert err.startswith(f"p4cc: error: {message}")
        assert [path.name for path in folder.iterdir()] == ["small.toml"]


def test_a_dry_run_tells_what_all_runs_take(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, told, _ = call(capsys, "run", "small.toml", "--dry-run", "--jobs", "2")
    assert status == 0
    last = told.splitlines()[-1]
    assert last.startswith("all 2 runs: some 2")
    assert "2 at a time some 1" in last


def test_a_dry_run_of_a_sweep_tells_a_row_for_each_run_and_writes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check that it also refuses an input that the sweep would refuse."""
    file = folder / "sizes.toml"
    file.write_text('scenario = "small.toml"\n[axes]\ntopology.hosts = [3, 30]\nworkload.size_bytes = [20_000, 2e9]\n')
    status, told, _ = call(capsys, "sweep", "sizes.toml", "--dry-run", "--jobs", "2", "--set", "cc=dcqcn")
    assert status == 0
    heads, *rows, last = told.splitlines()
    assert heads.split()[:4] == ["run", "network", "base", "RTT"]
    assert "operations" not in heads  # of collectives, of which there are none
    found = [row.partition("seed 1 ")[2].split() for row in rows]
    assert [(row[:2], row[7:9]) for row in found] == [
        (["single-switch,", hosts], sent)
        for hosts, sent in (
            ("3", ["2", "0.04"]),
            ("3", ["2", "4,000.0"]),
            ("30", ["29", "0.6"]),
            ("30", ["29", "58,000.0"]),
        )
    ]
    assert last.startswith("all 4 runs: some ")
    assert " s of CPU; 2 at a time some " in last
    file.write_text('scenario = "small.toml"\n[axes]\ntopology.hosts = [3, 2]\nworkload.senders = [2]\n')
    status, told, err = call(capsys, "sweep", "sizes.toml", "--dry-run")
    assert (status, told, len(err.splitlines())) == (2, "", 1)
    assert "workload.senders: needs 3 hosts" in err
    assert {path.name for path in folder.iterdir()} == {"small.toml", "sizes.toml"}
