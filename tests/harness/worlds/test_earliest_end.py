"""The earliest end of a run, from which on windows are one instant long."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.workloads import Flow
from harness.worlds.earliest_end import EarliestEnd
from harness.worlds.virtual import VirtualWorld

ROUND_TRIP_NS = 2 * 2 * 1_000


def all_to_all(size_bytes: int) -> Run:
    tables = {
        "cc": "hpcc",
        "topology": {"name": "single-switch", "hosts": 6, "link_delay_ns": 1_000},
        "workload": {"name": "alltoall", "size_bytes": size_bytes},
    }
    return plan("x", check(tables), Path())[0]


def earliest_end() -> EarliestEnd:
    """Return the bound where a byte takes one nanosecond."""
    return EarliestEnd(all_to_all(1000), [8_000_000_000] * 6)


def test_a_link_carries_one_flow_of_its_source_after_the_other() -> None:
    end = earliest_end()
    assert [end.after(Flow(0, host, 5_000, 0)) - ROUND_TRIP_NS for host in (1, 2, 3)] == [5_000, 10_000, 15_000]
    assert end.after(Flow(1, 0, 5_000, 0)) - ROUND_TRIP_NS == 5_000
    assert end.after(Flow(0, 1, 5_000, 40_000)) - ROUND_TRIP_NS == 45_000


def test_a_flow_that_starts_before_one_that_is_known_may_be_sent_before_it() -> None:
    end = earliest_end()
    assert end.after(Flow(0, 1, 5_000, 20_000)) - ROUND_TRIP_NS == 25_000
    assert end.after(Flow(0, 2, 5_000, 0)) - ROUND_TRIP_NS == 5_000
    assert end.after(Flow(0, 3, 5_000, 21_000)) - ROUND_TRIP_NS == 30_000


def test_a_flow_that_is_stopped_may_send_nothing() -> None:
    assert earliest_end().after(Flow(0, 1, 5_000, 300, stop_ns=400)) == 300 + ROUND_TRIP_NS


def test_no_run_ends_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows of four destinations share their source's link from the beginning."""
    ends_ns: list[int] = []
    after = EarliestEnd.after

    def noted(end: EarliestEnd, flow: Flow) -> int:
        ends_ns.append(after(end, flow))
        return ends_ns[-1]

    monkeypatch.setattr(EarliestEnd, "after", noted)
    recording = VirtualWorld(all_to_all(20_000)).run()
    assert recording.ended == "done"
    four_ns = 4 * 20_000 * 8 // 100
    assert ends_ns[0] < four_ns + ROUND_TRIP_NS <= max(ends_ns) <= recording.end_ns
