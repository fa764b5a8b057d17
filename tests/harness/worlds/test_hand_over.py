"""Flows are handed to their hosts by few events, ahead where hosts are independent, and nothing follows from it."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.measure.recording import Recording
from harness.plan.experiment import plan
from harness.plan.scenario import check
from harness.worlds import virtual


def run(topology: dict[str, Any], cc: str, rate_interval_ns: int) -> Recording:
    tables = {
        "cc": cc,
        "topology": {"link_rate_bps": 40e9, "link_delay_ns": 700, **topology},
        "workload": {"name": "poisson", "load": 0.6, "duration_ns": 500_000, "distribution": "hadoop"},
        "record": {"queue_interval_ns": 7_000, "rate_interval_ns": rate_interval_ns},
        "limit_ns": 20_000_000,
    }
    return virtual.VirtualWorld(plan("x", check(tables), Path())[0]).run()


@pytest.mark.parametrize(
    ("topology", "cc"),
    [
        ({"name": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}, "dcqcn"),
        ({"name": "single-switch", "hosts": 6}, "hpcc"),
    ],
)
def test_flows_are_the_same_however_far_ahead_hosts_get_them(
    monkeypatch: pytest.MonkeyPatch, topology: dict[str, Any], cc: str
) -> None:
    ahead = run(topology, cc, 50_001)
    assert virtual._HAND_OVER_NS > 0
    monkeypatch.setattr(virtual, "_HAND_OVER_NS", 0)
    at_once = run(topology, cc, 50_001)
    assert len(ahead.flows) > 50
    starts = [record.flow.start_ns for record in ahead.flows]
    assert min(np.diff(sorted(starts))) < 20_000, "some were handed over"
    assert [astuple(record) for record in ahead.flows] == [astuple(record) for record in at_once.flows]
    for name in ("port_stats", "queue_stats", "pfc_stats"):
        for column, values in getattr(ahead, name).items():
            assert np.array_equal(values, getattr(at_once, name)[column]), (name, column)
    assert ahead.series["queues"].table().equals(at_once.series["queues"].table())
    assert ahead.tables["rates"].equals(at_once.tables["rates"])
    assert ahead.conservation == at_once.conservation


def test_a_flow_is_started_by_one_event_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a training step, whose flows become known in another order than that of their starts."""
    started_ns: list[int] = []
    start_due = virtual.VirtualWorld._start_due

    def counted(world: virtual.VirtualWorld, now_ns: int) -> None:
        started_ns.append(now_ns)
        start_due(world, now_ns)

    monkeypatch.setattr(virtual.VirtualWorld, "_start_due", counted)
    tables = {
        "cc": "hpcc",
        "topology": {"name": "fat-tree", "k": 4, "link_rate_bps": 400e9, "link_delay_ns": 500},
        "nic": {"mtu_bytes": 4096},
        "workload": {"name": "training", "data": 2, "tensor": 4, "pipeline": 2, "micro_batches": 2},
        "record": {"queue_interval_ns": 0, "rate_interval_ns": 0},
    }
    recording = virtual.VirtualWorld(plan("x", check(tables), Path())[0]).run()
    assert recording.ended == "done"
    starts_ns = sorted({record.flow.start_ns for record in recording.flows})
    assert len(starts_ns) > 100
    assert started_ns == starts_ns
