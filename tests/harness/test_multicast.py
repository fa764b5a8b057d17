"""Multicast in the virtual world: each host of a group gets each byte once, and the ledger counts each copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.measure import metrics, summary
from harness.plan import resolve, scenario
from harness.plan.run import Run
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies.groups import Group

SCENARIO = """
cc = ["{cc}"]
[topology]
name = "fat-tree"
k = 4
[workload]
name = "multicast"
size_bytes = 50_000
senders = {senders}
{receivers}
[nic]
ack_every_packets = 16
reliability = "{reliability}"
"""


def planned(
    cc: str = "dcqcn", senders: int = 1, receivers: int | None = None, reliability: str = "go-back-n", more: str = ""
) -> Run:
    wanted = "" if receivers is None else f"receivers = {receivers}"
    text = SCENARIO.format(cc=cc, senders=senders, receivers=wanted, reliability=reliability) + more
    (run,) = resolve.plan("multicast", scenario.check(scenario.parse(text)), Path())
    return run


@pytest.mark.parametrize(
    ("cc", "senders", "receivers", "reliability"),
    [
        ("dcqcn", 1, None, "go-back-n"),
        ("hpcc", 1, None, "go-back-n"),
        ("none", 3, 6, "selective-repeat"),
    ],
)
def test_every_byte_arrives_once_at_each_member(cc: str, senders: int, receivers: int | None, reliability: str) -> None:
    run = planned(cc, senders, receivers, reliability)
    world = VirtualWorld(run)
    recording = world.run()
    assert recording.ended == "done"
    members = receivers or 15
    for number, group in enumerate(run.groups, start=2):
        assert len(group.members) == members
        for host in range(16):
            qp = world.network.nics[host].queue_pairs.get(number)
            if host in group.members:
                assert qp is not None
                counted = (qp.stats.bytes_delivered, qp.stats.packets_received, qp.stats.duplicates)
                assert counted == (50_000, 50, 0)
            else:
                assert qp is None or host == group.source
    ledger = recording.conservation
    assert ledger["copied"] == senders * 50 * (members - 1)
    assert (ledger["balance"], ledger["drop_program_ingress"], ledger["drop_buffer"]) == (0, 0, 0)
    assert recording.nic_totals["misdelivered"] == recording.nic_totals["unknown_qp"] == 0
    table = metrics.messages_table(run, recording)
    assert table["destination"].tolist() == [str(group.address) for group in run.groups]
    busiest = summary.bottleneck(run, recording, table)
    assert busiest is not None
    assert busiest["leads_to"] in {run.topology.hosts[host].name for group in run.groups for host in group.members}
    assert 0 < busiest["busy"] <= 1
    for record in recording.flows:
        assert record.columns["packets_sent"] == 50
        records_bytes = 50 * 5 * 8 if cc == "hpcc" else 0  # of telemetry, one a switch on the way
        assert 0 <= record.delivered_wire_bytes - 50 * run.data_bytes <= records_bytes


@pytest.mark.parametrize("reliability", ["go-back-n", "selective-repeat"])
def test_what_a_broken_link_lost_is_sent_again(reliability: str) -> None:
    more = "rto_ns = 50_000\n" + "".join(
        f'[[events]]\ntime_ns = {time_ns}\nlink = ["h1-0-2", "tor1-0"]\nup = {up}\n'
        for time_ns, up in ((6_000, "false"), (9_000, "true"))
    )
    world = VirtualWorld(planned(reliability=reliability, more=more))
    recording = world.run()
    assert recording.ended == "done"
    (record,) = recording.flows
    assert recording.conservation["drop_link_down"] > 0
    assert record.columns["retransmitted"] > 0
    delivered = [nic.queue_pairs[2].stats.bytes_delivered for nic in world.network.nics]
    assert delivered == [0, *[50_000] * 15]


def test_a_member_that_cannot_be_reached_fails_the_flow() -> None:
    topology = planned().topology
    host = topology.hosts[9]
    link = f'["{host.name}", "{topology.uplink(host).node}"]'
    more = f"rto_ns = 50_000\n[[events]]\ntime_ns = 5_000\nlink = {link}\nup = false\n"
    run = planned(more=more)
    recording = VirtualWorld(run).run()
    assert recording.ended == "failed"
    (record,) = recording.flows
    assert (record.delivered_ns, record.completed_ns) == (-1, -1)
    assert record.columns["timeouts"] > 0
    assert recording.conservation["balance"] == 0


def test_groups_are_those_of_the_workload() -> None:
    assert planned(senders=2, receivers=3).groups == (Group(1, 0, (1, 2, 3)), Group(2, 1, (2, 3, 4)))
    assert str(Group(257, 0, (1, 2)).address) == "239.0.1.1"
    alone = planned(receivers=1)
    assert alone.groups == ()
    assert "MULTICAST" not in dict(alone.build(alone.switch_programs[0]).defines)
    run = planned()
    assert dict(run.build(run.switch_programs[0]).defines) == {"MULTICAST": "1"}


def test_a_flow_from_several_hosts_is_refused_when_it_is_planned(tmp_path: Path) -> None:
    file = tmp_path / "reduce.py"
    file.write_text(
        "from p4cc.workloads import Flow, Traffic, WorkloadParameters, register\n\n"
        "@register('reduce')\nclass Reduce(WorkloadParameters):\n    def generate(self, setting):\n"
        "        return Traffic([Flow(0, 1, 1000, 0), Flow(0, 1, 1000, 0, further_sources=(2,))])\n"
    )
    tables = {"workload": {"name": str(file)}, "topology": {"name": "single-switch", "hosts": 3}, "cc": "dcqcn"}
    with pytest.raises(UserError, match="a flow from 2 to 1 hosts"):
        resolve.plan("reduce", scenario.check(tables), tmp_path)


def test_flows_to_hosts_that_are_no_group() -> None:
    run = planned(receivers=3)
    for sources, destinations in (((0,), (1, 2)), ((0, 1), (2,))):
        with pytest.raises(UserError, match=f"a flow from {len(sources)} to {len(destinations)} hosts"):
            run.addresses(sources, destinations)
