"""A wrong request: one line on stderr that names the thing and what was expected, status 2, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4cc.cli import main
from p4switch.registry import forget
from tests.e2e.runs import forked


def probe(table: str) -> list[str]:
    return ["run", "incast", "--set", f"record.probes=[{{{table}}}]"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "incast", "--cc", "hpc"], ["hpc", "did you mean", "hpcc"]),
        (["run", "incast", "--cc", "hpcc+fast"], ["fast", "hpcc"]),
        (["run", "incast", "--lb", "spray9"], ["spray9", "did you mean", "spray"]),
        (["run", "incats"], ["incats", "incast"]),
        (["run", "missing.toml"], ["missing.toml"]),
        (["run", "incast", "--set", "topology.k=5"], ["topology.k", "even", "5"]),
        (["run", "incast", "--set", "topology.link_rate_bps=0"], ["topology.link_rate_bps", "greater than 0"]),
        (["run", "incast", "--set", "topolgy.k=4"], ["topolgy", "topology"]),
        (["run", "incast", "--set", "switch.buffr_bytes=1"], ["switch.buffr_bytes", "buffer_bytes"]),
        (["run", "incast", "--set", "switch.buffer_bytes=1000"], ["switch.buffer_bytes", "headroom"]),
        (["run", "incast", "--cc", "dcqcn", "--set", "program=int"], ["'int'", "dcqcn", "'ecn'"]),
        (["run", "incast", "--cc", "hpcc", "--set", "topology.link_rate_bps=7e9"], ["7 Gb/s", "expected"]),
        (["run", "incast", "--dry-run", "--set", "topology.link_rate_bps=7e9", "--cc", "dcqcn", "--cc", "hpcc"], ["7"]),
        (["run", "incast", "--set", "switch.cell_bytes=0"], ["switch.cell_bytes", "1", "0"]),
        (["run", "incast", "--set", "protocols.hpcc.eta=0"], ["hpcc", "eta", "greater than 0"]),
        (["run", "incast", "--cc", "hpcc", "--set", "protocols.dcqcn.gian=1"], ["dcqcn", "gian", "gain"]),
        (["run", "incast", "--cc", "hpcc", "--set", "protocols.dcqn.gain=1"], ["dcqn", "dcqcn"]),
        (["run", "incast", "--cc", "hpcc", "--set", "programs.ecn.kmin_bytes=-5"], ["programs.ecn.kmin_bytes", "-5"]),
        (["run", "incast", "--set", "load_balancers.spray.entropies=0"], ["spray", "entropies", "1"]),
        (probe("kind='register', reads='seen', name='x'"), ["'x'", "register 'seen'"]),
        (
            probe("kind='reaction_point', reads='alfa', name='x', interval_ns=9"),
            ["'x'", "'dcqcn'", "'alfa'", "'alpha'"],
        ),
        (probe("kind='queue', name='rates'"), ["'rates'", "another name"]),
        (["run", "incast", "--program", "nowhere.p4"], ["no P4 program", "nowhere.p4"]),
        (["run", "incast", "--set", "switch.load_balancing=dril"], ["'dril'", "'drill'", ".p4"]),
        (["run", "incast", "--set", "switch.load_balancing=no.p4"], ["switch.load_balancing", "no.p4"]),
        (["run", "incast", "--world", "moon"], ["moon", "virtual"]),
        (["run", "incast", "--dilation", "2"], ["--dilation", "--world mininet"]),
        (["run", "incast", "--switch", "bmv2"], ["--switch", "--world mininet"]),
        (["run", "incast", "--trace", "15"], ["--trace 15", "15 flows", "0 to 14"]),
        (["run", "incast", "--set", "nic.rto_ns=2e12"], ["nic.rto_ns", "1099511627776"]),
        (["run", "incast", "--set", "nic.rto_base_rtts=inf"], ["nic.rto_base_rtts", "finite"]),
        (["run", "incast", "--set", "nic.rto_base_rtts=1e300"], ["nic.rto_base_rtts", "1000000000"]),
        (["run", "incast", "--set", f"nic.loss_packets={10**21}"], ["nic.loss_packets", "1048576"]),
        (["run", "incast", "--set", "switch.pfc.headroom_delays=inf"], ["switch.pfc.headroom_delays", "finite"]),
        (["run", "incast", "--set", "switch.alpha=2e6"], ["switch.alpha", "1000000"]),
        (["run", "incast", "--set", "switch.pfc.alpha=inf"], ["switch.pfc.alpha", "finite"]),
        (["run", "incast", "--cc", "dcqcn", "--set", "topology.link_rate_bps=1"], ["base RTT", "links are too slow"]),
        (["run", "permutation", "--set", f"workload.parallel={10**30}"], ["workload.parallel", "2000000"]),
        (["run", "hadoop", "--set", "workload.duration_ns=2e18"], ["workload.duration_ns", "2000000"]),
        (["run", "hadoop", "--set", "workload.distribution=/dev/zero.txt"], ["/dev/zero.txt"]),
        (["run", "incast", "--set", f"x={'[' * 100_000}"], ["x: no such key"]),
        (["run", "incast", "--set", f"{'.'.join('a' * 1000)}=1"], ["--set", "KEY=VALUE"]),
        (["run", "\udcff.toml"], ["\\udcff.toml", "can be printed"]),
        (["run", "incast", "--out", "\udcff"], ["\\udcff", "can be printed"]),
        (["run", "incast", "--out", "x" * 300], ["File name too long"]),
        (["run"], ["SCENARIO"]),
        (["run", "incast", "--seed", "x"], ["seed", "x"]),
        (["rnu", "incast"], ["rnu", "run"]),
        (["list", "things"], ["things", "scenarios"]),
        (["report", "nowhere"], ["nowhere", "expected"]),
        (["compile", "nowhere.p4", "-o", "out.json"], ["nowhere.p4"]),
        (["stf", "nowhere.stf"], ["nowhere.stf"]),
    ],
)
def test_wrong_requests(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: list[str],
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    folder = tmp_path / "runs.toml"
    folder.mkdir()
    with pytest.raises(SystemExit):
        main(["run", str(folder)])
    assert f"scenario {str(folder)!r}: expected a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["run", "dry-run"])
def test_a_mistake_in_one_of_several_scenarios_names_its_file(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    Path("empty.toml").write_text("")
    Path("broken.toml").write_text("= 3")
    for name, mistake in (("empty.toml", "topology: missing"), ("broken.toml", "not a TOML file")):
        with pytest.raises(SystemExit) as ended:
            main(["run", "incast-star", name, *(["--dry-run"] if kind == "dry-run" else [])])
        assert ended.value.code == 2
        assert capsys.readouterr().err.startswith(f"p4cc: error: {name}: {mistake}")


OWN_WORKLOAD = """
from p4cc.workloads import Flow, Traffic, WorkloadParameters, register
@register("mine")
class Mine(WorkloadParameters):
    def generate(self, setting):
        return Traffic([Flow(0, 1, 1000, 0)])
