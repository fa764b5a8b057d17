"""A user's own protocols, load balancers, workloads and topologies, from any file or from a package."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import topologies
from harness import workloads
from harness.measure import results
from harness.plan import scenario
from harness.plan.resolve import plan, resolved
from harness.worlds.virtual import VirtualWorld
from host_agents import registry
from p4cc.cli import main
from p4cc.execution import sweep
from p4cc.execution.batch import planned
from p4switch import extensions
from p4switch.errors import UserError
from p4switch.registry import forget
from tests.e2e.runs import p4cc

AIMD = """
from dataclasses import dataclass

from host_agents.cc.base import NotificationPoint, ReactionPoint
from host_agents.registry import MechanismInfo, ProtocolInfo, register


@dataclass(frozen=True)
class Parameters:
    increase_bps: float = 1e9


@dataclass(frozen=True)
class Soft:
    share: float = 0.9


class Aimd(ReactionPoint):
    def __init__(self, parameters, mechanisms, path):
        super().__init__(path)
        self.increase_bps = parameters.increase_bps
        self.left = mechanisms["soft"].share if mechanisms else 0.5

    def on_ack(self, feedback):
        rate_bps = self.rate_bps * self.left if feedback.marked else self.rate_bps + self.increase_bps
        self.set_rate(min(max(rate_bps, 1e8), self.path.line_rate_bps))


register(MechanismInfo("soft", "cuts less", "a test", Soft))
register(
    ProtocolInfo(
        name="NAME",
        summary="a test",
        source="a test",
        program="ecn",
        parameters=Parameters,
        reaction_point=lambda parameters, mechanisms, path: Aimd(parameters, mechanisms, path),
        notification_point=lambda parameters, path: NotificationPoint(path),
        mechanisms=("soft",),
    )
)
"""
LB = """
from dataclasses import dataclass

from host_agents.lb.base import LoadBalancer
from host_agents.registry import LoadBalancerInfo, register


@dataclass(frozen=True)
class Parameters:
    entropy: int = 7


class Fixed(LoadBalancer):
    def __init__(self, entropy):
        self.entropy = entropy

    def next_entropy(self, now_ns):
        return self.entropy


register(LoadBalancerInfo("fixed", "one entropy", "a test", Parameters, lambda p, seed, path: Fixed(p.entropy)))
"""
WORKLOAD = """
import sizes
from harness.workloads.base import Flow, Traffic, WorkloadParameters, register


@register("ring")
class Ring(WorkloadParameters):
    size_bytes: int = sizes.SMALL

    def generate(self, setting):
        return Traffic([Flow(i, (i + 1) % setting.hosts, self.size_bytes, 0) for i in range(setting.hosts)])
"""
TOPOLOGY = """
from topologies.model import Builder
from topologies.registry import TopologyParameters, register


@register("pair")
class Pair(TopologyParameters):
    def build(self):
        builder = Builder("pair")
        switch = builder.switch("s0", 0)
        for i in (2, 3):
            builder.host(f"10.0.0.{i}", switch, self.link_rate_bps, self.link_delay_ns)
        return builder.build(self.model_dump())
"""
FIGURE = """
from p4cc.figures import Figure, register


@register("sent")
class Sent(Figure):
    def caption(self, comparison):
        return "All that was sent"

    def draw(self, axes, variants):
        for variant in variants:
            axes.plot(variant.results[0].flows["packets_sent"], label=variant.name)
"""
SCENARIO = """
cc = ["./own/aimd.py:aimd+soft", "none"]
lb = "own/lb.py"
[topology]
name = "own/net.py:pair"
[workload]
name = "own/ring.py"
[protocols."aimd+soft"]
increase_bps = 2e9
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder with one file of each kind; their names are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("P4CC_NATIVE", "0")
    before, modules = set(extensions._loaded), set(sys.modules)
    own = tmp_path / "own"
    own.mkdir()
    (own / "aimd.py").write_text(AIMD.replace("NAME", "aimd"))
    (own / "lb.py").write_text(LB)
    (own / "ring.py").write_text(WORKLOAD)
    (own / "sizes.py").write_text("SMALL = 10_000\n")
    (own / "net.py").write_text(TOPOLOGY)
    (tmp_path / "own.toml").write_text(SCENARIO)
    yield tmp_path
    for file in set(extensions._loaded) - before:
        forget(str(file))
        del extensions._loaded[file]
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_scenario_names_files_relative_to_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    checked, where = scenario.load(str(folder / "own.toml"))
    own, other = plan("own", checked, where)
    assert (own.protocol.name, own.load_balancing.name, other.protocol.name) == ("aimd+soft", "fixed", "none")
    assert own.label == "own-aimd+soft-fixed-seed1"
    assert own.protocol.resolved() == {"increase_bps": 2e9, "soft": {"share": 0.9}}
    assert own.topology.name == "pair"
    assert [flow.size_bytes for flow in own.traffic().flows] == [10_000, 10_000]
    files = [str(folder / "own" / name) for name in ("aimd.py", "lb.py", "net.py", "ring.py")]
    assert sorted(own.scenario.extensions) == files


