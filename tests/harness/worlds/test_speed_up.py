"""Model of several workers, and its terms."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.partition import Shares, partition, shares
from harness.worlds.speed_up import Terms, Work, cpu_s, wall_s
from harness.worlds.virtual import VirtualWorld
from p4cc.bench.cost import planned
from p4cc.bench.window_cost import (
    FRAME_BYTES,
    MeetingCost,
    Shared,
    WindowCosts,
    meeting_cost,
    terms_of,
    window_costs,
)

WORK = Work(cpu_s=10.0, packet_hops=1_000_000, windows=1000, network_bytes=10_000_000)
SILENT = {"queue_interval_ns": 0, "rate_interval_ns": 0}
TERMS = Terms(crossing_s=1e-6, copying_s=8e-9, meeting_s=1e-3, meeting_each_s=1e-4, imbalance=1.1)


def test_a_run_is_as_long_as_who_has_most_to_do() -> None:
    two = Shares((0.4, 0.6), crossing=0.25)
    assert wall_s(WORK, Shares((1.0,), 0.0), TERMS) == 10.0
    assert wall_s(WORK, two, TERMS) == pytest.approx(10 * 0.6 * 1.1 + 0.125 + 0.04 + 1000 * 1e-3)
    assert cpu_s(WORK, two, TERMS) == pytest.approx(10 + 0.25 + 0.08 + 2 * 1000 * 1e-3)
    eight = Shares((0.125,) * 8, crossing=0.5)
    assert wall_s(WORK, eight, TERMS) == pytest.approx(10 / 8 * 1.1 + 0.0625 + 0.01 + 1000 * 1.6e-3)
    assert wall_s(WORK, eight, TERMS, processors=2) == pytest.approx(cpu_s(WORK, eight, TERMS) / 2)


def test_terms_are_what_two_runs_of_two_say() -> None:
    def costs(windows: int, frames: int) -> WindowCosts:
        crossing_bytes = FRAME_BYTES * frames
        return WindowCosts(2, windows, work_s=1.0, longest_s=0.66, largest_share=0.6, crossing_bytes=crossing_bytes)

    meetings = [MeetingCost(2, 5e-6, 4e-6), MeetingCost(8, 100e-6, 10e-6)]
    short = Shared(Work(1.0, 400_000, 100, 1_000_000), costs(100, 100_000), 1.0 + 2 * 100 * 4e-6 + 0.02 + 0.01)
    long = Shared(Work(4.0, 1_600_000, 300, 1_000_000), costs(300, 400_000), 4.0 + 2 * 300 * 4e-6 + 0.08 + 0.01)
    assert long.two.crossing_frames == 400_000
    found = terms_of(short, long, meetings)
    expected = (0.2e-6, 10e-9, 5e-6, 1e-6, 1.1)
    assert found == Terms(*cast(Any, map(pytest.approx, expected)))
    assert cpu_s(long.work, Shares((0.5, 0.5), crossing=0.25), found) == pytest.approx(4.0 + 0.08 + 0.01 + 600 * 5e-6)


@pytest.mark.parametrize("workers", [2, 4])
def test_windows_are_counted_and_what_crosses_is_what_the_partition_says(workers: int) -> None:
    run = planned("hpcc", "ecmp", 4, 20_000)
    recording = VirtualWorld(run).run()
    found = window_costs(run, workers)
    assert found.windows >= recording.end_ns // 2_000  # of two links' delay
    assert found.windows < 3 * recording.end_ns // 2_000
    assert found.longest_s <= found.work_s <= workers * found.longest_s
    assert 1 / workers <= found.largest_share < 1
    of = shares(run.topology, partition(run.topology, workers), workers)
    crossing = of.crossing * int(recording.port_stats["tx_packets"].sum())
    assert crossing / 2 < found.crossing_frames < crossing * 2


def test_hosts_that_take_turns_need_one_meeting_a_window() -> None:
    """There is one more where a flow waits for its connection. No window begins before there is an event."""
    shift = {"name": "exchange", "collective": "all-to-all", "algorithm": "ring", "size_bytes": 800_000}
    tables = {"cc": "hpcc", "topology": {"name": "fat-tree", "k": 4}, "workload": shift, "record": SILENT}
    run = plan("x", check(tables), Path())[0]
    recording = VirtualWorld(run).run()
    windows = recording.end_ns // 1_000  # of one link's delay
    assert windows > 100
    assert window_costs(run, 2).windows < 1.1 * windows + len(recording.flows) / 2


def test_a_meeting_alone_is_measured() -> None:
    found = meeting_cost(3, times=20)
    assert found.workers == 3
    assert found.wall_s > 0
    assert found.cpu_s > 0
