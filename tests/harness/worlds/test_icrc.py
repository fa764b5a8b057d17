"""Complete frames through complete switches: with `check_icrc`, the ICRC is valid on arrival."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld


@pytest.mark.parametrize("cc", ["dcqcn", "eqds", "hpcc"])
def test_switches_leave_the_icrc_whole(cc: str) -> None:
    """Switches change only fields that the ICRC excludes, or packets that a NIC does not check."""
    tables = {
        "cc": cc,
        "topology": {"name": "single-switch", "hosts": 5},
        "workload": {"name": "incast", "senders": 4, "size_bytes": 60_000},
        "nic": {"check_icrc": True},
    }
    (run,) = plan("x", check(tables), Path())
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    assert recording.nic_totals["malformed"] == 0
