"""A protocol, a workload and a P4 program from a user's files, which each host's process loads."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import load_all
from tests.control_plane.test_own_program import scenario_of
from tests.control_plane.test_program_ledger import MERGING, PARAMETERS
from tests.harness.plan.test_extensions import AIMD, WORKLOAD
from tests.mininet.networks import alone, needs_mininet, p4cc, run_on

pytestmark = needs_mininet
SCENARIO = """
cc = "aimd.py"
[topology]
name = "single-switch"
hosts = 3
[workload]
name = "ring.py"
"""


def test_files_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "aimd.py").write_text(AIMD.replace("NAME", "aimd"))
    (tmp_path / "ring.py").write_text(WORKLOAD)
    (tmp_path / "sizes.py").write_text("SMALL = 10_000\n")
    (tmp_path / "own.toml").write_text(SCENARIO)
    with alone():
        told = p4cc("run", str(tmp_path / "own.toml"), "--world", "mininet", "--out", str(tmp_path / "out"))
    assert f"protocol 'aimd' of {tmp_path / 'aimd.py'} runs interpreted on the compiled hosts" in told
    (result,) = load_all(tmp_path / "out")
    assert result.summary["protocol"] == "aimd"
    assert result.summary["flows_delivered"] == 3


def test_a_p4_program_of_the_users_own_and_what_it_says_of_packets(tmp_path: Path) -> None:
    """The class beside it is loaded, its entries are written, and the ledger names its absorbed and made packets."""
    (tmp_path / "merging.p4").write_text(MERGING)
    (tmp_path / "merging.py").write_text(PARAMETERS)
    scenario = scenario_of(tmp_path, "merging.p4", "[nic]\nrto_ns = 100_000_000\n")
    with alone():
        p4cc("run", scenario, "--world", "mininet", "--set", "workload.size_bytes=4000", "--out", str(tmp_path / "out"))
    (result,) = load_all(tmp_path / "out")
    summary = result.summary
    assert (summary["program"], summary["flows_delivered"]) == ("merging", 2)
    ledger = summary["conservation"]
    assert (ledger["absorbed_ack"], ledger["made_merged_ack"]) == (8, 4)
    assert ledger["absorbed_mirrored"] == ledger["cloned"] >= 16
    assert sum(packets for term, packets in ledger.items() if term.startswith("drop_")) == ledger["balance"] == 0
    state = result.table("program_state")
    assert state[state["object"] == "absorbed"]["value"].tolist() == [8]


def test_a_tna_program_of_the_users_own_marks_and_forwards(tmp_path: Path) -> None:
    """Its ports are the front panel's, and each mark of the switches reached a receiver."""
    scenario = Path(__file__).parents[2] / "examples" / "tofino" / "incast.toml"
    result = run_on("builtin", str(scenario), "--set", "workload.size_bytes=200000", out=tmp_path / "out")
    state = result.table("program_state")
    assert state[state["object"] == "marked"]["value"].sum() == result.summary["ecn_marked"] > 0