def test_the_resolved_scenario_can_be_run_again_from_anywhere(folder: Path) -> None:
    run = plan("own", *scenario.load(str(folder / "own.toml")))[0]
    again = plan("again", scenario.check(scenario.parse(scenario.dump(resolved(run)))), Path("/"))[0]
    assert (again.protocol.name, again.protocol.resolved()) == (run.protocol.name, run.protocol.resolved())
    assert resolved(again) == resolved(run)


def test_in_a_process_of_its_own(folder: Path) -> None:
    """Check also that the command line's paths are relative to the working directory."""
    environment = {**os.environ, "P4CC_NATIVE": "0"}
    done = p4cc(
        "run",
        "../own.toml",
        "--cc",
        "aimd.py",
        "--lb",
        "./lb.py:fixed",
        "--out",
        "out",
        cwd=folder / "own",
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    (result,) = results.load_all(folder / "own" / "out")
    assert (result.summary["protocol"], result.summary["load_balancer"]) == ("aimd", "fixed")
    assert result.summary["flows_delivered"] == 2


def test_a_report_of_what_stood_on_files(folder: Path) -> None:
    """Check that a report has the files' figures, and names the figures whose file no longer exists."""
    (folder / "own" / "figure.py").write_text(FIGURE)
    (folder / "own.toml").write_text('extensions = ["own/aimd.py", "own/figure.py"]\n' + SCENARIO)
    environment = {**os.environ, "P4CC_NATIVE": "0"}
    run = plan("own", *scenario.load(str(folder / "own.toml"), ["cc=none", "lb=ecmp"]))[0]
    (folder / "out").mkdir()
    results.write(folder / "out" / run.label, results.files(run, VirtualWorld(run).run()))
    done = p4cc("report", "out", "--out", "one.html", cwd=folder, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "All that was sent" in (folder / "one.html").read_text()
    (folder / "own" / "figure.py").unlink()
    done = p4cc("report", "out", "--out", "two.html", cwd=folder, env=environment)
    assert done.returncode == 0
    assert done.stderr == f"warning: figures left out: no Python file {str(folder / 'own' / 'figure.py')!r}\n"
    assert "All that was sent" not in (folder / "two.html").read_text()


def test_on_workers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sweep.toml").write_text('scenario = "own.toml"\n[axes]\ncc = ["own/aimd.py"]\n')
    monkeypatch.chdir(folder)
    assert main_status(["sweep", "sweep.toml", "--jobs", "1", "--out", "out"]) == 0
    (result,) = results.load_all(folder / "out")
    assert (result.summary["protocol"], result.summary["flows_delivered"]) == ("aimd", 2)


def test_a_sweep_sends_names_and_absolute_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "sweep.toml").write_text(
        'scenario = "../own.toml"\n[axes]\ncc = ["../own/aimd.py", "none"]\nworkload.size_bytes = [1000, 2000]\n'
    )
    monkeypatch.chdir(folder)
    points = sweep.points(*sweep.load("sub/sweep.toml"))
    assert [point.values["cc"] for point in points] == ["aimd", "aimd", "none", "none"]
    assert {point.portable.tables["cc"][0] for point in points} == {"aimd", "none"}
    for file in [Path(file) for file in points[0].portable.tables["extensions"]]:
        forget(str(file))  # as in another process
        del extensions._loaded[file]
    monkeypatch.chdir("/")
    assert points[0].run().protocol.name == "aimd"


def test_what_a_sweep_sets_for_all_runs_is_relative_to_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "sweep.toml").write_text(
        'scenario = "../own.toml"\n[axes]\nseeds = [1, 2]\n[set]\ncc = "../own/aimd.py"\n'
    )
    monkeypatch.chdir("/")
    points = sweep.points(*sweep.load(str(folder / "sub" / "sweep.toml")))
    assert [point.run().protocol.name for point in points] == ["aimd", "aimd"]


def test_a_file_that_has_changed_is_loaded_anew(folder: Path) -> None:
    file = folder / "own" / "aimd.py"
    extensions.load(file)
    assert registry.resolve("aimd").resolved() == {"increase_bps": 1e9}
    file.write_text(file.read_text().replace("1e9", "3e9"))
    extensions.load(file)
    assert registry.resolve("aimd").resolved() == {"increase_bps": 3e9}


