"""Derivation of rates from the links of a flow or a port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from control_plane import programs
from control_plane.controller import Settings, switch_view
from control_plane.programs.ecn import NAMED, EcnParameters
from control_plane.programs.entries import Action, DefaultAction, Exact, TableEntry
from harness.plan.resolve import plan
from harness.plan.run import Run
from harness.plan.scenario import check
from host_agents import registry
from host_agents.nic import Nic
from p4switch.errors import UserError
from p4switch.tables import as_written
from topologies import routing

GBPS = 10**9
SLOW = "h0-0-2"


def planned(**tables: Any) -> Run:
    return plan("x", check({"workload": {"name": "incast", "size_bytes": 1000}, **tables}), Path())[0]


def mixed(**tables: Any) -> Run:
    """Return five hosts on a switch: the first has 25 Gb/s, the others 100 Gb/s."""
    links = [{"between": ["s0", SLOW], "rate_bps": 25 * GBPS}]
    topology = {"name": "single-switch", "hosts": 5, "links": links}
    return planned(**{"cc": "hpcc", "topology": topology, **tables})


def rtt_ns(run: Run, one: int, other: int) -> int:
    a, b = run.topology.hosts[one], run.topology.hosts[other]
    return routing.base_rtt_ns(run.topology, a, b, run.data_bytes, 62)


@pytest.mark.parametrize(("source", "destination", "gbps"), [(1, 0, 25), (0, 1, 25), (1, 2, 100)])
def test_a_flow_has_the_base_rtt_and_the_bdp_of_its_own_ends(source: int, destination: int, gbps: int) -> None:
    run = mixed()
    config = run.nic_configs()[source]
    nic = Nic(config, registry.resolve("hpcc"), registry.resolve_load_balancer("ecmp"))
    point = nic.open_qp(str(run.topology.hosts[destination].address), 2, 2).reaction_point
    assert point.path.base_rtt_ns == rtt_ns(run, source, destination)
    assert point.window_bytes == pytest.approx(gbps * rtt_ns(run, source, destination) / 8)
    assert point.rate_bps == (25 if source == 0 else 100) * GBPS  # a NIC starts at its own line rate


def test_a_slow_host_changes_nothing_for_flows_between_others() -> None:
    alike = planned(cc="hpcc", topology={"name": "single-switch", "hosts": 5})
    assert rtt_ns(mixed(), 1, 2) == alike.base_rtt_ns() < mixed().base_rtt_ns()


def test_where_links_are_alike_nics_are_told_of_no_peers() -> None:
    run = planned(cc="hpcc", topology={"name": "clos", "pods": 2, "hosts_per_tor": 2})
    assert {config.peers for config in run.nic_configs()} == {None}


def red_of_ports(run: Run, parameters: EcnParameters) -> dict[int, tuple[int, int]]:
    """Return (Kmin, Kmax) of each port, in bytes."""
    switch = run.topology.switches[0]
    view = switch_view(run.topology, switch, Settings(cell_bytes=80))
    entries = parameters.entries(view)
    (common,) = (entry.action for entry in entries if isinstance(entry, DefaultAction))
    found = dict.fromkeys(view.port_rates_bps, common)
    for entry in entries:
        if isinstance(entry, TableEntry) and entry.table == "ecn_threshold":
            port, red = entry.match["port"], entry.action
            assert isinstance(port, Exact)
            assert isinstance(red, Action)
            found[port.value] = red
    return {port: (80 * red.params["kmin_cells"], 80 * red.params["kmax_cells"]) for port, red in found.items()}


def test_thresholds_follow_a_ports_rate_or_are_listed_for_it() -> None:
    run = mixed(cc="dcqcn")
    fast = (400_000, 1_600_000)
    found = red_of_ports(run, EcnParameters.model_validate({}))
    assert found == {1: (100_000, 400_000), **dict.fromkeys((2, 3, 4, 5), fast)}
    listed = [{"rate_bps": 25 * GBPS, "kmin_bytes": 40_000, "kmax_bytes": 80_000, "pmax": 1.0}]
    found = red_of_ports(run, EcnParameters.model_validate({"rates": listed}))
    assert found == {1: (40_000, 80_000), **dict.fromkeys((2, 3, 4, 5), fast)}


def test_rates_are_listed_once_and_thresholds_in_order() -> None:
    def program(*rates: dict[str, Any]) -> Any:
        return mixed(cc="dcqcn", programs={"ecn": {"rates": list(rates)}})

    one = {"rate_bps": 25e9, "kmin_bytes": 4000, "kmax_bytes": 8000}
    with pytest.raises(UserError, match="rates should have each rate_bps once"):
        program(one, one)
    with pytest.raises(UserError, match=r"kmin_bytes should not exceed kmax_bytes \(100\)"):
        program({**one, "kmax_bytes": 100})


def test_a_queue_of_one_bdp_is_of_those_who_can_fill_it() -> None:
    """A host at 1 Gb/s has the largest base RTT of the network; it does not change the queues of other ports."""
    alike = planned(cc="smartt", topology={"name": "single-switch", "hosts": 5})
    links = [{"nodes": [SLOW], "rate_bps": GBPS}]
    slow = planned(cc="smartt", topology={"name": "single-switch", "hosts": 5, "links": links})

    def bdp_bytes(run: Run, port: int) -> float:
        settings = Settings(base_rtt_ns=run.base_rtt_ns(), base_rtts=run.base_rtts)
        return switch_view(run.topology, run.topology.switches[0], settings).bdp_bytes(port)

    assert bdp_bytes(slow, 2) == bdp_bytes(alike, 2)
    assert bdp_bytes(slow, 1) == pytest.approx(rtt_ns(slow, 0, 1) / 8)


def test_thresholds_by_the_name_of_who_publishes_them() -> None:
    """A value beside a name replaces that of the name. The table in the documentation has every name."""
    sonic = programs.parameters("ecn", {"settings": "sonic", "pmax": 0.5})
    assert as_written(sonic) == {
        "settings": "sonic",
        "kmin_bytes": 1_048_576,
        "kmax_bytes": 2_097_152,
        "pmax": 0.5,
        "reference_rate_bps": "none",
        "rates": [],
    }
    assert programs.parameters("ecn", as_written(sonic)) == sonic
    plain, named = (as_written(programs.parameters("ecn", given)) for given in ({}, {"settings": "hpcc"}))
    assert named == {**plain, "settings": "hpcc"}
    with pytest.raises(UserError, match="'hpcc', 'dcqcn-paper', 'sonic' or 'cumulus'"):
        programs.parameters("ecn", {"settings": "mine"})
    page = (Path(__file__).parents[3] / "docs" / "networks.md").read_text()
    assert all(f"| `{name}`" in page for name in NAMED)
