"""Framing of single links: the bytes that they charge, and its effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import topologies
from control_plane.controller import Settings, switch_view
from harness.measure.metrics import EmptyNetwork
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from harness.worlds.virtual import VirtualWorld
from p4switch.errors import UserError
from topologies.edges import written, written_csv


def planned(**tables: Any) -> Run:
    workload = {"name": "incast", "size_bytes": 40_000, "senders": 3}
    topology = {"name": "clos", "pods": 2, "hosts_per_tor": 2}
    (run,) = plan("x", check({"workload": workload, "topology": topology, "cc": "dcqcn", **tables}), Path())
    return run


def with_links(*links: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "clos", "pods": 2, "hosts_per_tor": 2, "links": list(links), **more}


def ends(run: Run, workers: int = 1) -> list[tuple[int, int, int]]:
    recording = VirtualWorld(run, workers=workers).run()
    assert recording.ended == "done"
    return [(flow.delivered_ns, flow.completed_ns, flow.delivered_wire_bytes) for flow in recording.flows]


@pytest.mark.parametrize("cc", ["dcqcn", "hpcc", "rcp", "expresspass", "sperc", "swift"])
def test_framing_of_every_link_is_framing_of_all(cc: str) -> None:
    """Check what links charge, what NICs pace by, and what programs count."""
    everywhere = ends(planned(cc=cc, framing=True))
    assert ends(planned(cc=cc, topology=with_links({"framing_bytes": 24}))) == everywhere
    assert ends(planned(cc=cc)) != everywhere
    without = with_links({"framing_bytes": 0})
    assert ends(planned(cc=cc, framing=True, topology=without)) == ends(planned(cc=cc))


def test_a_flow_takes_what_its_links_charge() -> None:
    """Check that an empty network gives the ideal time and the links' base RTT."""
    flow = {"name": "incast", "size_bytes": 100_000, "senders": 1}
    link = {"nodes": ["h0-*"], "framing_bytes": 500}
    plain, run = planned(workload=flow), planned(workload=flow, topology=with_links(link))
    (one,) = VirtualWorld(run).run().flows
    (other,) = VirtualWorld(plain).run().flows
    assert one.delivered_ns - one.flow.start_ns == pytest.approx(EmptyNetwork(run).fct_ns(one.flow, 100_000), abs=2)
    assert one.delivered_ns > 1.3 * other.delivered_ns
    packets = -(-100_000 // run.scenario.nic.mtu_bytes)
    charged = run.topology.uplink(run.topology.hosts[one.flow.destination]).extra_bytes
    assert one.delivered_wire_bytes - other.delivered_wire_bytes == packets * charged
    assert run.base_rtt_ns() > plain.base_rtt_ns()


def test_hosts_and_ports_know_the_framing_of_their_own_links() -> None:
    run = planned(framing=True, cc="hpcc", topology=with_links({"nodes": ["h0-0-2"], "framing_bytes": 38}))
    first, *others = run.nic_configs()
    assert first.frame_overhead_bytes == 38
    assert {config.frame_overhead_bytes for config in others} == {24}
    host = run.topology.hosts[0]
    there = run.topology.uplink(host)
    switch = run.topology.switch_by_name[there.node]
    view = switch_view(run.topology, switch, Settings(frame_overhead_bytes=run.scenario.framing_bytes))
    assert {port: view.overhead_bytes(port) for port in view.port_rates_bps} == {
        port: 38 if port == there.port else 24 for port in run.topology.ports[switch.name]
    }


def test_workers_are_alike() -> None:
    run = planned(cc="hpcc", topology=with_links({"tiers": ["hosts", 0], "framing_bytes": 38}))
    assert ends(run, workers=2) == ends(run)


def test_a_rate_that_changes_leaves_the_framing(tmp_path: Path) -> None:
    link = {"nodes": ["h0-*"], "framing_bytes": 500}
    flow = {"name": "incast", "size_bytes": 100_000, "senders": 1}
    run = planned(workload=flow, topology=with_links(link))
    (flow_ends,) = ends(run)
    host = run.topology.hosts[run.traffic().flows[0].source]
    event = {"time_ns": 0, "link": [run.topology.uplink(host).node, host.name], "rate_bps": 100_000_000_000}
    assert ends(planned(workload=flow, topology=with_links(link), events=[event])) == [flow_ends]


def test_lists_of_links_say_framing(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("a,b,framing_bytes\ns0,h0,38\ns0,h1,\n")
    network = topologies.build("edges", {"file": str(tmp_path / "net.csv")})
    assert [link.framing_bytes for link in network.links] == [38, None]
    assert "framing_bytes = 38 }" in written(network)
    for name, text in (("again.toml", written(network)), ("again.csv", written_csv(network))):
        (tmp_path / name).write_text(text)
        again = topologies.build("edges", {"file": str(tmp_path / name)})
        assert [link.framing_bytes for link in again.links] == [38, None]
    plain = topologies.build("single-switch", {"hosts": 2})
    assert written_csv(plain).splitlines()[0] == "a,b,rate_bps,delay_ns,loss"


def test_nic_switches_have_the_framing_of_the_host() -> None:
    run = planned(topology=with_links({"nodes": ["h0-0-2"], "framing_bytes": 38}, nic_switches=True))
    framings = [link.framing_bytes for link in run.topology.links if "nic-h0-0-2" in (link.a, link.b)]
    assert framings == [38, 38]


def test_flits_have_no_framing() -> None:
    with pytest.raises(UserError, match="framing: 'flits', and links have framing_bytes of their own"):
        planned(framing="flits", topology=with_links({"framing_bytes": 24}))
