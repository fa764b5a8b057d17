"""Groups of collectives: their trees, and groups that no network can serve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import topologies
from control_plane import controller, programs
from control_plane.controller import Settings
from control_plane.programs.entries import Action, Entry, Exact, MulticastGroup, TableEntry
from p4switch.errors import UserError
from topologies import Topology
from topologies.collectives import CollectiveGroup, address, trees
from topologies.model import Builder

RACKS = topologies.build("leaf-spine", {"leaves": 8, "spines": 4, "hosts_per_leaf": 8, "links_per_spine": 2})
ALL = CollectiveGroup(1, tuple(range(64)))


def test_a_tree_for_each_link_of_the_roots() -> None:
    found = trees(RACKS, ALL)
    assert [tree.root for tree in found] == [f"spine{i % 4}" for i in range(8)]
    for leaf in (f"leaf{i}" for i in range(8)):
        assert sorted(tree.up[leaf] for tree in found) == list(range(9, 17))
    assert all(set(RACKS.host_by_name) <= set(tree.down) for tree in found)


@pytest.mark.parametrize(
    ("name", "parameters", "members", "roots"),
    [
        ("leaf-spine", {"leaves": 2, "spines": 2}, range(4), {"leaf0"}),  # one rack
        ("single-switch", {"hosts": 5}, range(1, 4), {"s0"}),
        ("fat-tree", {"k": 4}, range(4), {"agg0-0", "agg0-1"}),  # one pod
        ("fat-tree", {"k": 4}, range(16), {"spine0", "spine1", "spine2", "spine3"}),
    ],
)
def test_roots_are_the_nearest_switches_above_all_members(
    name: str, parameters: dict[str, int], members: range, roots: set[str]
) -> None:
    topology = topologies.build(name, parameters)
    found = trees(topology, CollectiveGroup(1, tuple(members)))
    assert {tree.root for tree in found} == roots
    assert len(found) == len(roots)


def test_groups_have_slots_one_behind_the_other() -> None:
    groups = (ALL, CollectiveGroup(2, (0, 1, 8), window=4), CollectiveGroup(3, (0, 1), window=8, push=True))
    bases: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    for switch in ("leaf0", "leaf1", "leaf2", "spine0"):
        entries = entries_of(RACKS, switch, groups)
        for entry in entries:
            if isinstance(entry, TableEntry) and entry.table == "tree_port":
                group = entry.match["group"]
                assert isinstance(group, Exact)
                assert isinstance(entry.action, Action)
                params = entry.action.params
                bases.setdefault((switch, group.value), set()).add(
                    (params["base"], params["members"], params["window_bits"])
                )
    assert bases == {
        ("leaf0", 1): {(0, 64, 7)},
        ("leaf0", 2): {(8192, 3, 2)},
        ("leaf0", 3): {(8204, 1, 4)},
        ("leaf1", 1): {(0, 64, 7)},
        ("leaf1", 2): {(8192, 3, 2)},
        ("leaf2", 1): {(0, 64, 7)},
        ("spine0", 1): {(0, 64, 7)},
        ("spine0", 2): {(8192, 3, 2)},
    }


def test_copies_have_the_numbers_of_the_children() -> None:
    groups = [entry for entry in entries_of(RACKS, "spine1", (ALL,)) if isinstance(entry, MulticastGroup)]
    ports = [[port for port, _ in group.replicas] for group in groups]
    assert ports == [list(range(1, 17, 2)), list(range(2, 17, 2))]
    assert all([instance for _, instance in group.replicas] == list(range(8)) for group in groups)


def entries_of(topology: Topology, switch: str, groups: tuple[CollectiveGroup, ...]) -> list[Entry]:
    view = controller.switch_view(topology, topology.switch_by_name[switch], Settings(collectives=groups))
    return list(programs.parameters("collective", {}).entries(view))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 100}, r"workload\.window: 100: expected a power of two"),
        ({"window": 0}, r"workload\.window: 0: expected a power of two"),
        ({"members": (0, 64)}, r"workload\.members: host 64 of group 1: topology 'leaf-spine' has hosts 0 to 63"),
        ({"members": (0, 5, 5)}, r"workload\.members: host 5 is twice in group 1; expected each once"),
        ({"members": ()}, r"workload\.members: group 1 has none; expected at least one"),
        ({"number": 0}, r"workload\.groups: number 0: expected 1 to 65535"),
        ({"first_sequence": 0}, r"workload\.first_sequence: 0: expected 1 to 2\^32 - 1"),
    ],
)
def test_what_no_network_can_serve(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(ALL, **changes).check(RACKS)


def test_more_slots_than_there_are() -> None:
    with pytest.raises(UserError, match=r"^programs\.collective\.slots: 16384: .* switch leaf0 need 24576$"):
        entries_of(RACKS, "leaf0", (ALL, replace(ALL, number=2), replace(ALL, number=3)))


def test_more_children_and_more_trees_than_a_header_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = topologies.build("single-switch", {"hosts": 64})
    with pytest.raises(UserError, match="has 64 children in a tree; expected at most 63"):
        trees(wide, ALL)
    many = topologies.build("leaf-spine", {"leaves": 2, "spines": 128, "hosts_per_leaf": 1, "links_per_spine": 2})
    monkeypatch.delattr("topologies.collectives.tree")  # they are counted before one is made
    with pytest.raises(UserError, match="has 256 trees, one for each link of a root; expected at most 255"):
        trees(many, CollectiveGroup(1, (0, 1)))


def test_a_network_in_which_results_might_leave_the_tree() -> None:
    builder = Builder("square")
    for name in ("s0", "s1", "s2", "s3"):
        builder.switch(name, 0)
    for a, b in (("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "s0")):
        builder.link(a, b, 10**9, 1000)
    for i in range(4):
        builder.host(f"10.0.0.{i + 2}", f"s{i}", 10**9, 1000)
    square = builder.build({})
    with pytest.raises(UserError, match="'square' has no switch with one shortest path only to each member"):
        trees(square, CollectiveGroup(1, (0, 1, 2, 3)))
    assert [tree.root for tree in trees(square, CollectiveGroup(1, (0, 1)))] == ["s0", "s1"]


def test_addresses_are_not_those_of_multicast_flows() -> None:
    assert str(address(1, 0x102)) == "239.1.1.2"
