"""Record of a flow that has finished, or that the end of the run has cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.measure.flow_record import FlowRecord
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld

SCENARIO = {
    "title": "two flows, of which one is too long",
    "limit_ns": 30_000,
    "cc": ["none"],
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {
        "name": "streams",
        "flows": [
            {"name": "short", "source": 0, "destination": 1, "start_ns": 0, "size_bytes": 10_000},
            {"name": "long", "source": 2, "destination": 1, "start_ns": 1000, "size_bytes": 10_000_000},
        ],
    },
}


@pytest.fixture(scope="module")
def records() -> list[FlowRecord]:
    return VirtualWorld(plan("x", check(SCENARIO), Path())[0]).run().flows


def test_a_flow_that_is_done(records: list[FlowRecord]) -> None:
    short, _ = records
    assert 0 <= short.first_sent_ns < short.delivered_ns < short.completed_ns
    assert (short.columns["packets_sent"], short.columns["retransmitted"], short.flow.size_bytes) == (10, 0, 10_000)
    assert short.delivered_wire_bytes > short.flow.size_bytes


def test_a_flow_that_is_not(records: list[FlowRecord]) -> None:
    _, long = records
    assert long.first_sent_ns >= 1000
    assert (long.delivered_ns, long.completed_ns, long.flow.size_bytes) == (-1, -1, 10_000_000)
    # At line rate for 29 us; what arrived is less by what is in the network.
    assert 300 < long.columns["packets_sent"] < 370
    assert 0 < long.delivered_wire_bytes < long.columns["packets_sent"] * 1058
