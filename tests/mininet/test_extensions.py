"""A protocol and a workload from files of the user's own: each host's process loads them itself."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import load_all
from tests.harness.plan.test_extensions import AIMD, WORKLOAD
from tests.mininet.networks import alone, needs_mininet, p4cc

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
