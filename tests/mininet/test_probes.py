"""Probes in both worlds: counts are equal, and samples agree."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import Result, load_all
from tests.mininet.conftest import Both
from tests.mininet.margins import expected
from tests.mininet.networks import alone, needs_mininet, p4cc

SCENARIO = """
title = "3 to 1 incast with probes"
cc = ["dcqcn"]
[topology]
name = "single-switch"
hosts = 4
link_rate_bps = 10e9
[workload]
name = "incast"
senders = 3
size_bytes = 200_000
[record]
probes = [
    { kind = "counter", reads = "ecn_marked", name = "marked" },
    { kind = "counter", reads = "ecn_marked", name = "marks", interval_ns = 100_000 },
    { kind = "reaction_point", reads = "alpha", name = "alpha", interval_ns = 20_000 },
    { kind = "queue", reads = "tx_packets", name = "sent", leads_to = "h0-0-2" },
    { kind = "queue", name = "waiting", interval_ns = 5_000, leads_to = "h0-0-2" },
]
"""


@needs_mininet
def test_nics_that_check_the_icrc_take_all_that_switches_send(tmp_path: Path) -> None:
    """Check real frames with data, marks and telemetry through the switch process."""
    options = ("--set", "nic.check_icrc=true", "--set", "topology.hosts=3", "--set", "workload.senders=2")
    size = ("--set", "workload.size_bytes=20000")
    with alone():
        both = ("--world", "mininet", "--no-report", "--cc", "dcqcn", "--cc", "hpcc")
        p4cc("run", "incast-star", *both, *options, *size, "--out", str(tmp_path / "out"))
    results = load_all(tmp_path / "out")
    assert len(results) == 2
    for result in results:
        assert result.summary["ended"] == "done"
        assert result.summary["nic"]["malformed"] == 0


def mean_alpha(result: Result) -> float:
    return float(result.table("alpha")["alpha"].mean())


@needs_mininet
def test_probes_in_both_worlds(both: Both, tmp_path: Path) -> None:
    file = tmp_path / "probed.toml"
    file.write_text(SCENARIO)
    ((virtual,), (mininet,)) = both(str(file))
    for result in (virtual, mininet):
        assert result.table("marked")["packets"].sum() == result.summary["ecn_marked"] > 0
        # Before a run in Mininet every host sends a frame to every other.
        others = 3 if result is mininet else 0
        assert result.table("sent")["tx_packets"].sum() == result.summary["packets_sent"] + others
        marks = result.table("marks")
        assert marks["packets"].is_monotonic_increasing
        assert len(marks) >= 3
        alpha = result.table("alpha")
        assert alpha["alpha"].between(0, 1).all()
        assert alpha["host"].nunique() == 3
        queues = result.queues.query("leads_to == 'h0-0-2' and time_ns % 5000 == 0")
        assert result.table("waiting")["depth_bytes"].tolist() == queues["depth_bytes"].tolist()
    assert mininet.table("alpha")["time_ns"].unique().tolist()[:3] == [20_000, 40_000, 60_000]
    low, high = expected([str(file)], mininet, mean_alpha)
    assert low <= mean_alpha(mininet) <= high
