"""Figures of classes of flows, which are divided by size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.measure import metrics, summary
from harness.plan import resolve, scenario
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

STAR: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 4},
    "workload": {
        "name": "streams",
        "flows": [
            {"name": f"{size_bytes} B", "source": source, "destination": 0, "size_bytes": size_bytes}
            for source, size_bytes in ((1, 1_000), (1, 10_000), (2, 30_000), (3, 40_000))
        ],
    },
}


def test_each_class_has_its_flows_both_ends_included() -> None:
    sizes = [{"name": "short", "most_bytes": 10_000}, {"name": "long", "least_bytes": 30_000}, {"name": "all"}]
    record = {"columns": ["max_latency_ns", "mean_weight"], "sizes": sizes}
    tables = {"cc": "sperc+1rc+weights", **STAR, "record": record}
    (run,) = resolve.plan("star", scenario.check(tables), Path())
    recording = VirtualWorld(run).run()
    messages = metrics.messages_table(run, recording)
    found = summary.summarize(run, recording, messages, messages)["sizes"]
    assert {name: one["flows_delivered"] for name, one in found.items()} == {"short": 2, "long": 2, "all": 4}
    long = messages[messages["size_bytes"] >= 30_000]
    assert found["long"]["flow_rate_bps"]["mean"] == pytest.approx((long["size_bytes"] * 8e9 / long["fct_ns"]).mean())
    assert found["long"]["slowdown"]["max"] == long["slowdown"].max()
    assert found["all"]["max_latency_ns"]["max"] == messages["max_latency_ns"].max()
    weighted = (messages["slowdown"] * messages["mean_weight"])[messages["size_bytes"] <= 10_000]
    assert (messages["mean_weight"][:2] < 1).any()  # two flows of one host: it matters
    assert found["short"]["weighted_slowdown"]["max"] == weighted.max()


def test_a_class_without_flows_has_no_figures() -> None:
    tables = {"cc": "dcqcn", **STAR, "record": {"sizes": [{"name": "huge", "least_bytes": 10**9}]}}
    (run,) = resolve.plan("star", scenario.check(tables), Path())
    recording = VirtualWorld(run).run()
    messages = metrics.messages_table(run, recording)
    huge = summary.summarize(run, recording, messages, messages)["sizes"]["huge"]
    assert (huge["flows"], huge["slowdown"]["p99_9"]) == (0, None)
    assert "max_latency_ns" not in huge


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([{"name": "a"}, {"name": "a"}], "record: sizes should have different names"),
        ([{"name": "a", "least_bytes": 2, "most_bytes": 1}], "most_bytes should be at least least_bytes, 2"),
        ([{"name": "1.5 KB"}], "record.sizes"),
    ],
)
def test_a_wrong_class_is_one_line(sizes: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UserError) as caught:
        scenario.check({**STAR, "record": {"sizes": sizes}})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


COUNTS: dict[str, Any] = {
    "flows": 19,
    "workload": {},
    "end_ns": 5_000,
    "ended": "failed",
    "program": "basic",
    "drops": {"program_ingress": 7, "program_egress": 0, "buffer": 1_200},
}


@pytest.mark.parametrize(
    ("delivered", "acknowledged", "line", "left"),
    [
        (19, 19, "19/19 flows", None),
        (
            19,
            8,
            "19/19 flows delivered, 8 acknowledged, dropped: 1,200 buffer, 7 by basic in its ingress",
            "8 of 19 flows acknowledged, all delivered when the run ended at 5 µs (failed)",
        ),
        (
            3,
            3,
            "3/19 flows, dropped: 1,200 buffer, 7 by basic in its ingress",
            "3 of 19 flows done when the run ended at 5 µs (failed)",
        ),
        (3, None, "3/19 flows, dropped: 1,200 buffer, 7 by basic in its ingress", None),
    ],
)
def test_what_is_delivered_and_what_is_acknowledged_are_told_apart(
    delivered: int, acknowledged: int | None, line: str, left: str | None
) -> None:
    told = {**COUNTS, "flows_delivered": delivered}
    if acknowledged is not None:
        told["flows_acknowledged"] = acknowledged
        assert summary.unfinished(told) == left
    assert summary.delivered(told) == line
