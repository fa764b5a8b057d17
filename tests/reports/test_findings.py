"""Sentences about the results of runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from harness.measure.results import Result
from reports.findings import findings
from reports.groups import Comparison, Variant

US = 1000


def result(
    p99_us: float | None, queue_bytes: int = 0, drops: int = 0, pauses: int = 0, left: int = 0, **summary: Any
) -> Result:
    """Return the parts of a run that sentences use: 19 flows of 1 KB, some of them unfinished."""
    made = SimpleNamespace(
        flows=pd.DataFrame({"size_bytes": [1000] * 19}),
        claims=[],
        summary={
            "flows": 19,
            "flows_delivered": 19 - left,
            "flows_acknowledged": 19 - left,
            "fct_ns": {"p99": None if p99_us is None else p99_us * US},
            "slowdown": {"p99": None},
            "queues": {"worst": [{"queue_max_bytes": queue_bytes}]},
            "drops": {"buffer": drops},
            "pfc": {"pauses_sent": pauses},
            "workload": {},
            "ended": "limit" if left else "done",
            "end_ns": 5_000_000,
            "program": "ecn",
            "nic": {"retries_exceeded": 0},
            "checks": [{"name": "flows finish", "holds": not left, "detail": ""}],
            **summary,
        },
    )
    return cast("Result", made)


def found(**variants: list[Result]) -> list[str]:
    named = tuple(Variant(name, tuple(results)) for name, results in variants.items())
    return findings(Comparison("x", "X", named))


ONE_SEED = "Each variant ran with one seed, so differences may be chance; give several with --seed."


def test_two_variants_are_compared_and_one_seed_is_no_proof() -> None:
    assert found(dcqcn=[result(1500.4, 6_200_000, pauses=84)], hpcc=[result(1000, 84_000)]) == [
        "The 99th-percentile flow completion time is 1,000 µs with hpcc and 1,500 µs with dcqcn, 50% higher.",
        "The largest queue held 84 KB with hpcc and 6.2 MB with dcqcn.",
        "dcqcn: 84 PFC pauses. No packet was dropped.",
        ONE_SEED,
    ]


def test_one_variant_is_told_alone() -> None:
    assert found(hpcc=[result(1000, 400)]) == [
        "The 99th-percentile flow completion time of hpcc is 1,000 µs.",
        "The largest queue held 400 B.",
        "No packet was dropped, and no link was paused.",
    ]


def test_intervals_that_overlap_are_no_difference() -> None:
    """Student's t with one degree of freedom: 100 and 120 give 110 with an interval of +-127."""
    told = found(a=[result(100), result(120)], b=[result(130), result(140)])[0]
    assert told == (
        "The 99th-percentile flow completion time is 110 µs (95% interval 0 to 237) with a and 135 µs (95% interval "
        "71 to 199) with b; over these seeds the difference may be chance."
    )


def test_intervals_that_are_apart_are_a_difference() -> None:
    told = found(a=[result(100), result(100)], b=[result(300), result(300)])
    assert told[0] == "The 99th-percentile flow completion time is 100 µs with a and 300 µs with b, 3.0 times as high."
    assert ONE_SEED not in told


def test_of_many_the_extremes_are_named_and_those_that_cannot_be_told_apart() -> None:
    told = found(a=[result(100), result(104)], b=[result(103), result(109)], c=[result(900), result(901)])[0]
    lowest = "Of 3 variants, a has the lowest 99th-percentile flow completion time, 102 µs (95% interval 77 to 127),"
    assert told.startswith(lowest)
    assert told.endswith("Over these seeds, b cannot be told from a.")
    assert "c the highest, 900 µs (95% interval 894 to 907), 8.8 times as high." in told


def test_a_variant_without_a_value_in_every_run_takes_no_part() -> None:
    told = found(a=[result(100), result(None)], b=[result(200), result(200)])[0]
    assert told == ("The 99th-percentile flow completion time of b is 200 µs. a did not have a value in every run.")


def test_pauses_without_drops_are_said_so_and_drops_of_another_variant_are_not_denied() -> None:
    assert "a: 3 PFC pauses. No packet was dropped." in found(a=[result(100, pauses=3)])
    told = found(a=[result(100, pauses=3)], b=[result(100, drops=2)])
    assert "a: 3 PFC pauses; b: 2 packets dropped." in told


def test_flows_that_did_not_finish_and_failed_checks_are_said() -> None:
    told = found(a=[result(100, left=8, drops=12)])
    assert "a: 12 packets dropped." in told
    assert "In 1 of 1 runs some flows did not finish; completion times are of the others." in told
    assert "A check failed in 1 of 1 runs; do not rely on their numbers." in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workload": {"job_completion_ns": 5000.0}}, "The job completion time of a is 5 µs."),
        ({"workload": {"latency_cycles": {"mean": 71.0}}}, "The mean latency of operations of a is 71 cycles."),
    ],
)
def test_a_scenario_is_judged_by_what_it_is_about(change: dict[str, Any], words: str) -> None:
    assert found(a=[result(100, **change)])[0] == words


def test_flows_of_several_sizes_are_judged_by_slowdown() -> None:
    mixed = result(100, slowdown={"p99": 3.21})
    mixed.flows.loc[0, "size_bytes"] = 5
    assert found(a=[mixed])[0] == "The 99th-percentile slowdown of a is 3.21."


def test_a_name_with_a_comma_is_quoted() -> None:
    assert found(**{"a, b": [result(100)]})[0] == "The 99th-percentile flow completion time of “a, b” is 100 µs."
