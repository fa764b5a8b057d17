"""Attacks in the virtual world with each protocol: a divided flow is one row, and tables list its pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.measure.metrics import flows_table, messages_table
from harness.measure.summary import summarize
from harness.plan import resolve, scenario
from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

STAR: dict[str, Any] = {
    "topology": {"name": "single-switch", "hosts": 4},
    "workload": {"name": "incast", "size_bytes": 50_000},
}


def planned(attack: dict[str, Any], **more: Any) -> Run:
    (run,) = resolve.plan("star", scenario.check({"cc": "dcqcn", **STAR, **more, "attack": attack}), Path())
    return run


def tables(run: Run) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    recording = VirtualWorld(run).run()
    messages = messages_table(run, recording)
    flows = flows_table(run, recording, messages)
    return flows, messages, summarize(run, recording, flows, messages)


@pytest.mark.parametrize("cc", ["hpcc", "sperc", "eqds"])
@pytest.mark.parametrize("kind", ["parallel", "staggered"])
def test_a_flow_in_pieces_is_one_row_from_its_start_to_its_last_delivery(cc: str, kind: str) -> None:
    attack = {"kind": kind, "hosts": [1], "over_bytes": 50_000, "piece_bytes": 12_000, "gap_ns": 1500}
    room = {"trim": {"queue_bytes": 1_000_000}}  # nothing is trimmed
    flows, pieces, summary = tables(planned(attack, cc=cc, programs=room))
    assert flows[["flow", "role", "pieces", "size_bytes", "packets_sent"]].to_numpy().tolist() == [
        [0, "attacker", 5, 50_000, 50],
        [1, "victim", 1, 50_000, 50],
        [2, "victim", 1, 50_000, 50],
    ]
    broken = pieces[pieces["flow"] == 0]
    assert broken["piece"].tolist() == [0, 1, 2, 3, 4]
    assert broken["qp"].nunique() == 5
    step_ns = 1500 if kind == "staggered" else 0
    assert broken["start_ns"].tolist() == [i * step_ns for i in range(5)]
    whole = flows.iloc[0]
    assert (whole["fct_ns"], whole["delivered_ns"]) == (broken["delivered_ns"].max(), broken["delivered_ns"].max())
    assert whole["ideal_fct_ns"] == flows["ideal_fct_ns"][1]
    found = summary["isolation"]
    assert (found["attackers"]["pieces"], found["victims"]["pieces"]) == (5, 2)
    assert summary["packets_sent"] == 150
    assert summary["flows_delivered"] == 3


def test_a_flow_whose_last_piece_has_not_started_is_not_delivered() -> None:
    attack = {"kind": "staggered", "hosts": [1], "over_bytes": 50_000, "piece_bytes": 25_000, "gap_ns": 10**6}
    flows, pieces, summary = tables(planned(attack, limit_ns=100_000))
    assert pieces["first_sent_ns"].gt(-1).tolist() == [True, False, True, True]
    assert flows["delivered_ns"].gt(0).tolist() == [False, True, True]
    assert flows["size_bytes"].tolist() == [50_000] * 3
    assert summary["isolation"]["attackers"]["flows_delivered"] == 0


def test_endless_flows_are_as_large_as_what_their_pieces_have_sent() -> None:
    streams = [{"name": str(i), "source": i, "destination": 0, "stop_ns": 60_000} for i in (1, 2)]
    workload = {"name": "streams", "flows": streams}
    flows, pieces, summary = tables(planned({"kind": "parallel", "hosts": [1], "pieces": 3}, workload=workload))
    assert flows["pieces"].tolist() == [3, 1]
    assert flows["size_bytes"][0] == pieces["size_bytes"][:3].sum() < 10**6
    assert 0.5 < summary["isolation"]["attackers_share"] < 1


def test_what_is_not_given_is_one_bdp_each_rtt() -> None:
    run = planned({"kind": "staggered"})
    assert run.attack is not None
    rtt_ns = run.base_rtt_ns()
    assert (run.attack.piece_bytes, run.attack.gap_ns) == (rtt_ns * 100 // 8, rtt_ns)
    assert run.attack.over_bytes == rtt_ns * 100 // 8 + 1
    assert run.attack.hosts == {0, 1, 2, 3}
    again = resolve.plan("star", resolve.resolved(run), Path())[0]
    assert again.attack == run.attack
    assert again.traffic().flows == run.traffic().flows


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (
            {"kind": "parallel", "over_bytes": 1000, "piece_bytes": 1000},
            "attack.piece_bytes: should be less than over_bytes, 1000, got 1000",
        ),
        ({"kind": "none", "hosts": [1, 9]}, "attack.hosts: no host 9; topology 'single-switch' has hosts 0 to 3"),
        ({"kind": "none", "hosts": []}, "attack.hosts: empty; expected at least one host"),
        ({"kind": "none", "pieces": 4, "piece_bytes": 5}, "attack: should have either piece_bytes or pieces"),
        ({"kind": "serial"}, "attack.kind: should be 'none', 'parallel' or 'staggered', got 'serial'"),
        ({"kind": "none", "gap": 4}, "attack.gap: no such key; did you mean 'gap_ns'?"),
    ],
)
def test_mistakes_are_one_line(attack: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        planned(attack)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
