"""Networks whose switches have several programs, for several architectures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from harness.measure.results import Result
from tests.e2e.runs import forked, run
from tests.e2e.test_chips import EXAMPLE, PSA, PSA_ENTRIES, TWIN

TOR = '[[switches]]\ntier = "tor"\nprogram = "{}"\n'
SPINE = '[[switches]]\nnames = ["spine*"]\nprogram = "{}"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the example's TNA program, its v1model twin, and a PSA program that forwards."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "twin.p4").write_text(TWIN)
    (tmp_path / "route.p4").write_text(PSA.replace("dst_addr: exact", "dst_addr: lpm"))
    lpm = "Lpm(int(route.prefix.network_address), route.prefix.prefixlen)"
    entries = PSA_ENTRIES.replace("Exact(int(route.prefix.network_address))", lpm).replace("Exact", "Lpm")
    (tmp_path / "route.py").write_text(entries)
    return tmp_path


def result(folder: Path, switches: str, *options: str) -> Result:
    """Run the incast of 1 MB with these entries of `switches`; each pair of hosts has one path."""
    scenario = (folder / "incast.toml").read_text() + switches
    file = folder / f"mixed{len(list(folder.glob('mixed*')))}.toml"
    file.write_text(scenario)
    (found,) = run(str(file), "--set", "topology.spines=1", *options)
    return found


def marks(of: Result) -> dict[str, int]:
    state = of.table("program_state").query("object == 'marked'")
    return dict(state.groupby("switch", observed=True)["value"].sum())


def test_switches_of_each_architecture_are_as_in_a_network_of_their_own(folder: Path) -> None:
    """The queue is at the receiver's leaf. Both programs mark alike there, and spines do not mark."""
    alone = result(folder, "")
    tna_leaves = result(folder, SPINE.format("twin.p4"))
    v1model_leaves = result(folder, TOR.format("twin.p4"))
    psa_spine = result(folder, SPINE.format("route.p4"))
    assert alone.summary["program"] == "step"
    assert [each.summary["program"] for each in (tna_leaves, v1model_leaves, psa_spine)] == [
        "step, twin", "step, twin", "step, route"
    ]  # fmt: skip
    for other in (tna_leaves, v1model_leaves, psa_spine):
        pd.testing.assert_frame_equal(other.flows, alone.flows)
        assert marks(other) == marks(alone)
        assert other.summary["conservation"]["balance"] == 0
    assert set(marks(alone)) == {"leaf0"}


def test_packets_are_marked_where_a_program_marks(folder: Path) -> None:
    without = result(folder, TOR.format("route.p4"))
    assert without.summary["program"] == "step, route"
    assert without.summary["ecn_marked"] == 0
    assert "marked" not in without.table("program_state")["object"].tolist()


def test_workers_share_a_run_of_several_programs(folder: Path) -> None:
    one, two = (result(folder, SPINE.format("twin.p4"), "--workers", str(count)) for count in (1, 2))
    for table in ("flows", "queues", "program_state"):
        pd.testing.assert_frame_equal(one.table(table), two.table(table))
    names = {"scenario": "", "title": ""}
    assert one.summary | names == two.summary | names


def test_a_trace_and_coverage_have_each_switchs_own_program(folder: Path) -> None:
    (folder / "mixed.toml").write_text((folder / "incast.toml").read_text() + SPINE.format("twin.p4"))
    out = folder / "out"
    done = forked(
        "run", str(folder / "mixed.toml"), "--no-report", "--out", str(out), "--set", "workload.size_bytes=2000",
        "--trace", "7", "--trace-packets", "1", "--coverage",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trace,) = out.rglob("trace.jsonl")
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    files: dict[str, set[str]] = {}
    for event in events:
        if event.get("place"):
            files.setdefault(event["node"], set()).add(Path(event["place"]["file"]).name)
    assert files["leaf0"] == files["leaf1"] == {"step.p4"}
    (spine,) = (files[node] for node in files if node.startswith("spine"))
    assert "twin.p4" in spine
    assert "step.p4" not in spine
    (coverage,) = out.rglob("coverage.json")
    reached = {Path(point[0]).name for point in json.loads(coverage.read_text()) if point[-1]}
    assert reached >= {"step.p4", "twin.p4"}


def test_a_reroute_writes_each_switchs_own_entries(folder: Path) -> None:
    """The other spine carries all flows after the first one has failed, with another program."""
    scenario = (folder / "incast.toml").read_text().replace("senders = 8", "senders = 15")
    events = 'events = [{ time_ns = 0, switch = "spine1", up = false }]\nreroute_after_ns = 0\n'
    spine = '[[switches]]\nnames = ["spine0"]\nprogram = "twin.p4"\n'
    (folder / "mixed.toml").write_text(events + scenario + spine)
    (found,) = run(str(folder / "mixed.toml"), "--set", "workload.size_bytes=20000")
    assert (found.flows["completed_ns"] >= 0).all()
    carried = found.table("links").groupby("node", observed=True)["tx_bytes"].sum()
    assert carried["spine0"] > 7 * 20_000
    assert carried.get("spine1", 0) == 0
