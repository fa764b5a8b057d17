"""Flows that are unfinished when a run ends: they are reported, and are an error unless the scenario expects them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.measure import results
from harness.plan.resolve import plan
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from host_agents.nic import Nic
from host_agents.timers import NEVER
from tests.p4cc.commands.test_commands import call

SCENARIO: dict[str, Any] = {
    "cc": ["none"],
    "topology": {"name": "single-switch", "hosts": 3},
    "workload": {"name": "incast", "size_bytes": 100_000},
}
LIVE = "flows finish"


def summary(**changes: object) -> dict[str, Any]:
    run = plan("x", check({**SCENARIO, **changes}), Path())[0]
    read: dict[str, Any] = json.loads(results.files(run, VirtualWorld(run).run())["summary.json"])
    return read


def liveness(found: dict[str, Any]) -> tuple[bool, str]:
    (row,) = (row for row in found["checks"] if row["name"] == LIVE)
    return row["holds"], row["detail"]


def test_a_limit_that_the_scenario_wishes_is_one() -> None:
    found = summary(limit_ns=10_000)
    assert found["ended"] == "limit"
    assert liveness(found) == (True, "2 of 2 flows did not finish; the run ended: limit")


def test_any_other_limit_is_a_failure() -> None:
    slow = {**SCENARIO["topology"], "link_rate_bps": 1000}
    found = summary(topology=slow, record={"queue_interval_ns": 0, "rate_interval_ns": 100_000_000})
    assert (found["ended"], found["end_ns"]) == ("limit", 1_000_000_000)
    assert liveness(found) == (False, "2 of 2 flows did not finish; the run ended: limit")
    assert found["jain"] == {"mean": None, "min": None, "over_0_9_from_ns": None, "over_0_9_qps": None}


@pytest.mark.parametrize("limit", [{}, {"limit_ns": 1_000_000}])
@pytest.mark.parametrize("interval_ns", [0, 100_000])
def test_a_hang_is_a_failure_whatever_was_wished(
    monkeypatch: pytest.MonkeyPatch, limit: dict[str, int], interval_ns: int
) -> None:
    monkeypatch.setattr(Nic, "next_frame", lambda self, now_ns: None)
    monkeypatch.setattr(Nic, "next_wakeup_ns", lambda self: NEVER)
    found = summary(**limit, record={"queue_interval_ns": 0, "rate_interval_ns": interval_ns})
    stuck = (
        "nothing has moved since 0 µs; flow 0 from h0-0-3 to h0-0-2 (0 packets sent, 0 of them again), "
        "flow 1 from h0-0-4 to h0-0-2 (0 packets sent, 0 of them again)"
    )
    assert liveness(found) == (False, f"2 of 2 flows did not finish; the run ended: idle: {stuck}")
    assert found["end_ns"] == min(1000 * found["base_rtt_ns"], limit.get("limit_ns", 1 << 61))  # at once


def repeating_until(monkeypatch: pytest.MonkeyPatch, time_ns: int) -> None:
    """Until this time hosts report nothing; they only have a timer that repeats every millisecond."""
    asked_ns: dict[Nic, int] = {}
    next_frame, next_wakeup_ns = Nic.next_frame, Nic.next_wakeup_ns

    def nothing(nic: Nic, now_ns: int) -> object:
        asked_ns[nic] = now_ns
        return next_frame(nic, now_ns) if now_ns >= time_ns else None

    def soon(nic: Nic) -> int:
        last_ns = asked_ns.get(nic, -1)
        return next_wakeup_ns(nic) if last_ns >= time_ns else min(last_ns + 1_000_000, time_ns)

    monkeypatch.setattr(Nic, "next_frame", nothing)
    monkeypatch.setattr(Nic, "next_wakeup_ns", soon)


QUICK = {"nic": {"rto_ns": 100_000}, "record": {"queue_interval_ns": 0, "rate_interval_ns": 1_000_000}}


@pytest.mark.parametrize("limit", [{}, {"limit_ns": 900_000_000}])
def test_timers_that_only_repeat_hide_no_hang(monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]) -> None:
    repeating_until(monkeypatch, 1 << 60)
    found = summary(**QUICK, **limit)
    holds, detail = liveness(found)
    assert (holds, found["ended"]) == (False, "stalled")
    expected = "2 of 2 flows did not finish; the run ended: stalled: nothing has moved since 0 µs; flow 0 from"
    assert detail.startswith(expected)
    assert found["end_ns"] < 12_000 * found["base_rtt_ns"]


def test_a_run_waits_for_what_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a flow that starts late, and a link that changes."""
    late = {"name": "streams", "flows": [{"name": "a", "source": 0, "destination": 1, "size_bytes": 5_000,
                                          "start_ns": 500_000_000}]}  # fmt: skip
    found = summary(**QUICK, workload=late)
    assert found["ended"] == "done"
    assert found["end_ns"] > 500_000_000
    event = {"time_ns": 300_000_000, "link": ["h0-0-3", "s0"], "rate_fraction": 0.5}
    repeating_until(monkeypatch, 300_000_000)
    assert summary(**QUICK, events=[event])["ended"] == "done"
    assert summary(**QUICK)["ended"] == "stalled"


@pytest.mark.parametrize("looks", [2, 3])
def test_a_run_waits_for_a_flow_that_the_operating_system_has(looks: int) -> None:
    """Check a flow that has started but that its NIC does not know yet."""
    changes = {**QUICK, "nic": {**QUICK.get("nic", {}), "os_overhead_ns": 50_000}}
    base_rtt_ns = plan("x", check({**SCENARIO, **changes}), Path())[0].base_rtt_ns()
    flow = {"source": 0, "destination": 1, "size_bytes": 5_000}
    late = {"name": "b", **flow, "start_ns": looks * 1000 * base_rtt_ns - 10_000}
    found = summary(**changes, workload={"name": "streams", "flows": [{"name": "a", **flow, "start_ns": 0}, late]})
    assert found["ended"] == "done"
    assert found["end_ns"] > looks * 1000 * base_rtt_ns + 40_000


@pytest.mark.parametrize("limit", [{}, {"limit_ns": 10_000_000_000}])
def test_a_flow_that_is_given_up_is_a_failure_whatever_was_wished(limit: dict[str, int]) -> None:
    broken = {"time_ns": 5_000, "link": ["h0-0-3", "s0"], "up": False}
    found = summary(**limit, events=[broken], nic={"rto_ns": 100_000})
    told = (
        "1 of 2 flows did not finish (dropped: 760 link_down); 1 queue pairs in error, their retries used up; "
        "the run ended: failed"
    )
    assert (found["ended"], liveness(found)) == ("failed", (False, told))
    assert 800_000 <= found["end_ns"] <= 1_000_000


def test_the_terminal_tells_and_strict_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("P4CC_NATIVE", "0")
    monkeypatch.chdir(tmp_path)
    arguments = ["run", "incast-star", "--cc", "none", "--set", "workload.senders=2", "--set", "limit_ns=10_000"]
    told = "incast-star-none-seed1: 0 of 2 flows done when the run ended at 10 µs (limit)"
    status, _, err = call(capsys, *arguments, "--out", "out")
    assert (status, err.splitlines()[-1]) == (0, f"warning: {told}")
    assert "seed 1: 0 of 2 flows done when the run ended at 10 µs (limit)" in (
        tmp_path / "out" / "report.html"
    ).read_text(encoding="utf-8")
    status, _, err = call(capsys, *arguments, "--strict", "--out", "strict")
    assert (status, err.splitlines()[-1]) == (1, f"p4cc: error: {told}")
    assert (tmp_path / "strict" / "report.html").exists()
