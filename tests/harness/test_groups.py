"""Groups of traffic in one network, each with its own hosts, protocol, class and start."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from control_plane import programs
from control_plane.programs.ecn_int import EcnIntParameters
from harness.measure.metrics import flows_table, messages_table
from harness.measure.recording import Recording
from harness.measure.summary import summarize
from harness.plan.portable import PortableRun
from harness.plan.resolve import plan, resolved
from harness.plan.run import Run
from harness.plan.scenario import check, dump, parse
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

TREE = {"name": "fat-tree", "k": 4}
EXAMPLE = Path(__file__).parents[2] / "examples" / "tofino" / "step.p4"
OLD = {"name": "old", "cc": "dcqcn", "workload": {"name": "incast", "size_bytes": 60_000}, "hosts": ["h0-*", "h1-*"]}


def planned(*groups: dict[str, Any], **tables: Any) -> Run:
    given = {
        "cc": "hpcc",
        "topology": TREE,
        "workload": {"name": "permutation", "size_bytes": 80_000},
        "limit_ns": 20_000_000,
        "groups": list(groups),
        **tables,
    }
    return plan("x", check(given), Path())[0]


def made(run: Run, **how: Any) -> tuple[Recording, pd.DataFrame, dict[str, Any]]:
    recording = VirtualWorld(run, **how).run()
    messages = messages_table(run, recording)
    flows = flows_table(run, recording, messages)
    return recording, flows, summarize(run, recording, flows, messages)


def test_two_tenants_with_different_protocols_share_a_network() -> None:
    run = planned(OLD)
    assert run.program_names == "ecn_int"
    recording, flows, summary = made(run)
    assert recording.ended == "done"
    assert recording.conservation["balance"] == 0
    assert flows["group"].value_counts().to_dict() == {"old": 7, "": 16}
    assert summary["groups"].keys() == {"old", "workload"}
    assert summary["groups"]["old"]["flows_delivered"] == 7
    assert summary["groups"]["workload"]["flows_delivered"] == len(flows) - 7
    own = flows[flows["group"] == "old"]
    assert set(own["source"]) | set(own["destination"]) <= {h.name for h in run.topology.hosts if h.name[1] in "01"}


def test_protocols_of_groups_react_by_their_own_signals() -> None:
    """Only DCQCN's packets are answered by CNPs, and only HPCC's carry telemetry."""
    run = planned(
        {**OLD, "parameters": {"min_rate_bps": 1e9}}, programs={"ecn": {"kmin_bytes": 1000, "kmax_bytes": 2000}}
    )
    (of_all,) = run.switch_programs
    assert isinstance(of_all.parameters, EcnIntParameters)
    assert of_all.parameters.kmin_bytes == 1000
    protocol, _ = run.group_senders["old"]
    assert protocol.parameters.min_rate_bps == 1e9
    _, flows, _ = made(run)
    by_group = flows.groupby("group")["cnps"].sum()
    assert by_group["old"] > 0
    assert by_group[""] == 0


def test_a_group_alone_is_as_the_same_workload_alone() -> None:
    """Check that a group on all hosts has the FCTs of a scenario with its protocol."""
    workload = {"name": "incast", "size_bytes": 50_000}
    group = {"name": "only", "cc": "dcqcn", "workload": workload}
    _, as_group, _ = made(planned(group, workload={"name": "none"}, cc="dcqcn"))
    _, alone, _ = made(planned(cc="dcqcn", workload=workload))
    assert as_group["fct_ns"].tolist() == alone["fct_ns"].tolist()


def test_priority_and_start_are_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planned({**OLD, "cc": None, "start_ns": 5000, "priority": 1, "workload": {"name": "permutation"}})
    flows = [flow for flow in run.traffic().flows if flow.part == "old"]
    assert {flow.start_ns for flow in flows} == {5000}
    assert {flow.priority for flow in flows} == {1}
    assert {flow.priority for flow in run.traffic().flows if flow.part == ""} == {None}


def test_flows_that_follow_others_follow_them_in_their_group() -> None:
    steps = {"name": "allreduce", "size_bytes": 40_000}
    run = planned({"name": "training", "workload": steps, "hosts": ["h2-*"], "cc": "dcqcn"}, cc="dcqcn")
    _, flows, summary = made(run)
    own = flows[flows["group"] == "training"]
    alone = planned(cc="dcqcn", topology={"name": "single-switch", "hosts": 4}, workload=steps)
    assert len(own) == len(made(alone)[1])
    assert summary["groups"]["training"]["flows_delivered"] == len(own)
    hosts = {host.name for host in run.topology.hosts if host.name.startswith("h2-")}
    assert set(own["source"]) == set(own["destination"]) == hosts


def test_workers_see_the_same() -> None:
    run = planned(OLD)
    one, two = (made(run, workers=workers)[1] for workers in (1, 2))
    pd.testing.assert_frame_equal(one, two)


def test_a_plan_is_carried_out_elsewhere_and_written_down() -> None:
    run = planned({**OLD, "lb": "plb"})
    again = PortableRun.of(run).run()
    assert again.group_senders.keys() == run.group_senders.keys()
    (same,) = plan("x", check(parse(dump(resolved(run)))), Path())
    assert same.group_senders["old"][0].resolved() == run.group_senders["old"][0].resolved()
    assert same.group_senders["old"][1].name == "plb"
    assert same.program_names == run.program_names


@pytest.mark.parametrize(
    ("groups", "tables", "message"),
    [
        ([{**OLD, "cc": "dcqn"}], {}, "groups.old: no protocol 'dcqn'; did you mean 'dcqcn'?"),
        ([{**OLD, "hosts": ["x*"]}], {}, "groups.old.hosts: no hosts of topology 'fat-tree' are called so"),
        ([{**OLD, "hosts": ["h0-0-2"]}], {}, "groups.old.hosts: 1 host of topology 'fat-tree' is called so"),
        ([{**OLD, "name": "a.b"}], {}, "groups.0.name: should have 1 to 40 characters, and neither dots nor spaces"),
        ([OLD, OLD], {}, "groups should have different names"),
        ([{**OLD, "workload": {"name": "incats"}}], {}, "no workload 'incats'"),
        ([{**OLD, "workload": {"name": "incast", "size": 1}}], {}, "groups.old.workload.size"),
        ([{**OLD, "cc": None, "parameters": {"eta": 0.9}}], {}, "should have cc"),
        ([{**OLD, "parameters": {"eta": 0.9}}], {}, "groups.old: dcqcn has no parameter 'eta'"),
        ([{**OLD, "cc": "sperc"}], {}, "cc 'hpcc' needs program 'int', and cc 'sperc' 'sperc'; no program serves"),
        ([OLD], {"program": "int"}, "program 'int' does not fit protocol 'dcqcn'; expected 'ecn_int'"),
        ([OLD], {"attack": {"kind": "none"}}, "should have either groups or attack"),
        ([], {"workload": {"name": "none"}}, "workload 'none': expected groups, which have flows"),
    ],
)
def test_mistakes(groups: list[dict[str, Any]], tables: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        planned(*groups, **tables)
    assert message in str(error.value)


def test_a_program_from_outside_is_not_chosen_because_it_has_been_loaded() -> None:
    """It might serve any protocol, but is used only where the scenario names it."""
    programs.program(str(EXAMPLE))
    with pytest.raises(UserError, match="no program serves both"):
        planned({**OLD, "cc": "sperc"})


CROSS = [
    {"name": "tcp", "cc": "tcp-cubic", "priority": 1, "workload": {"name": "incast", "size_bytes": 400_000}},
    {
        "name": "udp",
        "cc": "udp",
        "parameters": {"rate_bps": 40e9, "on_ns": 10_000, "off_ns": 10_000},
        "priority": 0,
        "hosts": ["h0-*"],
        "workload": {"name": "permutation", "size_bytes": 200_000},
    },
]


def test_what_is_not_rdma_loses_packets_and_rdma_beside_it_none() -> None:
    """Lossy queues have a small buffer. Both groups end: TCP retransmits, and UDP delivers less than was sent."""
    run = planned(*CROSS, switch={"alpha": 0.01}, limit_ns=900_000_000)
    recording, flows, summary = made(run)
    assert (recording.ended, recording.conservation["balance"]) == ("done", 0)
    by_group = flows.groupby("group")
    lost = by_group["retransmitted"].sum()
    assert lost["tcp"] > 0
    assert lost[""] == 0
    assert recording.conservation["drop_buffer"] > lost["tcp"] / 2
    assert summary["groups"]["tcp"]["flows_delivered"] == 15
    assert summary["groups"]["udp"]["flows_delivered"] == 4
    two = made(run, workers=2)[1]
    pd.testing.assert_frame_equal(flows, two)
    (again,) = plan("x", check(parse(dump(resolved(run)))), Path())
    pd.testing.assert_frame_equal(flows, made(again)[1])


def test_a_run_may_be_of_tcp_alone() -> None:
    """Check TCP alone, also where the NIC has another reliability."""
    run = planned(cc="tcp-dctcp", nic={"reliability": "go-back-n"}, workload={"name": "incast", "size_bytes": 100_000})
    recording, flows, _ = made(run)
    assert recording.ended == "done"
    assert flows["retransmitted"].sum() == 0


@pytest.mark.parametrize(
    ("protocol", "data_bytes", "last_bytes", "ack_bytes"),
    [("tcp-reno", 1_066, 567, 66), ("tcp-cubic", 1_066, 567, 66), ("udp", 1_042, 543, 62), ("hpcc", 1_060, 562, 62)],
)
def test_times_are_those_of_the_protocols_own_frames(
    protocol: str, data_bytes: int, last_bytes: int, ack_bytes: int
) -> None:
    """20 packets of 1,000 bytes and one of 501 over two links of 10 Gb/s and 1 us."""
    star = {"name": "single-switch", "hosts": 3, "link_rate_bps": 10 * 10**9, "link_delay_ns": 1_000}
    flow = {"name": "incast", "senders": 1, "size_bytes": 20_501}
    other = {"name": "other", "cc": "dcqcn", "start_ns": 5_000_000, "workload": flow}
    own = {"name": "own", "cc": protocol, "parameters": {}, "workload": flow}
    if protocol.startswith("tcp"):
        own["parameters"] = {"initial_window_packets": 30}
    _, flows, _ = made(planned(own, other, topology=star, workload={"name": "none"}))
    (found,) = flows[flows["group"] == "own"].itertuples()
    if protocol != "hpcc":  # whose records grow on the way
        ideal_ns = 0.8 * (21 * data_bytes + last_bytes) + 2_000
        assert found.ideal_fct_ns == pytest.approx(ideal_ns)
        assert found.fct_ns == pytest.approx(ideal_ns, abs=25)  # a frame leaves at a whole ns
    there_ns, back_ns = (math.ceil(2 * (1_000 + length * 0.8)) for length in (data_bytes, ack_bytes))
    assert found.base_rtt_ns == there_ns + back_ns
