"""`switch.ingress_bytes`: the limit of an input port, with pauses or with drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.measure.recording import Recording
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

LIMIT_BYTES = 2_500
FRAME_BYTES = 314  # 256 B of payload


def tables(**switch: Any) -> dict[str, Any]:
    """Two hosts send to a third one; a fourth sends to the second, whose link no other flow uses."""
    ends = {"a": (0, 2), "b": (1, 2), "c": (3, 1)}
    flows = [{"name": n, "source": s, "destination": d, "size_bytes": 60_000} for n, (s, d) in ends.items()]
    return {
        "cc": "none",
        "topology": {"name": "single-switch", "hosts": 4, "link_rate_bps": 10e9, "link_delay_ns": 100},
        "workload": {"name": "streams", "flows": flows},
        "nic": {"mtu_bytes": 256, "rto_ns": 200_000},
        "switch": {"ingress_bytes": LIMIT_BYTES, **switch},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }


def run(**switch: Any) -> Recording:
    recording = VirtualWorld(plan("x", check(tables(**switch)), Path())[0]).run()
    assert recording.ended == "done"
    return recording


def most_held(recording: Recording) -> int:
    return int(np.max(recording.pfc_stats["ingress_max_bytes"]))


def test_with_pfc_nothing_is_dropped_and_the_headroom_is_part_of_the_limit() -> None:
    pfc = {"xon_gap_bytes": 314, "headroom_delays": 2.0, "headroom_frames": 3}
    recording = run(pfc=pfc)
    assert recording.conservation["drop_buffer"] == 0
    assert sum(recording.pfc_stats["pauses_sent"]) > 10
    threshold_bytes = LIMIT_BYTES - 250 - 3 * FRAME_BYTES
    assert threshold_bytes < most_held(recording) <= LIMIT_BYTES


def test_without_pfc_an_input_drops_what_it_cannot_hold() -> None:
    recording = run(pfc={"enabled": False})
    assert recording.conservation["drop_buffer"] > 0
    assert "pauses_sent" not in recording.pfc_stats or sum(recording.pfc_stats["pauses_sent"]) == 0
    # Each of the two inputs that share an output holds as much as it may; the third flow loses nothing.
    depth = recording.queue_stats["max_bytes"].max()
    assert 2 * (LIMIT_BYTES - FRAME_BYTES) < depth <= 2 * LIMIT_BYTES
    lost = {record.flow.group: record.columns["retransmitted"] for record in recording.flows}
    assert lost["a"] > 0
    assert lost["b"] > 0
    assert lost["c"] == 0


def test_a_fixed_threshold_pauses_whatever_is_free_and_the_headroom_is_beyond_it() -> None:
    pfc = {"xoff_bytes": LIMIT_BYTES, "xon_gap_bytes": 314, "headroom_delays": 2.0, "headroom_frames": 3}
    recording = run(ingress_bytes=None, pfc=pfc)
    assert recording.conservation["drop_buffer"] == 0
    assert sum(recording.pfc_stats["pauses_sent"]) > 10
    assert LIMIT_BYTES < most_held(recording) <= LIMIT_BYTES + 250 + 3 * FRAME_BYTES


def test_the_headroom_holds_what_a_switch_has_not_enqueued_yet() -> None:
    """With a latency of 4 us at 10 Gb/s, 5,000 bytes that have arrived are not counted yet when the pause is sent."""
    pfc = {"xoff_bytes": LIMIT_BYTES, "xon_gap_bytes": 314, "headroom_delays": 2.0, "headroom_frames": 3}
    recording = run(ingress_bytes=None, latency_ns=4_000, buffer_bytes=4 * 2 * (LIMIT_BYTES + 5_250 + 942), pfc=pfc)
    assert recording.conservation["drop_buffer"] == 0
    without_bytes = LIMIT_BYTES + 250 + 3 * FRAME_BYTES
    assert without_bytes < most_held(recording) <= without_bytes + 5_000


def test_two_limits_of_an_input_are_a_mistake() -> None:
    with pytest.raises(UserError, match=r"switch\.pfc\.xoff_bytes: given beside switch\.ingress_bytes"):
        run(pfc={"xoff_bytes": LIMIT_BYTES})


def test_a_limit_below_the_headroom_is_a_mistake() -> None:
    with pytest.raises(UserError, match=r"switch\.ingress_bytes: should exceed the \d+ bytes of headroom"):
        run(ingress_bytes=800)
