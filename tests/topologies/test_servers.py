"""Servers with several NICs: hosts with several links in files, bonds, and networks of several planes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import topologies
from harness.plan.resolve import plan, resolved
from harness.plan.run import Run
from harness.plan.scenario import check, dump, parse
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError

# Hosts 0 and 1 have links to both switches of the first tier, host 2 has one; 3 and 4 are switches.
NS3 = "6 3 7\n3 4 5\n0 3 25Gbps 1us 0\n0 4 25Gbps 1us 0\n1 4 25Gbps 1us 0\n1 3 25Gbps 1us 0\n2 3 25Gbps 1us 0\n"
NS3 += "3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n"
PLANES: dict[str, Any] = {"name": "multi-plane", "planes": 3, "of": {"name": "leaf-spine", "hosts_per_leaf": 2}}


def planned(folder: Path, topology: dict[str, Any], **tables: Any) -> Run:
    (folder / "x.txt").write_text(NS3)
    return plan("x", check({"cc": "none", "topology": topology, **tables}), folder)[0]


def of_file(folder: Path, **values: str) -> dict[str, Any]:
    return {"name": "ns3", "file": str(folder / "x.txt"), **values}


def test_hosts_of_files_with_several_links_are_servers(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(NS3)
    topology = topologies.build("ns3", {"file": str(tmp_path / "x.txt")})
    assert [host.name for host in topology.hosts] == ["h0.0", "h1.0", "h2", "h0.1", "h1.1"]
    assert topology.servers == {"h0": (0, 3), "h1": (1, 4), "h2": (2,)}
    uplinks = [topology.uplink(host).node for host in topology.hosts]
    assert uplinks == ["s3", "s4", "s3", "s4", "s3"]


def test_flows_of_a_server_take_its_nics_in_turn(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text("6\n" + "0 1 3 100 5000 0\n" * 4 + "0 2 3 100 5000 0\n2 1 3 100 5000 0\n")
    run = planned(tmp_path, of_file(tmp_path), workload={"name": "ns3", "file": "flow.txt"})
    ends = [(flow.source, flow.destination) for flow in run.traffic().flows]
    assert Counter(ends[:4]) == {(0, 1): 2, (3, 4): 2}
    assert ends[4][1] == 2
    assert ends[5][0] == 2
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"


def test_a_bond_is_one_nic_whose_flows_take_both_links(tmp_path: Path) -> None:
    """Eight flows of one host are hashed onto its two links, and have twice the rate of one."""
    (tmp_path / "flow.txt").write_text("16\n" + "0 1 3 100 200000 0\n" * 16)
    topology = of_file(tmp_path, several_links="bond")
    run = planned(tmp_path, topology, workload={"name": "ns3", "file": "flow.txt"})
    assert [host.name for host in run.topology.hosts] == ["h0", "h1", "h2"]
    assert run.topology.uplink(run.topology.hosts[0]) == run.topology.ports["h0"][1]
    assert run.topology.uplink(run.topology.hosts[0]).rate_bps == 50_000_000_000
    recording = VirtualWorld(run).run()
    assert recording.ended == "done"
    took_ns = max(flow.delivered_ns for flow in recording.flows)
    alone_ns = 16 * 200_000 * 8 / 25
    assert 0.5 * alone_ns < took_ns < 0.9 * alone_ns


def test_planes_meet_in_servers_only(tmp_path: Path) -> None:
    run = planned(tmp_path, PLANES, workload={"name": "permutation", "size_bytes": 20_000})
    assert (len(run.topology.hosts), len(run.topology.servers)) == (12, 4)
    flows = run.traffic().flows
    assert len(flows) == 4
    assert all(flow.source // 4 == flow.destination // 4 for flow in flows)
    assert len({flow.source // 4 for flow in flows}) == 3
    one, two = VirtualWorld(run).run(), VirtualWorld(run, workers=2).run()
    assert one.ended == "done"
    assert list(map(repr, one.flows)) == list(map(repr, two.flows))
    (again,) = plan("x", check(parse(dump(resolved(run)))), tmp_path)
    assert [(flow.source, flow.destination) for flow in again.traffic().flows] == [
        (flow.source, flow.destination) for flow in flows
    ]


def test_an_all_reduce_of_several_rings_takes_all_nics_of_each_server(tmp_path: Path) -> None:
    """Three rings over three planes take about a third of the time of one ring, which has one NIC of each server."""
    ended_ns = {}
    for rings in (1, 3):
        workload = {"name": "allreduce", "size_bytes": 1_200_000, "rings": rings}
        run = planned(tmp_path, PLANES, workload=workload)
        used = Counter(flow.source % 4 for flow in run.traffic().flows)
        assert used == dict.fromkeys(range(4), rings)
        assert len({flow.source for flow in run.traffic().flows}) == 4 * rings
        recording = VirtualWorld(run).run()
        assert recording.ended == "done"
        ended_ns[rings] = recording.workload["job_completion_ns"]
    assert ended_ns[1] > 6 * 300_000 * 8 / 100
    assert ended_ns[3] < 0.5 * ended_ns[1]


def test_what_starts_later_is_in_turn_for_workers_too(tmp_path: Path) -> None:
    run = planned(tmp_path, PLANES, workload={"name": "alltoall", "window": 1, "size_bytes": 10_000})
    one, two = VirtualWorld(run).run(), VirtualWorld(run, workers=2).run()
    assert len(one.flows) == 12
    assert list(map(repr, one.flows)) == list(map(repr, two.flows))


def test_workloads_see_a_server_with_the_rate_of_all_its_nics(tmp_path: Path) -> None:
    """Check that a load is a share of all NICs' rate, and that groups name servers."""
    poisson = {"name": "poisson", "distribution": "hadoop", "load": 0.3, "duration_ns": 300_000}
    three, one = (
        sum(flow.size_bytes for flow in planned(tmp_path, topology, workload=poisson).traffic().flows)
        for topology in (PLANES, PLANES["of"])
    )
    assert three > 2 * one
    group = {"name": "own", "hosts": ["h0-0-*"], "workload": {"name": "permutation", "size_bytes": 5_000}}
    run = planned(tmp_path, PLANES, workload={"name": "none"}, groups=[group])
    assert {flow.source % 4 for flow in run.traffic().flows} == {0, 1}


