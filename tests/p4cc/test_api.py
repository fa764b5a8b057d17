"""The public package: its page runs unchanged, and each mistake gives one line."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import p4cc

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
PORT_COUNTER = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<112> rest; }
header ipv4_t { bit<128> rest; bit<32> dst; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}

counter(8, CounterType.packets_and_bytes) seen;
register<bit<32>>(1) last_port;

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
control None(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) { standard.egress_spec = port; }
    table routes {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { forward; NoAction; }
        default_action = NoAction();
    }
    apply {
        routes.apply();
        assert(standard.egress_spec != 7);
        seen.count((bit<32>)standard.egress_spec);
        last_port.write(0, (bit<32>)standard.egress_spec);
    }
}
control Rest(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(Parse(), None(), Route(), Rest(), None(), Deparse()) main;
"""
FRAME = bytes(30) + bytes([10, 0, 0, 3])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("P4CC_NATIVE", "0")
    (tmp_path / "port_counter.p4").write_text(PORT_COUNTER)
    return tmp_path


def test_the_page_runs_as_it_stands(folder: Path) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "python-api.md", "exec"), names)
    assert {"fct.svg", "report.html", "kept", "port_counter.json"} <= {path.name for path in folder.iterdir()}


COMMAND_LINE = {"bench", "cli", "commands", "execution", "reference"}  # internal, as the package's docstring says


def test_every_module_that_is_public_has_what_it_names() -> None:
    modules = {found.name for found in pkgutil.iter_modules(p4cc.__path__) if not found.name.startswith("_")}
    modules -= COMMAND_LINE
    for name in ("p4cc", *(f"p4cc.{module}" for module in sorted(modules) if module != "mininet")):
        module = importlib.import_module(name)
        assert module.__doc__
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(getattr(module, public) is not None for public in module.__all__)


def test_a_protocol_between_two_nics() -> None:
    """Run the lines of the module's docstring."""
    module = importlib.import_module("p4cc.testing")
    lines = re.findall(r"^    (\S.*)$", module.__doc__ or "", re.MULTILINE)
    assert len(lines) == 5
    exec("\n".join(lines), {name: getattr(module, name) for name in module.__all__})


def test_a_sweep(folder: Path) -> None:
    """Each combination is a row, with the axes as columns. It is kept where requested, and can be read again."""
    tables = {"scenario": "incast-star", "axes": {"workload": {"size_bytes": [1000, 4000]}}}
    small = {"topology.hosts": 3, "workload.senders": 2, "cc": ["dctcp"]}
    results = p4cc.sweep(tables, set=small, out="swept", jobs=1)
    table = results.table()
    assert table["workload.size_bytes"].tolist() == [1000, 4000]
    assert table["flows_delivered"].tolist() == [2, 2]
    assert table["fct_mean_ns"].is_monotonic_increasing
    assert [run.summary["bytes_delivered"] for run in p4cc.load("swept")] == [2000, 8000]
    with pytest.raises(p4cc.UserError, match=r"workload\.size_byte"):
        p4cc.sweep({**tables, "axes": {"workload": {"size_byte": [1]}}}, out="other")
    assert not (folder / "other").exists()


def test_runs_are_selected_and_keep_the_order_of_the_scenario(folder: Path) -> None:
    star = {
        "cc": ["hpcc", "dcqcn"],
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "incast", "size_bytes": 5_000},
    }
    results = p4cc.run(star, seeds=[2, 1, 10], out="kept")
    order = [("hpcc", 2), ("hpcc", 1), ("hpcc", 10), ("dcqcn", 2), ("dcqcn", 1), ("dcqcn", 10)]
    for found in (results, p4cc.load("kept")):
        assert [(run.cc, run.seed) for run in found] == order
    assert [run.seed for run in results["hpcc"]] == [2, 1, 10]
    assert results["dcqcn"].table()["seed"].tolist() == [2, 1, 10]
    assert results.one(cc="hpcc", seed=10).name == "scenario-hpcc-seed10"
    assert [run.cc for run in results.select(seed=1)] == ["hpcc", "dcqcn"]
    results["dcqcn"].select(seed=10).save("ten")
    assert [run.name for run in p4cc.load("ten")] == ["scenario-dcqcn-seed10"]
    (folder / "kept" / "runs.json").unlink()  # as of an earlier version, or of folders that were put together by hand
    assert [run.seed for run in p4cc.load("kept")["hpcc"]] == [1, 2, 10]
    with pytest.raises(p4cc.UserError, match=r"^results: no run has cc = 'hpc'; expected one of scenario-hpcc-seed2"):
        results["hpc"]
    with pytest.raises(p4cc.UserError, match=r"^results: runs have no 'seeds'; did you mean 'seed'\?$"):
        results.one(seeds=1)
    with pytest.raises(p4cc.UserError, match=r"^results: 3 runs have cc = 'hpcc'; expected values that one of "):
        results.one(cc="hpcc")


