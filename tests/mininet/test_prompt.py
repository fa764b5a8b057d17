"""Mininet's own prompt before and after a run, which goes on as if there had been none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.cli import main
from harness.measure.results import load_all
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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cli", "end"], "--cli: the virtual world has no such thing; expected --world mininet with it"),
        (["--world", "mininet", "--cli", "20us"], "--cli 20us: switches and hosts keep to the wall clock, which does"),
    ],
)
def test_other_moments_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