def test_what_servers_cannot_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="without multicast and collectives"):
        planned(tmp_path, PLANES, workload={"name": "multicast", "size_bytes": 5_000})
    with pytest.raises(UserError, match=r"topology\.of: expected a table with the name of a topology"):
        topologies.build("multi-plane", {"of": {}})
    with pytest.raises(UserError, match=r"topology\.of\.kk"):
        topologies.build("multi-plane", {"of": {"name": "fat-tree", "kk": 4}})


def event_links(run: Run) -> list[set[str]]:
    return [{link.a, link.b} for link in (run.topology.links[change.link] for change in run.link_changes())]


def test_events_name_servers_and_bonds_as_the_file_does(tmp_path: Path) -> None:
    events = [{"link": ["h0", "s4"], "up": False}, {"host": "h1", "up": False}]
    run = planned(tmp_path, of_file(tmp_path), workload={"name": "permutation"}, events=events)
    assert event_links(run) == [{"h0.1", "s4"}, {"h1.0", "s4"}, {"h1.1", "s3"}]
    bond = of_file(tmp_path, several_links="bond")
    events[0] |= {"rate_bps": 1e9, "towards": "h0"}
    run = planned(tmp_path, bond, workload={"name": "permutation"}, events=events)
    assert event_links(run) == [{"nic-h0", "s4"}, {"nic-h1", "h1"}]
    (change, _) = run.link_changes()
    link = run.topology.links[change.link]
    assert (link.a, link.b)[change.direction or 0] == "s4"  # which sends towards h0
    known = r"expected one of h0, h0\.0, h0\.1, h1, h1\.0, h1\.1, h2$"
    with pytest.raises(UserError, match=f"events.0.host: topology 'ns3' has none called 'h7'; {known}"):
        planned(tmp_path, of_file(tmp_path), workload={"name": "permutation"}, events=[{"host": "h7", "up": True}])


def test_a_bond_goes_on_with_the_links_that_are_up(tmp_path: Path) -> None:
    """Both ends of a bond and the other switches remove the failed link from their groups."""
    (tmp_path / "flow.txt").write_text("8\n" + "0 1 3 100 200000 0\n" * 4 + "1 0 3 100 200000 0\n" * 4)
    events = [{"time_ns": 20_000, "link": ["h0", "s4"], "up": False}]
    tables = {"workload": {"name": "ns3", "file": "flow.txt"}, "events": events, "reroute_after_ns": 10_000}
    bond = planned(tmp_path, of_file(tmp_path, several_links="bond"), **tables)
    recording = VirtualWorld(bond).run()
    assert recording.ended == "done"
    nics = VirtualWorld(planned(tmp_path, of_file(tmp_path), **tables, limit_ns=5_000_000)).run()
    assert 0 < sum(flow.completed_ns < 0 for flow in nics.flows) < 8  # a flow stays on its NIC
