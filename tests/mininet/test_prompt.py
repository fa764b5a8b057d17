"""Mininet's own prompt before, during and after a run, which continues as if there had been no prompt."""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path

import pytest

from harness.errors import CheckError
from harness.measure.results import load_all
from harness.worlds.mininet.prompt import while_running
from p4cc.cli import main
from tests.e2e.runs import MAIN
from tests.mininet.networks import alone, needs_mininet

TYPED = """nodes
h0-0-2 ip -o link
py time.sleep(1)
sh ip -o link | grep -c s0-eth
exit
"""


def run(*arguments: str, typed: str) -> subprocess.CompletedProcess[str]:
    star = ["--set", "topology.hosts=4", "--set", "workload.senders=3", "--set", "workload.size_bytes=20000"]
    command = [*MAIN, "run", "incast-star", "--cc", "hpcc", "--world", "mininet", "--no-report", *star, *arguments]
    with alone():
        return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=500, check=False)


@needs_mininet
@pytest.mark.parametrize("moment", ["start", "end"])
def test_the_prompt_opens_and_the_run_is_whole(tmp_path: Path, moment: str) -> None:
    done = run("--cli", moment, "--out", str(tmp_path / "out"), typed=TYPED)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "h0-0-2 h0-0-3 h0-0-4 h0-0-5 s0" in told
    assert "h0-0-2-eth0@" in told
    assert "> 4\n" in told  # the switch's end of each link
    (result,) = load_all(tmp_path / "out")
    assert result.summary["ended"] == "done"
    assert result.summary["flows_delivered"] == 3
    assert [check["name"] for check in result.summary["checks"] if not check["holds"]] == []
    assert result.summary["end_ns"] < 1_000_000  # of model time: the second in the prompt is in none of it


@needs_mininet
def test_a_run_that_ends_at_a_limit_ends_there(tmp_path: Path) -> None:
    limit = ["--set", "limit_ns=20us", "--dilation", "10000"]
    done = run("--cli", "end", *limit, "--out", str(tmp_path / "out"), typed="py time.sleep(3)\nexit\n")
    assert done.returncode == 0, done.stderr
    (result,) = load_all(tmp_path / "out")
    assert result.summary["ended"] == "limit"
    assert result.summary["end_ns"] < 200_000


@needs_mininet
def test_the_run_goes_on_while_the_prompt_is_open_in_its_midst(tmp_path: Path) -> None:
    """Check a run at 1:100000, whose prompt sees unfinished flows."""
    sizes = ["--set", "workload.size_bytes=200000", "--dilation", "100000"]
    typed = "h0-0-3 grep eth0 /proc/net/dev\npy time.sleep(1)\nh0-0-3 grep eth0 /proc/net/dev\nexit\n"
    done = run("--cli", "10us", *sizes, "--out", str(tmp_path / "out"), typed=typed)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    begun_us = float(re.search(r"--cli: ([\d.,]+) us of model time, which goes on, 100000 times", told)[1])  # type: ignore[index]
    first, second = (int(line.split()[9]) for line in re.findall(r"h0-0-3-eth0:(.*)", told))  # frames sent
    (result,) = load_all(tmp_path / "out")
    assert 10 <= begun_us < result.summary["end_ns"] / 1e3
    assert first < second  # it sends meanwhile
    assert result.summary["flows_delivered"] == 3
    assert [check["name"] for check in result.summary["checks"] if not check["holds"]] == []


@needs_mininet
def test_a_run_that_is_over_before_the_moment_says_so(tmp_path: Path) -> None:
    done = run("--cli", "900ms", "--dilation", "1000", "--out", str(tmp_path / "out"), typed="nodes\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "us of model time, which is over" in done.stderr
    assert "h0-0-2 h0-0-3" in done.stdout + done.stderr


def test_what_ends_the_run_in_the_midst_ends_it() -> None:
    opened: list[bool] = []

    def fails() -> str:
        raise CheckError("died")

    with pytest.raises(CheckError, match="died"):
        while_running(fails, 5.0, opened.append)
    assert opened == []
    assert while_running(lambda: "done", 5.0, opened.append) == "done"
    held = threading.Event()

    def opens(over: bool) -> None:
        opened.append(over)
        held.set()

    assert while_running(lambda: str(held.wait(20)), 0.0, opens) == "True"
    assert opened == [True, False]
    with pytest.raises(KeyboardInterrupt):
        while_running(lambda: str(threading.Event().wait(0.1)), 0.0, _interrupted)


def _interrupted(over: bool) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cli", "end"], "--cli: the virtual world has no such option; expected --world mininet with it"),
        (["--world", "mininet", "--cli", "soon"], "--cli 'soon': expected a whole number of ns, or a quantity"),
        (["--world", "mininet", "--cli", "-5us"], "or start (before the first packet), or end (after the last)"),
    ],
)
def test_what_is_no_moment_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
