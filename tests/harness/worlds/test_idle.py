"""Flows that start late: they are unfinished if the run ends before, and the wait for them costs no time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.measure.metrics import flows_table, messages_table
from harness.measure.recording import Recording
from harness.measure.summary import summarize, unfinished
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError


def planned(starts_ns: list[int], workload: dict[str, Any] | None = None, **more: Any) -> Run:
    flows = [
        {"name": "late", "source": 2 * (i % 2), "destination": 1, "size_bytes": 50_000, "start_ns": start_ns}
        for i, start_ns in enumerate(starts_ns)
    ]
    given = {"name": "streams", "flows": flows, **(workload or {})}
    scenario = {"cc": "dcqcn", "topology": {"name": "single-switch", "hosts": 3}, "workload": given}
    (run,) = plan("late", check({**scenario, **more}), Path())
    return run


def summary_of(run: Run, recording: Recording) -> dict[str, Any]:
    messages = messages_table(run, recording)
    return summarize(run, recording, flows_table(run, recording, messages), messages)


def test_a_flow_that_would_start_after_the_end_is_unfinished() -> None:
    run = planned([0, 2_000_000_000], limit_ns=1_000_000_000)
    recording = VirtualWorld(run).run()
    assert recording.ended == "limit"
    summary = summary_of(run, recording)
    assert (summary["flows"], summary["flows_delivered"]) == (2, 1)
    told = unfinished(summary)
    assert told is not None
    assert told.startswith("1 of 2 flows done")
    late = recording.flows[1]
    assert (late.flow.start_ns, late.first_sent_ns, late.delivered_ns) == (2_000_000_000, -1, -1)


def test_a_run_in_which_nothing_can_start_is_refused() -> None:
    message = (
        r"^workload 'streams': its first flow starts at 2000000000 ns; expected it before the run ends, at "
        r"limit_ns = 1000000000, or workload\.start_at_zero = true$"
    )
    with pytest.raises(UserError, match=message):
        planned([2_000_000_000] * 2, limit_ns=1_000_000_000)
    with pytest.raises(UserError, match="its first flow starts at 2000000000 ns"):
        planned([2_000_000_000])
    planned([999_999_999], limit_ns=1_000_000_000)


def test_the_first_flow_of_a_file_may_start_at_zero(tmp_path: Path) -> None:
    moved = planned([2_000_000_000, 2_000_003_000], {"start_at_zero": True}).traffic()
    assert [flow.start_ns for flow in moved.flows] == [0, 3_000]
    (tmp_path / "flows.txt").write_text("2\n0 1 3 100 5000 2.0\n1 2 3 100 5000 2.000004\n")
    workload = {"name": "ns3", "file": "flows.txt", "start_at_zero": True}
    (run,) = plan("file", check({"cc": "dcqcn", "topology": {"name": "single-switch"}, "workload": workload}), tmp_path)
    assert [flow.start_ns for flow in run.traffic().flows] == [0, 4_000]


def test_stops_move_with_their_starts() -> None:
    stream = {"name": "s", "source": 0, "destination": 1, "start_ns": 5_000, "stop_ns": 9_000}
    (flow,) = planned([], {"flows": [stream], "start_at_zero": True}).traffic().flows
    assert (flow.start_ns, flow.stop_ns) == (0, 4_000)


@pytest.mark.parametrize("starts_ns", [[0, 5, 30_000_123], [30_000_000] * 2, [7, 20_000_000, 20_000_100, 45_000_000]])
def test_what_is_not_sampled_while_nothing_is_under_way_is_zero(
    starts_ns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare with the same run in which all intervals are sampled."""
    run = planned(starts_ns)
    recording = VirtualWorld(run).run()
    monkeypatch.setattr(VirtualWorld, "_rest", lambda world, now_ns: None)
    whole = VirtualWorld(run).run()
    assert recording.end_ns == whole.end_ns
    assert recording.tables["rates"].equals(whole.tables["rates"])
    sampled, every = recording.series["queues"].table(), whole.series["queues"].table()
    left_out = every[~every["time_ns"].isin(sampled["time_ns"])]
    assert (left_out["depth_bytes"] == 0).all()
    assert every[every["time_ns"].isin(sampled["time_ns"])].reset_index(drop=True).equals(sampled)
    ports = len(every) // every["time_ns"].nunique()
    assert len(left_out) > 9_000 * ports
    both = [summary_of(run, each) for each in (recording, whole)]
    for told in both:
        told.pop("cost", None)
    keys = ("bottleneck", "queues", "flows", "flows_delivered", "fct_ns")
    assert [both[0].get(key) for key in keys] == [both[1].get(key) for key in keys]


def test_two_seconds_of_waiting_have_no_more_events_than_looks() -> None:
    def events(start_ns: int) -> int:
        recording = VirtualWorld(planned([0, 0, start_ns], limit_ns=3_000_000_000)).run()
        assert recording.ended == "done"
        assert len(recording.series["queues"].times_ns) < 30_000
        return recording.events

    assert events(2_000_000_000) < events(100_000_000) + 100
