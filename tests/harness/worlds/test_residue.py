"""State of flows in switches, which has to be removed when the flows end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.measure.recording import Recording
from harness.measure.summary import residue_check
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld

DOWN = [{"time_ns": t, "link": ["s0", "h0-0-4"], "up": up} for t, up in ((30_000, False), (45_000, True))]
REGISTERS = ("sum_e_of", "num_b_of", "interval_of")


def run(cc: str = "sperc", start_ns: int = 0, **more: Any) -> Recording:
    flows = [
        {"name": "long", "source": 0, "destination": 2, "start_ns": start_ns, "stop_ns": 60_000},
        {"name": "short", "source": 1, "destination": 2, "start_ns": 20_000, "size_bytes": 500},
    ]
    tables = {
        "cc": cc,
        "topology": {"name": "single-switch", "hosts": 3, "link_rate_bps": 10e9, "link_delay_ns": 500},
        "workload": {"name": "streams", "flows": flows},
        **more,
    }
    return VirtualWorld(plan("x", check(tables), Path())[0]).run()


@pytest.mark.parametrize("cc", ["sperc", "sperc+1rc", "sperc+1rc+weights"])
def test_nothing_is_left_though_the_last_control_packets_leave_after_the_flows_ends(cc: str) -> None:
    recording = run(cc)
    assert recording.ended == "done"
    assert recording.residue == {}
    assert residue_check(REGISTERS, recording.residue, False)["holds"]


def test_a_lost_control_packet_leaves_its_flow_behind() -> None:
    """The switch counts the flow at its start; the next link is down, so no packet removes it."""
    recording = run(start_ns=32_000, events=DOWN, nic={"rto_ns": 50_000})
    assert recording.ended == "done"
    assert recording.residue is not None
    assert recording.residue["num_b_of of s0"] >= 1 << 19
    assert residue_check(REGISTERS, recording.residue, True)["holds"]
    failed = residue_check(REGISTERS, recording.residue, False)
    assert not failed["holds"]
    assert "num_b_of of s0" in failed["detail"]


def test_a_flow_whose_links_have_answered_leaves_nothing_behind_though_a_control_packet_is_lost() -> None:
    recording = run(events=DOWN, nic={"rto_ns": 50_000})
    assert recording.ended == "done"
    assert recording.residue == {}


def test_a_run_that_ends_before_its_flows_is_not_looked_at() -> None:
    recording = run(limit_ns=40_000)
    assert recording.residue is None
    assert residue_check(REGISTERS, None, False)["holds"]


def test_programs_that_count_no_flows_have_no_such_check() -> None:
    assert run("none").residue == {}
