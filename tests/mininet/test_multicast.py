"""Multicast in Mininet: one host sends to all others of a k = 4 fat-tree, and each gets every byte once."""

from __future__ import annotations

from pathlib import Path

from harness.measure.results import load_all
from tests.mininet.networks import alone, needs_mininet, p4cc

SCENARIO = """
[topology]
name = "fat-tree"
k = 4

[workload]
name = "multicast"
size_bytes = 100_000

[nic]
ack_every_packets = 16
"""
PACKETS, MEMBERS = 100, 15

pytestmark = needs_mininet


def test_every_member_has_all_of_it_and_every_copy_is_accounted_for(tmp_path: Path) -> None:
    scenario = tmp_path / "to-all.toml"
    scenario.write_text(SCENARIO)
    with alone():
        p4cc("run", str(scenario), "--world", "mininet", "--no-report", "--cc", "dcqcn", "--out", str(tmp_path / "out"))
    (result,) = load_all(tmp_path / "out")
    (flow,) = result.flows.to_dict("records")
    assert (flow["packets_sent"], flow["retransmitted"]) == (PACKETS, 0)
    assert 0 < flow["delivered_ns"] <= flow["completed_ns"]
    ledger = result.summary["conservation"]
    acks = ledger["entered"] - PACKETS
    assert ledger["copied"] == PACKETS * (MEMBERS - 1)
    assert ledger["delivered"] == PACKETS * MEMBERS + acks  # each packet once at each member
    assert acks >= MEMBERS
    assert ledger["balance"] == 0
    assert sum(value for name, value in ledger.items() if name.startswith("drop_")) == 0
    assert result.summary["nic"]["misdelivered"] == result.summary["nic"]["unknown_qp"] == 0
