"""Networks: their shape, addresses and ports, and parameters that are impossible."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

import topologies
from p4switch.errors import UserError
from topologies import Topology
from topologies.routing import path


def graph(topology: Topology) -> nx.MultiGraph[str]:
    return nx.MultiGraph((link.a, link.b) for link in topology.links)


ALL = [
    ("single-switch", {"hosts": 17}),
    ("dumbbell", {"pairs": 3}),
    ("parking-lot", {"switches": 4}),
    ("fat-tree", {"k": 2}),
    ("fat-tree", {"k": 4}),
    ("fat-tree", {"k": 8, "oversubscription": 4}),
    ("clos", {}),
    ("leaf-spine", {}),
    ("leaf-spine", {"leaves": 3, "spines": 4, "links_per_spine": 2}),
    ("blades", {}),
    ("torus", {}),
    ("torus", {"sizes": [3, 2, 4], "hosts_per_switch": 2}),
    ("dragonfly", {}),
    ("dragonfly", {"groups": 3, "switches_per_group": 4, "global_links": 1}),
    ("rails", {}),
    ("rails", {"servers": 5, "servers_per_unit": 2, "gpus_per_server": 4, "spines": 2}),
    ("random", {}),
    ("random", {"switches": 1, "hosts": 2}),
    ("blades", {"blades": 3, "groups_per_blade": 2, "nodes_per_group": 1}),
]


@pytest.mark.parametrize(("name", "parameters"), ALL)
def test_every_port_has_one_link_and_is_numbered_from_one(name: str, parameters: dict[str, int]) -> None:
    topology = topologies.build(name, parameters)
    for node, ports in topology.ports.items():
        assert sorted(ports) == list(range(1, len(ports) + 1)), node
    for host in topology.hosts:
        assert len(topology.ports[host.name]) == 1
    assert nx.is_connected(graph(topology))
    assert len({host.address for host in topology.hosts}) == len(topology.hosts)
    assert [host.index for host in topology.hosts] == list(range(len(topology.hosts)))


@pytest.mark.parametrize("k", [4, 6, 8, 16])
def test_fat_tree_has_the_textbook_numbers(k: int) -> None:
    topology = topologies.build("fat-tree", {"k": k})
    assert len(topology.hosts) == k**3 // 4
    assert len(topology.switches) == 5 * k**2 // 4
    assert all(len(topology.ports[switch.name]) == k for switch in topology.switches)
    assert len(topology.links) == 3 * k**3 // 4


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_oversubscription_is_at_the_tors_uplinks(ratio: int) -> None:
    topology = topologies.build("fat-tree", {"k": 8, "oversubscription": ratio})
    hosts = set(topology.host_by_name)
    for switch in topology.switches:
        rates = {"down": 0, "up": 0}
        for there in topology.ports[switch.name].values():
            tier = -1 if there.node in hosts else next(s.tier for s in topology.switches if s.name == there.node)
            rates["down" if tier < switch.tier else "up"] += there.rate_bps
        if switch.tier == 0:
            assert rates["down"] == ratio * rates["up"]
        elif switch.tier == 1:
            assert rates["down"] == rates["up"]


def test_clos_is_the_network_of_the_papers() -> None:
    topology = topologies.build("clos", {})
    assert len(topology.hosts) == 320
    assert [sum(switch.tier == tier for switch in topology.switches) for tier in (0, 1, 2)] == [20, 20, 16]
    hosts = set(topology.host_by_name)
    for link in topology.links:
        assert link.rate_bps == (100e9 if link.b in hosts else 400e9)
        assert link.delay_ns == 1000
    # Not over-subscribed, and each spine reaches every pod once.
    for switch in topology.switches:
        there = [neighbour.node for neighbour in topology.ports[switch.name].values()]
        if switch.tier == 2:
            assert sorted(name.split("-")[0] for name in there) == [f"agg{pod}" for pod in range(5)]
        if switch.tier == 0:
            assert sum(name in hosts for name in there) == 16
            assert len(there) == 20


def test_blades_are_the_direct_network_of_accurate() -> None:
    """Figure 5(a): 2 blades of 4 groups of 4 nodes, each level fully connected, and two links between the blades."""
    topology = topologies.build("blades", {"link_rate_bps": 10e9})
    assert len(topology.hosts) == len(topology.switches) == 32
    between = [link for link in topology.links if {link.a[:2], link.b[:2]} == {"n0", "n1"}]
    assert len(between) == 2
    assert len(topology.links) == 32 + 8 * 6 + 2 * 6 + 2
    degrees = sorted(len(topology.ports[switch.name]) for switch in topology.switches)
    assert degrees == [4] * 24 + [7] * 6 + [9] * 2
    paths = [path(topology, a, b) for a in topology.hosts for b in topology.hosts if a is not b]
    assert max(len(links) for links in paths) == 2 + 5


def test_no_buffers_of_blades_can_wait_for_each_other_in_a_circle() -> None:
    """Check for circles of links that wait for each other, on which PFC would deadlock."""
    for parameters in ({}, {"blades": 3, "groups_per_blade": 2, "nodes_per_group": 2}):
        topology = topologies.build("blades", parameters)
        waits: nx.DiGraph[object] = nx.DiGraph()
        for a in topology.hosts:
            for b in topology.hosts:
                if a is not b:
                    waits.add_edges_from(pairwise((there.node, there.port) for there in path(topology, a, b)))
        assert nx.is_directed_acyclic_graph(waits)


def test_addresses_are_pod_rack_host() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    host = topology.hosts[-1]
    assert str(host.address) == "10.3.1.3"
    assert host.mac == bytes([2, 0, 10, 3, 1, 3])
    assert topology.uplink(host).node == "tor3-1"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("fat-tree", {"k": 5}, "topology.k: should be even"),
        ("fat-tree", {"k": 0}, "topology.k: should be greater than or equal to 2"),
        ("fat-tree", {"link_rate_bps": 0}, "topology.link_rate_bps: should be greater than 0, got 0"),
        ("fat-tree", {"link_rate_bps": -1}, "topology.link_rate_bps"),
        ("fat-tree", {"link_delay_ns": -1}, "topology.link_delay_ns"),
        ("fat-tree", {"k": "four"}, "topology.k: should be a valid integer, got 'four'"),
        ("fat-tree", {"kk": 4}, "topology.kk: no such key; did you mean 'k'?"),
        ("fat-tree", {"k": 8, "oversubscription": 3}, "oversubscription 3 should divide"),
        ("fattree", {}, "no topology 'fattree'; did you mean 'fat-tree'?"),
        ("single-switch", {"hosts": 1}, "topology.hosts"),
        ("clos", {"pods": 0}, "topology.pods"),
    ],
)
def test_what_cannot_exist_is_said_in_one_line(name: str, parameters: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        topologies.build(name, parameters)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_rates_may_be_written_as_floats_without_fraction() -> None:
    assert topologies.build("fat-tree", {"link_rate_bps": 400e9}).links[0].rate_bps == 400_000_000_000
    with pytest.raises(UserError, match="link_rate_bps"):
        topologies.build("fat-tree", {"link_rate_bps": 0.5})


def test_nic_switches_stand_in_the_hosts_links() -> None:
    plain = topologies.build("parking-lot", {"switches": 2})
    topology = topologies.build("parking-lot", {"switches": 2, "nic_switches": True})
    assert len(topology.switches) == len(plain.switches) + len(plain.hosts)
    assert len({switch.device_id for switch in topology.switches}) == len(topology.switches)
    for host in topology.hosts:
        nic = topology.uplink(host)
        assert nic.node == f"nic-{host.name}"
        network = topology.ports[nic.node][2]
        assert (network.node, network.port) == (plain.uplink(host).node, plain.uplink(host).port)
        assert (network.rate_bps, network.delay_ns) == (plain.uplink(host).rate_bps, plain.uplink(host).delay_ns)


@pytest.mark.parametrize("seed", range(10))
def test_random_networks_are_connected_and_made_of_what_was_asked_for(seed: int) -> None:
    wanted = {"switches": 6, "extra_links": 3, "hosts": 9, "rates_bps": [10e9, 25e9], "seed": seed}
    topology = topologies.build("random", wanted)
    assert (len(topology.switches), len(topology.hosts), len(topology.links)) == (6, 9, 5 + 3 + 9)
    assert nx.is_connected(graph(topology))
    assert {link.rate_bps for link in topology.links} <= {10_000_000_000, 25_000_000_000}
    assert topology.links == topologies.build("random", wanted).links
    assert topology.links != topologies.build("random", {**wanted, "seed": seed + 1}).links


def test_a_torus_is_the_product_of_rings() -> None:
    topology = topologies.build("torus", {"sizes": [3, 2, 5]})
    plane = nx.cartesian_product(nx.cycle_graph(3), nx.path_graph(2))
    expected: nx.Graph[Any] = nx.cartesian_product(plane, nx.cycle_graph(5))
    switches = topology.switch_by_name
    between = [(link.a, link.b) for link in topology.links if link.a in switches and link.b in switches]
    found: nx.Graph[Any] = nx.Graph(between)
    assert nx.is_isomorphic(found, expected)


@pytest.mark.parametrize(("groups", "a", "h"), [(9, 4, 2), (5, 4, 2), (3, 4, 1), (13, 4, 3), (2, 1, 1)])
def test_a_dragonflys_groups_are_all_joined_and_no_switch_has_too_many_links(groups: int, a: int, h: int) -> None:
    topology = topologies.build("dragonfly", {"groups": groups, "switches_per_group": a, "global_links": h})
    between: dict[frozenset[str], int] = {}
    of_switch: dict[str, int] = {}
    for link in topology.links:
        ends = [end[1:].split("-")[0] for end in (link.a, link.b)]
        if link.a.startswith("s") and link.b.startswith("s") and ends[0] != ends[1]:
            between[frozenset(ends)] = between.get(frozenset(ends), 0) + 1
            for end in (link.a, link.b):
                of_switch[end] = of_switch.get(end, 0) + 1
    assert len(between) == groups * (groups - 1) // 2
    assert set(between.values()) == {a * h // (groups - 1)}
    assert max(of_switch.values()) <= h
    paths = topologies.routing.base_rtts(topology, 1000, 100).by_switches
    assert max(paths) <= 4  # local, global, local


def test_gpus_of_one_place_are_on_one_rail() -> None:
    topology = topologies.build("rails", {"servers": 32, "servers_per_unit": 16})
    for rank, host in enumerate(topology.hosts):
        assert topology.uplink(host).node == f"rail{rank // 8 // 16}-{rank % 8}"
    one, same, other = topology.hosts[0], topology.hosts[8], topology.hosts[9]
    assert [len(path(topology, one, there)) for there in (same, other)] == [2, 4]


def test_dragonflies_and_tori_that_cannot_be() -> None:
    with pytest.raises(UserError, match="8 global links of a group do not reach 9 other groups"):
        topologies.build("dragonfly", {"groups": 10})
    with pytest.raises(UserError, match="should make at most 65536 switches"):
        topologies.build("torus", {"sizes": [1024, 1024]})
