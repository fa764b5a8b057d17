"""A network from a file can be run, kept with its results, drawn and converted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.measure import results
from harness.plan.how import How
from harness.plan.portable import PortableRun
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check, load
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from tests.p4cc.commands.test_commands import call

NS3 = "5 1 4\n1\n0 1 25Gbps 1000ns 0\n1 2 100Gbps 1us 0\n3 1 100Gbps 1us 0\n4 1 100Gbps 1us 0\n"
FLOWS = "2\n3 0 3 100 30000 0.0\n2 4 3 100 20000 0.000002\n"
SCENARIO = """
cc = "hpcc"
limit_ns = "1 ms"
[topology]
name = "ns3"
file = "nets/fat.txt"
[workload]
name = "ns3"
file = "flows.txt"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "fat.txt").write_text(NS3)
    (tmp_path / "flows.txt").write_text(FLOWS)
    (tmp_path / "my.toml").write_text(SCENARIO)
    return tmp_path / "my.toml"


def planned(scenario: Path, *settings: str) -> Run:
    checked, folder = load(str(scenario), settings)
    return plan("my", checked, folder)[0]


def test_files_are_relative_to_the_scenario_and_flows_have_the_files_numbers(scenario: Path) -> None:
    run = planned(scenario)
    names = [host.name for host in run.topology.hosts]
    assert [(names[f.source], names[f.destination]) for f in run.traffic().flows] == [("h3", "h0"), ("h2", "h4")]
    (scenario.parent / "nets" / "all.txt").write_text(NS3.replace("5 1 4\n1\n", "6 1 5\n1\n") + "5 1 100Gbps 1us 0\n")
    again = PortableRun.of(run).run()  # as another process plans it
    assert again.topology.links == run.topology.links
    by_index = planned(scenario, "workload.first_host=0", "topology.file=nets/all.txt")
    assert [flow.source for flow in by_index.traffic().flows] == [3, 2]


def test_a_flow_of_a_switch_is_a_mistake_with_its_line(scenario: Path) -> None:
    scenario.with_name("flows.txt").write_text(FLOWS.replace("2 4", "1 4"))
    with pytest.raises(UserError, match=r"flows.txt:3: node 1 is not a host of topology 'ns3'"):
        planned(scenario)


def test_results_have_the_network_and_read_no_file_that_they_name(scenario: Path, tmp_path: Path) -> None:
    run = planned(scenario)
    recording = VirtualWorld(run).run()
    folder = tmp_path / "out"
    results.write(folder, results.files(run, recording, How(), {}))
    shutil.rmtree(tmp_path / "nets")
    (result,) = results.load_all(folder)
    assert result.topology.name == "ns3"
    assert result.topology.links == run.topology.links
    assert [host.name for host in result.topology.hosts] == [host.name for host in run.topology.hosts]


def test_show_and_convert(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = scenario.parent
    status, out, _ = call(capsys, "topology", "show", str(scenario), "--out", str(folder / "net.svg"))
    assert status == 0
    assert "ns3: 4 hosts, 1 switches (1 of tier 0)" in out
    assert "1 link hosts - tier 0: 25 Gb/s, 1 us" in out
    assert "3 links hosts - tier 0: 100 Gb/s, 1 us" in out
    assert (folder / "net.svg").read_bytes().startswith(b"<?xml")
    for name in ("links.toml", "links.csv"):
        status, out, _ = call(capsys, "topology", "convert", str(folder / "nets" / "fat.txt"), str(folder / name))
        assert (status, "4 links" in out) == (0, True)
        made = plan("x", check({"topology": {"name": "edges", "file": name}, "workload": {"name": "incast"}}), folder)
        assert made[0].topology.links == planned(scenario).topology.links
        status, out, _ = call(capsys, "topology", "show", str(folder / name), "--out", str(folder / "again.svg"))
        assert (status, "edges: 4 hosts" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "incast", "--out", "x.gif"), "expected a name that ends in .svg, .pdf, .png"),
        (("show", "fat-tre"), "no topology 'fat-tre'; did you mean 'fat-tree'?"),
        (("show", "none.txt"), "none.txt: No such file"),
        (("convert", "incast", "links.txt"), "links.txt: expected a name that ends in .toml or .csv"),
        (("show", "fat-tree", "--set", "k=3"), "topology.k: should be even"),
        (("show", "neither.toml"), "neither.toml: expected a scenario with a [topology], or a list of links"),
    ],
)
def test_mistakes(
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "neither.toml").write_text("cc = 'none'")
    status, _, err = call(capsys, "topology", *arguments)
    assert status == 2
    assert message in err


def test_a_large_network_is_drawn_with_one_mark_for_the_hosts_of_a_switch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "net.svg"
    assert call(capsys, "topology", "show", "fat-tree", "--set", "k=12", "--out", str(out))[0] == 0
    assert out.stat().st_size < 1_000_000
