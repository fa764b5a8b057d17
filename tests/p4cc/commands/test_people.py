"""Habits of users that the command line supports."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from harness.measure.recording import Recording
from harness.plan import resolve, scenario
from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4cc.cli import cli
from p4cc.execution import progress as run_progress
from p4cc.execution.execute import execute
from p4cc.execution.make_world import MakeWorld
from p4cc.execution.progress import RunProgress
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import ScenarioSelection, SweepSelection
from p4switch.errors import UserError, validate

SMALL: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 3, "link_rate_bps": "100 Gb/s"},
    "workload": {"name": "incast", "size_bytes": "20 kB"},
    "cc": ["dcqcn", "none"],
}
FILE = """
cc = ["dcqcn", "none"]
[topology]
name = "single-switch"
hosts = 3
link_rate_bps = "100 Gb/s"
[workload]
name = "incast"
size_bytes = "20 kB"
"""


def p4cc(*arguments: str) -> tuple[int, str, BaseException | None]:
    done = CliRunner().invoke(cli, arguments)
    return done.exit_code, done.output, done.exception


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a small scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)
    return tmp_path


def carry_out(out: str, make: MakeWorld, reuse: tuple[Path, ...] = (), *settings: str) -> None:
    execute(RunRequest(ScenarioSelection(["small.toml"], settings), out=Path(out), reuse=reuse), make=make)


def test_a_scenario_has_quantities_with_units() -> None:
    (run, _) = resolve.plan("small", scenario.check(SMALL), Path())
    assert run.topology.links[0].rate_bps == 100_000_000_000
    assert {flow.size_bytes for flow in run.traffic().flows} == {20_000}


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        validate(scenario.Scenario, {"workload": {}, "nic": {"mtu": 1, "rto_ns": "x"}, "lbb": 3}, "")
    for key in ("topology: missing", "nic.mtu: no such key; did you mean 'mtu_bytes'", "nic.rto_ns", "lbb: no such"):
        assert key in str(caught.value)
    assert "more)" not in str(caught.value)
    assert "\n" not in str(caught.value)


BAD = """
cc = ["dcqnc", "hpcc+vaj"]
lb = "sprai"
limit_ns = "1 h"
progam = "ecn"
[topology]
name = "fat-tree"
kk = 4
link_rate_bps = "100 GB"
[workload]
name = "incest"
[switch]
bufer_bytes = 3
[protocols.hpcc]
etta = 3
max_stage = -1
[programs.ecn]
kmin = 3
"""


def test_mistakes_of_all_kinds_are_told_at_once(small: Path) -> None:
    (small / "bad.toml").write_text(BAD)
    _, _, error = p4cc("run", "bad.toml", "--dry-run")
    assert isinstance(error, UserError)
    for told in (
        "limit_ns: no unit 'h' here",
        "topology.link_rate_bps: no unit 'GB' here",
        "switch.bufer_bytes: no such key; did you mean 'buffer_bytes'?",
        "progam: no such key; did you mean 'program'?",
        "topology.kk: no such key; did you mean 'k'?",
        "no workload 'incest'; did you mean 'incast'?",
        "no protocol 'dcqnc'; did you mean 'dcqcn'?",
        "protocol 'hpcc' has no mechanism 'vaj'; did you mean 'vai'?",
        "hpcc has no parameter 'etta'; did you mean 'eta'?",
        "hpcc: parameter max_stage: input should be greater than or equal to 0",
        "no load balancer 'sprai'; did you mean 'spray'?",
        "programs.ecn.kmin: no such key; did you mean 'kmin_bytes'?",
    ):
        assert told in str(error)
    assert len(str(error).split("; ")) == 12 + 11  # each once, and what was expected


@pytest.mark.parametrize(("key", "name", "near"), [("cc", "dcqnc", "dcqcn"), ("lb", "sprai", "spray")])
def test_a_misspelt_protocol_has_a_suggestion(key: str, name: str, near: str) -> None:
    with pytest.raises(UserError, match=f"did you mean '{near}'"):
        resolve.plan("small", scenario.check({**SMALL, key: name}), Path())


def test_a_dry_run_tells_the_plan_and_runs_nothing(small: Path) -> None:
    settings = ("--set", "topology.link_rate_bps=100", "--set", "limit_ns=1e13")
    sparse = ("--set", "record.queue_interval_ns=1e9")  # samples of hours in less than the memory that is free
    status, told, _ = p4cc("run", "small.toml", "--dry-run", *settings, *sparse)
    assert status == 0
    network = "small-dcqcn-seed1", "3 hosts, 1 switch\n", "3 at 100 b/s\n", "base RTT", "BDP: "
    words = *network, "2 flows, 0.04 MB, 40 packets", "CPU"
    assert all(word in told for word in words), told
    assert "'100 Gb/s' was probably meant" in told
    assert [path.name for path in small.iterdir()] == ["small.toml"]


class _Interrupted:
    """A world in which a user presses Ctrl-C."""

    def __init__(self, run: Run) -> None:
        self.name = run.label

    def run(self, progress: object = None) -> Recording:
        raise KeyboardInterrupt


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def second(run: Run) -> Any:
        return VirtualWorld(run) if run.protocol.name == "dcqcn" else _Interrupted(run)

    with pytest.raises(KeyboardInterrupt):
        carry_out("out", second)
    assert (small / "out" / "report.html").is_file()
    assert [path.name for path in (small / "out").glob("*/summary.json")] == ["summary.json"]
    assert "1 of 2 runs are kept; to make the others: " in capsys.readouterr().err

    made: list[str] = []

    def rest(run: Run) -> VirtualWorld:
        made.append(run.protocol.name)
        return VirtualWorld(run)

    carry_out("whole", rest, (Path("out"),))
    assert made == ["none"]
    assert len(list((small / "whole").glob("*/summary.json"))) == 2
    carry_out("other", rest, (Path("whole"),), "seeds=2")  # another scenario: nothing of it is there
    assert made == ["none", "dcqcn", "none"]

    same = shutil.copytree(small / "whole", small / "copy")
    assert p4cc("diff", "whole", "copy")[0] == 0
    summary = next(same.glob("*/summary.json"))
    changed = {**json.loads(summary.read_text()), "packets_sent": 1}
    summary.write_text(json.dumps(changed))
    status, told, _ = p4cc("diff", "whole", "copy")
    assert status == 1
    assert "packets_sent: 40 and 1 (-97.50%)" in told
    status, told, _ = p4cc("diff", "whole", "other")
    assert status == 1
    assert "only in whole" in told
    # Two of a sweep that differ in an axis alone: each is compared with its own.
    for folder, place in itertools.product(("one", "two"), ("000-a", "001-b")):
        shutil.copytree(next((small / "whole").glob("*dcqcn*/")), small / folder / place)
    summary = small / "two" / "000-a" / "summary.json"
    summary.write_text(json.dumps({**json.loads(summary.read_text()), "packets_sent": 1}))
    status, told, _ = p4cc("diff", "one", "two")
    assert status == 1
    assert "(000-a): differs" in told
    assert "(001-b): the same" in told


def test_ctrl_c_before_anything_is_done_leaves_nothing(small: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        carry_out("out", lambda run: _Interrupted(run))  # type: ignore[arg-type, return-value]
    assert not (small / "out").exists()


def test_init_writes_a_scenario_that_can_be_planned(small: Path) -> None:
    assert p4cc("init", "mine.toml")[0] == 0
    checked, folder = scenario.load("mine.toml")
    assert len(resolve.plan("mine", checked, folder)) == 6
    assert isinstance(p4cc("init", "mine.toml")[2], UserError)  # it is not written over


@pytest.mark.parametrize(
    ("shell", "file"), [("bash", ".local/share/bash-completion/completions/p4cc"), ("zsh", ".zfunc/_p4cc")]
)
def test_completion_is_installed_by_one_command(
    small: Path, monkeypatch: pytest.MonkeyPatch, shell: str, file: str
) -> None:
    monkeypatch.setenv("HOME", str(small))
    assert p4cc("completion", shell, "--install")[0] == 0
    assert "_P4CC_COMPLETE" in (small / file).read_text()


def test_progress_tells_what_is_done_and_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = iter([100.0, 100.0, *[120.0] * 9])
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    with RunProgress(2) as progress:
        progress.begin("one")
        progress.update(0.25, 0, 4, 5000)
    told = capsys.readouterr().err
    assert "0 of 4 done, 5 µs of model time, 25%, about 60 s left (all runs: 12%, about 2 min left)" in told


def test_a_trace_that_is_written_for_long_says_how_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = iter([100.0, 100.0, *[200.0] * 3, *[220.0] * 9])
    monkeypatch.setattr(run_progress, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    with RunProgress(1) as progress:
        progress.begin("one")
        progress.writing(0)
        progress.writing(0.25)
    assert "one: writing the trace, 25%, about 60 s left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ccs", "parameter", "own"),
    [
        (["rccc+nscc"], "nscc.most_window_bdp=1", 'nscc are in protocols."rccc+nscc".nscc'),
        (["hpcc+vai"], "hpcc.eta=0.9", 'hpcc are in protocols."hpcc+vai"\n'),
        (["rccc+nscc", "nscc"], "nscc.most_window_bdp=1", None),  # has an effect on the other run
        (["rccc+nscc"], "swift.additive_increase_bps=1e9", None),
    ],
)
def test_parameters_of_a_part_that_does_not_run_alone_are_warned_of(
    small: Path, ccs: list[str], parameter: str, own: str | None
) -> None:
    chosen = [argument for cc in ccs for argument in ("--cc", cc)]
    status, told, error = p4cc("run", "small.toml", *chosen, "--set", f"protocols.{parameter}", "--dry-run")
    assert (status, error) == (0, None)
    assert ("has no effect" in told) == (own is not None)
    assert own is None or own in told


def test_a_rate_that_is_hardly_meant_is_told_where_it_is_a_mistake_and_in_sweeps(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, error = p4cc("run", "small.toml", "--cc", "hpcc", "--set", "topology.link_rate_bps=100", "--dry-run")
    assert "link rate 1e-07 Gb/s has no code" in str(error)
    assert "'100 Gb/s' was probably meant" in str(error)
    (small / "sweep.toml").write_text('scenario = "small.toml"\n[axes]\nseeds = [1, 2]\n')

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("p4cc.execution.execute.known", stop)
    with pytest.raises(KeyboardInterrupt):
        execute(RunRequest(SweepSelection("sweep.toml", ["topology.link_rate_bps=900000"]), where=2))
    assert capsys.readouterr().err.count("'900 Mb/s' was probably meant") == 1
