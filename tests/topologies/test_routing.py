"""Routes lead every packet to its host by shortest paths, use all of them, and need few entries."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import permutations

import networkx as nx
import pytest

import topologies
from tests.topologies.test_topologies import ALL
from topologies import Topology, routing


def lookup(table: Sequence[topologies.Route], address: IPv4Address) -> tuple[int, ...]:
    matching = [route for route in table if address in route.prefix]
    return max(matching, key=lambda route: route.prefix.prefixlen).ports if matching else ()


def tables_of(topology: Topology) -> dict[str, Sequence[topologies.Route]]:
    return {switch.name: topologies.routes(topology, switch.name) for switch in topology.switches}


@pytest.mark.parametrize(("name", "parameters"), ALL)
def test_next_hops_are_those_of_all_shortest_paths(name: str, parameters: dict[str, int]) -> None:
    topology = topologies.build(name, parameters)
    tables = tables_of(topology)
    graph = nx.Graph((link.a, link.b) for link in topology.links)
    for host in [*topology.hosts[:3], topology.hosts[-1]]:
        distance = nx.single_source_shortest_path_length(graph, host.name)
        for switch, table in tables.items():
            nearer = {
                port for port, there in topology.ports[switch].items() if distance[there.node] == distance[switch] - 1
            }
            # A host is no way through.
            nearer = {
                p for p in nearer if topology.ports[switch][p].node not in set(topology.host_by_name) - {host.name}
            }
            assert set(lookup(table, host.address)) == nearer, (switch, host.name)


def test_a_large_tree_needs_few_entries_a_switch() -> None:
    topology = topologies.build("fat-tree", {"k": 16})
    assert max(map(len, tables_of(topology).values())) <= 16


@pytest.mark.parametrize(("name", "parameters"), ALL)
def test_a_prefix_is_listed_once(name: str, parameters: dict[str, int]) -> None:
    for table in tables_of(topologies.build(name, parameters)).values():
        assert len({route.prefix for route in table}) == len(table)


def test_unknown_pods_are_dropped_at_the_top() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    assert lookup(topologies.routes(topology, "spine0"), IPv4Address("10.9.0.2")) == ()


def test_hosts_of_one_rack_prefix_on_two_switches_get_routes_of_their_own() -> None:
    builder = topologies.model.Builder("odd")
    left, right = builder.switch("left", 0), builder.switch("right", 0)
    builder.host("10.0.0.2", left, 10**9, 0)
    builder.host("10.0.0.3", right, 10**9, 0)
    builder.link(left, right, 10**9, 0)
    topology = builder.build({})
    assert [(str(r.prefix), r.ports) for r in topologies.routes(topology, "left")] == [
        ("10.0.0.2/32", (1,)),
        ("10.0.0.3/32", (2,)),
    ]


def test_base_rtt_of_one_switch_is_the_sum_of_its_parts() -> None:
    topology = topologies.build("single-switch", {"hosts": 3})
    a, b = topology.hosts[:2]
    # 100 Gb/s is 12.5 bytes a nanosecond: 1000 bytes take 80 ns on each of two links, 100 bytes take 8.
    assert routing.base_rtt_ns(topology, a, b, 1000, 100) == 2 * (1000 + 80) + 2 * (1000 + 8)
    assert routing.base_rtts(topology, 1000, 100).by_switches == {1: 4176}
    assert routing.base_rtts(topology, 1000, 100, 400).by_switches == {1: 4976}


def test_largest_base_rtt_is_between_pods() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    pairs = [(a, b) for a in topology.hosts for b in topology.hosts if a is not b]
    assert max(routing.base_rtts(topology, 1058, 62).by_switches.values()) == max(
        routing.base_rtt_ns(topology, a, b, 1058, 62) for a, b in pairs
    )


@pytest.mark.parametrize(("name", "parameters"), ALL)
def test_base_rtts_are_those_of_the_paths(name: str, parameters: dict[str, int]) -> None:
    """All pairs of hosts have the base RTT of their path, computed for the whole network and for single pairs."""
    topology = topologies.build(name, parameters)
    expected: dict[int, int] = {}
    for a, b in permutations(topology.hosts[:20] + topology.hosts[-20:], 2):
        if a is not b:
            hops = len(routing.path(topology, a, b)) - 1
            expected[hops] = max(expected.get(hops, 0), routing.base_rtt_ns(topology, a, b, 1058, 62, 300))
    found = routing.base_rtts(topology, 1058, 62, 300).by_switches
    if len(topology.hosts) <= 40:
        assert found == expected
    assert all(found[hops] >= rtt_ns for hops, rtt_ns in expected.items())


def test_switches_alike_share_their_routes() -> None:
    topology = topologies.build("fat-tree", {"k": 8})
    made = {name: topologies.routes(topology, name) for name in ("spine0", "spine15", "agg0-0", "agg0-3", "agg1-0")}
    assert made["spine0"] is made["spine15"]
    assert made["agg0-0"] is made["agg0-3"] is not made["agg1-0"]


def test_what_cannot_be_reached_has_neither_route_nor_path() -> None:
    builder = topologies.model.Builder("apart")
    left, right = builder.switch("left", 0), builder.switch("right", 0)
    for address, switch in (("10.0.0.2", left), ("10.0.0.3", left), ("10.1.0.2", right)):
        builder.host(address, switch, 10**9, 0)
    topology = builder.build({})
    assert lookup(topologies.routes(topology, "left"), IPv4Address("10.1.0.2")) == ()
    assert list(routing.base_rtts(topology, 1000, 100).by_switches) == [1]
    assert routing.apart(topology) == (topology.hosts[0], topology.hosts[2])
    assert routing.apart(topologies.build("fat-tree", {"k": 4})) is None
    with pytest.raises(ValueError, match="no path from left to right"):
        routing.path(topology, topology.hosts[0], topology.hosts[2])


def test_paths_have_equal_length_in_both_directions() -> None:
    topology = topologies.build("clos", {})
    hosts = topology.hosts
    assert [link.rate_bps for link in routing.path(topology, hosts[0], hosts[-1])] == [
        int(rate) for rate in (100e9, 400e9, 400e9, 400e9, 400e9, 100e9)
    ]
    assert len(routing.path(topology, hosts[0], hosts[1])) == 2
    assert len(routing.path(topology, hosts[0], hosts[16])) == 4


def test_equal_parameters_are_one_network_and_others_are_not() -> None:
    """Routes are cached by network, so that plans with equal networks share them."""
    rates = [1_000_000_000, 2_000_000_000]
    first, same, other = (
        topologies.build("random", {"switches": 5, "extra_links": 2, "hosts": 10, "rates_bps": list(of)})
        for of in (rates, rates, rates[:1])
    )
    assert first is same
    assert first is not other
    assert {link.rate_bps for link in other.links} != {link.rate_bps for link in first.links}
