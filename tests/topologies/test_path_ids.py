"""Ids of links: the XOR over a path distinguishes it from the other shortest paths between its ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import topologies
from tests.topologies.test_topologies import ALL
from topologies import Topology
from topologies.path_ids import PATH_ID_BITS, path_ids
from topologies.shortest_paths import shortest_paths

MANY: list[tuple[str, dict[str, object]]] = [
    ("fat-tree", {"k": 8}),
    ("fat-tree", {"k": 8, "nic_switches": True}),
    ("clos", {"pods": 3, "tors_per_pod": 3, "spines_per_agg": 4}),
    ("leaf-spine", {"leaves": 4, "spines": 1, "links_per_spine": 4}),
    ("leaf-spine", {"leaves": 3, "spines": 5, "links_per_spine": 3, "nic_switches": True}),
    ("blades", {"blades": 2, "links_between_blades": 12}),
    ("random", {"switches": 20, "extra_links": 60, "hosts": 40}),
    ("random", {"switches": 8, "extra_links": 40, "hosts": 20, "seed": 3}),
]


def walks(topology: Topology, here: str, there: str) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield every shortest path as a list of egress ports."""
    if here == there:
        yield ()
        return
    paths = shortest_paths(topology)
    column = paths.column[there]
    for port, neighbour in topology.ports[here].items():
        row = paths.row.get(neighbour.node)
        if (
            row is not None
            and paths.distance[row, column] == paths.distance[paths.row[here], column] - 1
        ):
            for rest in walks(topology, neighbour.node, there):
                yield (here, port), *rest


@pytest.mark.parametrize(("name", "parameters"), [*ALL, *MANY])
def test_no_two_shortest_paths_share_an_id(name: str, parameters: dict[str, object]) -> None:
    topology = topologies.build(name, parameters)
    links, shared = path_ids(topology)
    assert shared is None
    ends = shortest_paths(topology).destinations
    for here in [*ends[:4], ends[-1]]:
        for there in ends:
            ids = []
            for walk in walks(topology, here, there):
                path_id = 0
                for switch, port in walk:
                    assert 0 <= links[switch][port] < 1 << PATH_ID_BITS
                    path_id ^= links[switch][port]
                ids.append(path_id)
            assert len(set(ids)) == len(ids), (here, there)


def test_a_fat_tree_has_the_bits_of_its_choices() -> None:
    topology = topologies.build("fat-tree", {"k": 16})
    links, _ = path_ids(topology)
    assert (
        max(max(ids.values()) for ids in links.values()) == 0b111_000
    )  # 3 bits a layer; with k = 128 6 bits


def test_more_paths_than_ids_cannot_be_told_apart() -> None:
    topology = topologies.build(
        "leaf-spine", {"leaves": 2, "spines": 20, "links_per_spine": 20, "hosts_per_leaf": 2}
    )
    assert path_ids(topology).shared is not None