"""
OWN_PROGRAM = """
from p4cc.programs import Action, Exact, ProgramParameters, TableEntry, register
@register("mine")
class Mine(ProgramParameters):
    def entries(self, switch):
        return [TableEntry("ports", {"port": Exact(1)}, Action("note"))]
"""


OWN_FIGURE = """
from p4cc.figures import Figure, register


@register("queue")
class Mine(Figure):
    def caption(self, comparison):
        return "mine"

    def draw(self, axes, variants):
        pass
"""


@pytest.mark.parametrize(
    ("files", "arguments", "words"),
    [
        ({}, ["--cc", "./mine.py:mine"], ["mine.py", "no Python file"]),
        ({}, ["--set", "workload.name=mine.py"], ["mine.py", "no Python file"]),
        ({"mine.py": "x = 1\n"}, ["--cc", "mine.py"], ["mine.py", "registers no protocol"]),
        (
            {"mine.py": "from p4cc.workloads import register\n@register('mine')\nclass Mine:\n    pass\n"},
            ["--set", "workload.name=mine.py"],
            ["mine.py", "class Mine should derive from WorkloadParameters"],
        ),
        (
            {"mine.py": OWN_WORKLOAD.replace('"mine"', '"incast"')},
            ["--set", "workload.name=mine.py"],
            ["workload 'incast' is registered twice", "mine.py"],
        ),
        (
            {"mine.py": OWN_WORKLOAD, "other.py": OWN_WORKLOAD},
            ["--set", "workload.name=mine.py", "--set", "extensions=['other.py']"],
            ["workload 'mine' is registered twice", "mine.py", "other.py"],
        ),
        (
            {"mine.py": OWN_FIGURE},
            ["--set", "extensions=['mine.py']"],
            ["figure 'queue' is registered twice", "mine.py", "p4cc itself"],
        ),
        (
            {"mine.py": OWN_PROGRAM, "mine.p4": '#include "ecn.p4"\n'},
            ["--program", "mine.p4"],
            ["the program has no table 'ports'", "ipv4_lpm"],
        ),
    ],
)
def test_wrong_files_of_ones_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, str],
    arguments: list[str],
    words: list[str],
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["run", "incast", *arguments])
    finally:
        for name in files:
            forget(str(tmp_path / name))
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert all(word in lines[0] for word in words), lines
    assert {path.name for path in tmp_path.iterdir()} <= {*files, "__pycache__"}


@pytest.mark.parametrize("arguments", [["run", "incast"], ["sweep", "smartt-near"]])
def test_without_a_c_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    from p4switch import native

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.chdir(tmp_path)
    native.compiler.cache_clear()
    try:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
    finally:
        native.compiler.cache_clear()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("no C compiler found (cc, gcc or clang); on Debian and Ubuntu: apt-get install gcc libc6-dev")
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_exists(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = forked("run", "incast", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "'out' exists" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_program_with_errors_is_shown_with_place_and_caret(tmp_path: Path) -> None:
    (tmp_path / "bad.p4").write_text("#include <core.p4>\n#include <v1model.p4>\nheader h { bit<8> a }\n")
    done = forked("compile", "bad.p4", "-o", "out.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.p4:3:" in done.stderr
    assert "error:" in done.stderr
    assert "^" in done.stderr
    assert not (tmp_path / "out.json").exists()
