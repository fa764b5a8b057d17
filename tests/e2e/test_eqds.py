"""EQDS with congestion inside the network: as each flow has one path, two may share a link."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.runs import run

TWO_FLOWS = """
cc = "eqds"
lb = "ecmp"

[topology]
name = "dumbbell"
pairs = 2

[workload]
name = "streams"
flows = [
    { name = "a", source = 0, destination = 2, size_bytes = 2_000_000 },
    { name = "b", source = 1, destination = 3, size_bytes = 2_000_000 },
]
"""
PACKET_BYTES, HEADER_BYTES = 1058, 64


def test_two_flows_on_one_link_get_half_each(tmp_path: Path) -> None:
    """Their receivers do not know of each other. Both draw at line rate, so half of the packets are trimmed."""
    path = tmp_path / "two-flows.toml"
    path.write_text(TWO_FLOWS)
    (result,) = run(str(path))
    assert result.summary["timeouts"] == 0
    assert all(check["holds"] for check in result.summary["checks"])
    both_ns = 2 * 2000 * (PACKET_BYTES + HEADER_BYTES) * 0.08  # a packet and a header in turn
    late_ns = result.flows["delivered_ns"] - both_ns
    assert late_ns.between(0, result.summary["base_rtt_ns"]).all()  # the first packets' way, and the last request's
    shares = result.rates.groupby("time_ns")["throughput_bps"].agg(["min", "sum"])
    busy = shares[(shares.index > 100_000) & (shares.index < 340_000)]
    assert (busy["min"] / busy["sum"]).mean() > 0.45


def test_a_permutation_over_one_path_each_takes_as_long_as_its_busiest_link() -> None:
    """Check k = 8, where up to four flows share a link and three of four packets are headers."""
    settings = ("--set", "workload.size_bytes=300000", "--set", "programs.trim.queue_bytes=1000000")
    results = run("permutation", "--cc", "eqds", "--cc", "smartt", "--lb", "ecmp", *settings)
    eqds, smartt = (result.summary for result in results)
    assert (eqds["timeouts"], eqds["ended"], smartt["retransmitted"]) == (0, "done", 0)
    assert eqds["bytes_delivered"] == 128 * 300_000
    overhead = 3 * HEADER_BYTES / PACKET_BYTES
    assert eqds["last_delivery_ns"] < (1.1 + overhead) * smartt["last_delivery_ns"]