def test_files_of_one_name_in_two_folders(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "aimd.py").write_text(AIMD.replace("NAME", "other").replace('"soft"', '"softer"'))
    (folder / "other" / "json.py").write_text(AIMD.replace("NAME", "third").replace('"soft"', '"softest"'))
    for file in ("own/aimd.py", "other/aimd.py", "other/json.py"):
        extensions.load(folder / file)
    assert {"aimd", "other", "third"} <= set(registry.protocols())
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("file", "text", "wanted", "words"),
    [
        ("none.py", None, "none.py", ["no Python file", "none.py"]),
        ("twice.py", AIMD.replace("NAME", "dcqcn"), "twice.py", ["registered", "'dcqcn'", "twice.py", "p4cc itself"]),
        ("two.py", AIMD.replace("NAME", "one") + AIMD.replace("NAME", "two"), "two.py", ["two.py:NAME", "one, two"]),
        ("one.py", AIMD.replace("NAME", "one"), "one.py:own", ["one.py", "no protocol 'own'", "one"]),
        ("one.py", AIMD.replace("NAME", "one"), "one.py:one+fast", ["'one'", "no mechanism 'fast'", "soft"]),
        ("nothing.py", "x = 1\n", "nothing.py", ["nothing.py", "registers no protocol"]),
        ("broken.py", "x = 1\n1 / 0\n", "broken.py", ["broken.py:2", "ZeroDivisionError: division by zero"]),
        ("broken.py", "x = (1\n", "broken.py", ["broken.py:1", "'(' was never closed"]),
        ("ends.py", "raise SystemExit(3)\n", "ends.py", ["ends.py:1", "SystemExit: 3"]),
        ("what.py", "from host_agents.registry import register\nregister(3)\n", "what.py", ["what.py", "got 3"]),
        (
            "one.py",
            AIMD.replace("NAME", "one").replace("float = 1e9", "float"),
            "one.py",
            ["one.py", "increase_bps", "default"],
        ),
        (
            "one.py",
            AIMD.replace("NAME", "one").replace("mechanisms, path: Aimd", "path: Aimd"),
            "one.py",
            ["protocol 'one' of", "one.py does not fit", "takes 2 positional arguments but 3 were given"],
        ),
        ("one.py", AIMD.replace("NAME", "one").replace("Aimd(ReactionPoint)", "Aimd"), "one.py", ["does not fit"]),
    ],
)
def test_mistakes_are_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str | None,
    wanted: str,
    words: list[str],
) -> None:
    if text is not None:
        (folder / file).write_text(text)
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        main(["run", "incast-star", "--cc", wanted])
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            WORKLOAD.replace("WorkloadParameters, register", "register").replace("(WorkloadParameters)", ""),
            "derive from",
        ),
        (WORKLOAD.replace("def generate", "def generates"), "should have generate"),
    ],
)
def test_a_workload_that_does_not_fit(folder: Path, text: str, words: str) -> None:
    (folder / "own" / "ring.py").write_text(text)
    checked, where = scenario.load(str(folder / "own.toml"))
    with pytest.raises(UserError, match=words) as error:
        plan("own", checked, where)
    assert "\n" not in str(error.value)
    assert "ring" not in workloads.names()


DISTRIBUTION = {
    "entry_points.txt": "[p4cc.cc]\nlinear = a_package.protocol\n[p4cc.topologies]\npair = a_package.net\n",
    "METADATA": "Metadata-Version: 2.1\nName: a-package\nVersion: 1.0\n",
}


@pytest.fixture
def package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an installed package with a protocol and a topology."""
    site = folder / "site"
    (site / "a_package").mkdir(parents=True)
    (site / "a_package" / "__init__.py").touch()
    (site / "a_package" / "protocol.py").write_text(AIMD.replace("NAME", "linear").replace('"soft"', '"linear-soft"'))
    (site / "a_package" / "net.py").write_text(TOPOLOGY)
    (site / "a_package-1.0.dist-info").mkdir()
    for name, text in DISTRIBUTION.items():
        (site / "a_package-1.0.dist-info" / name).write_text(text)
    monkeypatch.syspath_prepend(site)
    return site


def test_an_installed_package_registers_its_own(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert registry.resolve("linear").info.name == "linear"
        assert "pair" in topologies.names()
        assert main_status(["list"]) == 0
        listed = capsys.readouterr().out
        assert "  linear" in listed
        assert "  pair" in listed
        assert registry.outside(["linear", "dcqcn"], ["ecmp"]) == [("cc", "linear")]
    finally:
        for name in ("protocol", "net"):
            forget(str(package / "a_package" / f"{name}.py"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("", "registers no protocol of that name"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError"),
    ],
)
def test_an_installed_package_that_is_broken(
    package: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (package / "a_package" / "protocol.py").write_text(text)
    assert main_status(["list", "cc"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "entry point 'linear' in group 'p4cc.cc' of package 'a-package'" in line
    assert words in line


def main_status(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("key", ["cc", "lb", "topology.name", "workload.name"])
def test_a_file_that_is_not_there_is_told_alone(key: str) -> None:
    with pytest.raises(UserError, match=r"^no Python file '[^;]*none\.py'$"):
        planned(["incast"], [f"{key}=./none.py"], {})
