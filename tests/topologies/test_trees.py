"""Trees for multicast reach every member once by shortest paths; another choice gives another tree."""

from __future__ import annotations

import networkx as nx
import pytest

import topologies
from topologies.trees import Tree, tree


def edges(topology: topologies.Topology, found: Tree) -> nx.Graph[str]:
    graph: nx.Graph[str] = nx.Graph()
    for node in found.down:
        graph.add_edges_from((node, topology.ports[node][port].node) for port in found.ports(node))
    return graph


@pytest.mark.parametrize("name", ["fat-tree", "leaf-spine", "dumbbell", "random"])
@pytest.mark.parametrize("choice", [0, 3])
def test_a_spanning_tree_spans_by_shortest_paths(name: str, choice: int) -> None:
    topology = topologies.build(name, {})
    root = topology.hosts[0].name
    graph = edges(topology, tree(topology, root, choice=choice))
    whole: nx.Graph[str] = nx.Graph((link.a, link.b) for link in topology.links)
    assert nx.is_tree(graph)
    assert set(graph) == set(topology.ports)
    assert nx.single_source_shortest_path_length(graph, root) == nx.single_source_shortest_path_length(whole, root)


def test_only_what_leads_to_members_is_in_it() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    hosts = [host.name for host in topology.hosts]
    members = [hosts[1], hosts[2], hosts[-1]]
    found = tree(topology, hosts[0], members)
    graph = edges(topology, found)
    assert {node for node in graph if graph.degree(node) == 1} == {hosts[0], *members}
    tiers = [switch.tier for switch in topology.switches if switch.name in found]
    assert sorted(tiers) == [0, 0, 0, 1, 1, 2]  # one core switch, one aggregation switch a pod, three racks


def test_all_hosts_are_reached_through_one_core_switch_and_other_choices_take_others() -> None:
    topology = topologies.build("fat-tree", {"k": 4})
    hosts = [host.name for host in topology.hosts]
    cores = set()
    for choice in range(2):
        found = tree(topology, hosts[0], hosts, choice)
        (core,) = [switch.name for switch in topology.switches if switch.tier == 2 and switch.name in found]
        cores.add(core)
    assert len(cores) == 2


def test_up_leads_to_the_root_and_down_is_the_other_end_of_it() -> None:
    topology = topologies.build("leaf-spine", {})
    found = tree(topology, topology.switches[-1].name)
    assert found.root not in found.up
    for node, port in found.up.items():
        there = topology.ports[node][port]
        assert there.port in found.down[there.node]
    assert sum(map(len, found.down.values())) == len(found.up) == len(topology.ports) - 1
    assert found.ports("nobody") == ()


def test_nodes_that_there_are_not() -> None:
    topology = topologies.build("single-switch", {})
    with pytest.raises(ValueError, match="no node 'nobody'"):
        tree(topology, "nobody")
    with pytest.raises(ValueError, match="no node 'nobody'"):
        tree(topology, topology.hosts[0].name, ["nobody"])
