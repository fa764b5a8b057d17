"""The switch logic in Mininet on the built-in switch and, if it is installed, on BMv2, with the same assertions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.measure.results import Result, load_all
from tests.mininet.networks import alone, needs_mininet, p4cc

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


pytestmark = needs_mininet
Runs = Callable[[str], Result]


@pytest.fixture
def runs(switch: str, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Runs:
    """Return the run of a protocol on one of the switches, made once in a test session by the process that needs it."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def run(cc: str) -> Result:
        scenario, out = shared / f"four-to-one-{switch}.toml", shared / f"four-to-one-{switch}-{cc}"
        with alone():
            if not out.exists():
                scenario.write_text(SCENARIO)
                options = ("--world", "mininet", "--no-report", "--switch", switch, "--cc", cc)
                p4cc("run", str(scenario), *options, "--out", str(out))
        (result,) = load_all(out)
        assert result.summary["switch"] == switch
        return result

    return run


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc"])
def test_everything_arrives_and_is_accounted_for(runs: Runs, cc: str) -> None:
    summary = runs(cc).summary
    assert summary["flows_delivered"] == 4
    assert all(check["holds"] for check in summary["checks"])
    assert summary["conservation"]["entered"] >= 2 * 4 * 400  # packets and ACKs


def test_a_long_queue_marks(runs: Runs) -> None:
    """Four flows share a link: the queue exceeds DCQCN's thresholds, and receivers notify the senders."""
    summary = runs("dcqcn").summary
    assert summary["ecn_marked"] > 0
    assert summary["cnps"] > 0


def test_telemetry_holds_the_senders_back(runs: Runs) -> None:
    """HPCC's windows shrink only through consistent depths, bytes and times that the switch writes into packets."""
    rates = runs("hpcc").rates
    windows = rates.groupby("qp")["window_bytes"]
    assert len(windows) == 4
    assert (windows.min() < 0.75 * windows.max()).all()


def test_the_report_says_what_bmv2_cannot_show(runs: Runs, tmp_path: Path) -> None:
    result = runs("dcqcn")
    p4cc("report", str(result.folder), "--out", str(tmp_path / "report.html"))
    said = "nothing about performance" in (tmp_path / "report.html").read_text()
    assert said == (result.summary["switch"] == "bmv2")
