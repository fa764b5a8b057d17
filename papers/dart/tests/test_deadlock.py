"""Lanes that follow turns, with tiny buffers: a small sample of the runs of `make reproduce-dart`."""

from __future__ import annotations

import pytest

from harness.worlds import network
from papers.dart.studies.deadlock import measure, summary

SEEDS = range(1, 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_lanes_that_follow_turns_neither_deadlock_nor_lose_anything(seed: int) -> None:
    outcome = measure(seed, "turn")
    assert outcome.ended == "done"
    assert (outcome.dropped, outcome.waiting, outcome.again) == (0, 0, 0)
    assert outcome.changed > 100
    assert summary([outcome]).startswith("0 of 1 loads deadlock, 1 are delivered without a loss; ")


def test_without_a_rule_for_lanes_some_loads_deadlock() -> None:
    outcomes = [measure(seed, "none") for seed in SEEDS]
    assert {outcome.ended for outcome in outcomes} == {"done", "deadlock"}
    assert all((outcome.waiting > 0) == (outcome.ended == "deadlock") for outcome in outcomes)


def test_packets_that_count_in_the_class_that_they_leave_by_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the counterexample of the first test: PFC counts packets in their outgoing class.

    A change of lanes then pauses the wrong class, and packets exceed the headroom.
    """
    monkeypatch.setattr(network, "dscp_classes", lambda _: None)
    outcomes = [measure(seed, "turn") for seed in SEEDS]
    assert sum(outcome.dropped for outcome in outcomes) > 0
    assert not all(outcome.whole for outcome in outcomes)
