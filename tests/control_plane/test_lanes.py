"""Links and lanes that can wait for each other with the entries written: with a cycle, or without."""

from __future__ import annotations

from collections.abc import Hashable

import networkx as nx
import pytest

import topologies
from control_plane import programs
from control_plane.controller import Settings, switch_view
from control_plane.lanes import Held, Rule, cycle, dependencies, waiting_cycle
from control_plane.programs.entries import Entry
from topologies import Topology
from topologies.model import Builder

CLOS = {"hosts_per_tor": 1, "link_rate_bps": 10e9, "fabric_rate_bps": 10e9, "link_delay_ns": 1000}
NETWORKS = {
    "two pods": ("clos", {**CLOS, "pods": 2, "tors_per_pod": 2, "aggs_per_pod": 2, "spines_per_agg": 2}),
    "three pods": ("clos", {**CLOS, "pods": 3, "tors_per_pod": 2, "aggs_per_pod": 3, "spines_per_agg": 1}),
    "fat-tree": ("fat-tree", {"k": 4, "link_rate_bps": 10e9, "link_delay_ns": 1000}),
}


def network(name: str) -> Topology:
    kind, parameters = NETWORKS[name]
    return topologies.build(kind, parameters)


def written(topology: Topology, **parameters: object) -> dict[str, list[Entry]]:
    made = programs.parameters("dart", parameters)
    return {switch.name: list(made.entries(switch_view(topology, switch, Settings()))) for switch in topology.switches}


def graph(
    topology: Topology, rule: Rule | None = None, deflecting: bool = True, **parameters: object
) -> nx.DiGraph[Held]:
    return dependencies(topology, written(topology, **parameters), 3, deflecting=deflecting, rule=rule)


def ring() -> Topology:
    """Four racks and four switches above them, which alternate."""
    made = Builder("ring")
    racks = [made.switch(f"rack{i}", 0) for i in range(4)]
    above = [made.switch(f"above{i}", 1) for i in range(4)]
    for i, rack in enumerate(racks):
        made.host(f"10.0.{i}.2", rack, 10**10, 1000)
        made.link(rack, above[i], 10**10, 1000)
        made.link(rack, above[i - 1], 10**10, 1000)
    return made.build({})


class Tokens(Rule):
    """Two proposed rules: the lane follows from the tokens (four at the start), or deflected packets have a lane."""

    def __init__(self, how: str) -> None:
        self.start = 4
        self.how = how

    def may_deflect(self, state: Hashable) -> bool:
        return isinstance(state, int) and state > 0

    def after(self, state: Hashable, turned: bool, deflected: bool) -> Hashable:
        assert isinstance(state, int)
        return state - 1 if deflected else state

    def lane(self, state: Hashable) -> Hashable:
        assert isinstance(state, int)
        return {"one": 0, "escape": state == 0, "deflected": state < 4, "each": state}[self.how]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("lanes", [2, 3, 5])
def test_a_lane_for_each_turn_has_no_cycle(name: str, lanes: int) -> None:
    found = graph(network(name), lanes=lanes)
    assert cycle(found) == []
    # Packets are deflected, and every lane is used; so the network has to be free of cycles.
    assert {lane for _, lane in found} == set((3, 4, 5, 2, 1)[:lanes])


@pytest.mark.parametrize("name", NETWORKS)
def test_ports_of_equal_cost_make_no_turn(name: str) -> None:
    found = graph(network(name), candidates="equal-cost")
    assert cycle(found) == []
    assert {lane for _, lane in found} == {3}


@pytest.mark.parametrize("name", NETWORKS)
def test_what_waits_for_its_own_host_may_be_deflected_too(name: str) -> None:
    assert cycle(graph(network(name), deflect_host_ports=True)) == []


@pytest.mark.parametrize("deflected", [True, False])
def test_flows_inside_one_rack_come_straight_back_when_they_are_deflected(deflected: bool) -> None:
    topology = network("two pods")
    found = graph(topology, deflect_host_ports=deflected)
    back = [
        (switch, lane)
        for ((switch, up), lane), ((above, down), _) in found.edges
        if topology.switch_by_name[switch].tier == 0
        and (topology.ports[switch][up].node, topology.ports[above][down].node) == (above, switch)
    ]
    assert any(lane == 3 for _, lane in back) == deflected


@pytest.mark.parametrize("name", NETWORKS)
def test_without_a_rule_there_are_cycles(name: str) -> None:
    assert cycle(graph(network(name), lane_rule="none")) != []


@pytest.mark.parametrize("how", ["one", "escape", "deflected", "each"])
def test_lanes_by_tokens_have_cycles(how: str) -> None:
    """Normal routing also makes the turn from down to up, one switch later and without a token."""
    assert cycle(graph(network("two pods"), Tokens(how))) != []


def test_routes_alone_have_none_in_a_tree_of_switches() -> None:
    found = graph(network("three pods"), deflecting=False)
    assert cycle(found) == []
    assert {lane for _, lane in found} == {3}


@pytest.mark.parametrize("lanes", [(3, 4), (3, 4, 5)])
@pytest.mark.parametrize("name", NETWORKS)
def test_where_no_strayed_packets_wait_in_a_cycle_none_do(name: str, lanes: tuple[int, ...]) -> None:
    entries = written(network(name), lanes=len(lanes))
    assert waiting_cycle(network(name), entries, lanes, deflecting=True) == []
    strayed = dependencies(network(name), entries, lanes[-1], deflecting=False, strayed=True)
    assert cycle(strayed) == []
    # All of the last lane's, and some that no packet meets.
    assert strayed.edges >= {edge for edge in graph(network(name), lanes=len(lanes)).edges if edge[0][1] == lanes[-1]}


def test_routes_without_a_cycle_may_have_one_for_what_is_deflected() -> None:
    """Routes turn up once, at the rack in the middle; each link leads to another tier.

    A packet that turned before, on its way back from a deflection, turns again in the last lane.
    """
    topology = ring()
    entries = written(topology)
    assert waiting_cycle(topology, entries, (3, 4), deflecting=False) == []
    assert waiting_cycle(topology, entries, (3, 4), deflecting=True) != []
