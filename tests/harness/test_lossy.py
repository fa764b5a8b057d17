"""Selective repeat over links that lose packets and ACKs, in the virtual world."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld


@pytest.mark.parametrize("cc", ["none", "hpcc", "dcqcn"])
@pytest.mark.parametrize(("rate_bps", "loss"), [(400e9, 1e-3), (400e9, 1e-4), (10e9, 1e-3)])
def test_no_more_is_sent_again_than_was_lost(cc: str, rate_bps: float, loss: float) -> None:
    """Whole windows after a missing packet are in flight: at 400 Gb/s some hundred packets."""
    scenario = {
        "cc": cc,
        "topology": {"name": "fat-tree", "k": 4, "link_rate_bps": rate_bps},
        "workload": {
            "name": "streams",
            "flows": [{"name": "one", "source": 0, "destination": 15, "size_bytes": 5_000_000}],
        },
        "nic": {"reliability": "selective-repeat"},
        "switch": {"loss": loss},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }
    (run,) = plan("lossy", check(scenario), Path())
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    (flow,) = recording.flows
    lost = recording.conservation["drop_lost_in"] + recording.conservation["drop_lost_out"]
    assert lost > 0
    assert flow.columns["retransmitted"] <= 1.2 * lost