def test_a_selection_outlives_what_it_was_selected_from(folder: Path) -> None:
    star = {"topology": {"name": "single-switch", "hosts": 3}, "workload": {"name": "incast", "size_bytes": 5_000}}
    chosen = p4cc.run(star, cc=["dcqcn", "hpcc"])["hpcc"]
    assert len(chosen.flows) == 2


def test_importing_it_imports_nothing_of_the_hosts() -> None:
    code = "import sys, p4cc; sys.exit(any(name.startswith(('host_agents', 'pandas')) for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0


def test_a_program_asserts(folder: Path) -> None:
    from p4cc.programs import Action, DefaultAction

    switch = p4cc.Switch(folder / "port_counter.p4", [DefaultAction("routes", Action("forward", {"port": 6}))])
    assert switch.send(FRAME, port=1) == [(6, FRAME)]
    switch.write(DefaultAction("routes", Action("forward", {"port": 7})))
    with pytest.raises(p4cc.CheckError, match=r"port_counter\.p4"):
        switch.send(FRAME, port=1)
    switch.write(DefaultAction("routes", Action("forward", {"port": 5})))
    assert switch.send(FRAME, port=1) == [(5, FRAME)]


def test_mistakes_are_one_line(folder: Path) -> None:
    from p4cc.programs import Action, TableEntry

    switch = p4cc.Switch("port_counter.p4")
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: p4cc.run("incats"), "incats"),
        (lambda: p4cc.run("incast", cc="none.py"), "no Python file"),
        (lambda: p4cc.run("incast", set={"topology.k": 5}), "topology.k"),
        (lambda: p4cc.run("incast", switch="bmv2"), "switch: the virtual world has no such option"),
        (lambda: p4cc.run("incast", world="moon"), "expected one of virtual, mininet"),  # type: ignore[arg-type]
        (lambda: p4cc.sweep({"scenario": "incast", "axes": {"cc": "hpcc"}}), "axes.cc"),
        (lambda: p4cc.load("nowhere"), "nowhere"),
        (lambda: p4cc.compile("none.p4"), "none.p4"),
        (lambda: p4cc.Switch("ecnn"), "ecnn"),
        (lambda: switch.register("none"), "no register 'none'"),
        (lambda: switch.set_register("last_port", 1, 0), "last_port"),
        (lambda: switch.set_register("last_port", 0, 1 << 32), "last_port"),
        (lambda: switch.set_register("last_port", 0, -1), "last_port"),
        (lambda: switch.write(TableEntry("none", {}, Action("forward"))), "none"),
        (lambda: p4cc.topology("fat-tree", k=3), "topology.k"),
        (lambda: p4cc.Network(p4cc.topology("single-switch"), "ecnn"), "ecnn"),
    ]
    for request, words in wrong:
        with pytest.raises(p4cc.UserError, match=re.escape(words)) as error:
            request()
        assert "\n" not in str(error.value)


def test_links_that_are_not_held_to_their_rates_are_a_warning() -> None:
    with pytest.warns(UserWarning, match="'single-switch': 3 of 3 links have more than 1 Gb/s: their rates"):
        p4cc.Network(p4cc.topology("single-switch", hosts=3), "ecn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p4cc.Network(p4cc.topology("single-switch", hosts=3, link_rate_bps=1_000_000_000), "ecn")


def test_what_was_not_done_is_a_warning_or_an_error(folder: Path) -> None:
    short = {
        "topology": {"name": "single-switch", "hosts": 3},
        "workload": {"name": "incast"},
        "cc": "none",
        "limit_ns": 1000,
    }
    with pytest.warns(UserWarning, match="0 of 2 flows done"):
        results = p4cc.run(short)
    assert results[0].unfinished is not None
    with pytest.raises(p4cc.CheckError, match="0 of 2 flows done"):
        p4cc.run(short, strict=True, out="kept")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert p4cc.load("kept")[0].summary["flows_delivered"] == 0
