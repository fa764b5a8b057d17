"""The switch logic in Mininet, on the built-in switch and on BMv2 where it is installed: the same assertions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import bmv2
from harness.results import Result
from harness.worlds.mininet import package
from tests.e2e.runs import p4cc, run

SCENARIO = """
[topology]
name = "single-switch"
hosts = 5

[workload]
name = "incast"
size_bytes = 400_000
starts_together = 4

[switch.pfc]
enabled = false

[nic]
rto_ns = 500_000
"""


@pytest.fixture(params=["builtin", "bmv2"])
def switch(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    reason = package.missing()
    if reason is None and name == "bmv2" and shutil.which(bmv2.EXECUTABLE) is None:
        reason = f"{bmv2.EXECUTABLE} is not in PATH"
    if reason is not None:
        pytest.skip(reason)
    return name


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenario") / "four-to-one.toml"
    path.write_text(SCENARIO)
    return path


def only(scenario: Path, switch: str, cc: str) -> Result:
    (result,) = run(str(scenario), "--world", "mininet", "--switch", switch, "--cc", cc)
    return result


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc"])
def test_everything_arrives_and_is_accounted_for(scenario: Path, switch: str, cc: str) -> None:
    summary = only(scenario, switch, cc).summary
    assert summary["flows_delivered"] == 4
    assert all(check["holds"] for check in summary["checks"])
    assert summary["conservation"]["entered"] >= 2 * 4 * 400  # packets and ACKs
    assert summary["switch"] == switch


def test_a_long_queue_marks(scenario: Path, switch: str) -> None:
    """Four flows into one link: the queue is longer than DCQCN's thresholds, and receivers tell the senders."""
    summary = only(scenario, switch, "dcqcn").summary
    assert summary["ecn_marked"] > 0
    assert summary["cnps"] > 0


def test_telemetry_holds_the_senders_back(scenario: Path, switch: str) -> None:
    """HPCC's windows shrink only by what the switch writes into packets: depths, bytes and times that fit together."""
    rates = only(scenario, switch, "hpcc").rates
    windows = rates.groupby("qp")["window_bytes"]
    assert len(windows) == 4
    assert (windows.min() < 0.75 * windows.max()).all()


def test_the_report_says_what_bmv2_cannot_show(scenario: Path, switch: str, tmp_path: Path) -> None:
    result = only(scenario, switch, "dcqcn")
    done = p4cc("report", str(result.folder), "--out", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    said = "nothing about performance" in (tmp_path / "report.html").read_text()
    assert said == (switch == "bmv2")
