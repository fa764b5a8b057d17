"""Placement takes the least number of stages, compared with all placements of small graphs."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import pytest

from p4switch.fit.placement import Demand, ImpossibleError, _list_schedule, place

CAPACITY = {"tables": 2, "sram": 4}
KINDS = ("match", "action", "successor", "reverse")


def random_problem(seed: int, most: int = 5) -> tuple[nx.DiGraph[int], dict[int, Demand]]:
    rng = random.Random(seed)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(rng.randint(2, most)))
    for a, b in itertools.combinations(graph, 2):
        if rng.random() < 0.4:
            graph.add_edge(a, b, kind=rng.choice(KINDS))
    return graph, {n: Demand({"tables": 1, "sram": rng.randint(0, 4)}) for n in graph}


def holds(
    graph: nx.DiGraph[int], demands: dict[int, Demand], stage: dict[int, int], earliest: dict[int, int]
) -> bool:
    later = {"match": 1, "action": 1, "successor": 0, "reverse": 0}
    if any(stage[n] < wanted for n, wanted in earliest.items()):
        return False
    if any(stage[b] < stage[a] + later[data["kind"]] for a, b, data in graph.edges(data=True)):
        return False
    return all(
        sum(demands[n].fixed[r] for n in graph if stage[n] == s) <= most
        for s in set(stage.values())
        for r, most in CAPACITY.items()
    )


def exhaustive(graph: nx.DiGraph[int], demands: dict[int, Demand], earliest: dict[int, int]) -> int:
    for count in itertools.count(1):
        for stages in itertools.product(range(count), repeat=len(graph)):
            if holds(graph, demands, dict(zip(graph, stages, strict=True)), earliest):
                return count
    raise AssertionError


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_least_number_of_stages(seed: int, asks: bool) -> None:
    """Check graphs without preferences, and with a node that prefers the second stage or a later one."""
    graph, demands = random_problem(seed)
    earliest = {seed % len(graph): 1 + seed % 2} if asks else {}
    placed = place(graph, demands, CAPACITY, earliest)
    assert holds(graph, demands, dict(placed.first), earliest)
    assert placed.first == placed.last
    assert placed.least
    assert placed.stages == exhaustive(graph, demands, earliest)


def test_memory_is_spread_over_stages() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edge("large", "after", kind="match")
    graph.add_node("beside")
    demands = {"large": Demand({}, {"sram": 9}), "after": Demand(), "beside": Demand({}, {"sram": 3})}
    placed = place(graph, demands, {"sram": 4})
    assert (placed.first["large"], placed.last["large"]) == (0, 2)
    assert placed.stages == 4


def test_the_integer_program_is_needed() -> None:
    """For some graphs the list schedule alone takes one stage more."""
    graph, demands = random_problem(0, most=9)
    assert _list_schedule(graph, demands, CAPACITY, {}).stages == place(graph, demands, CAPACITY).stages + 1


def test_what_no_stage_has_is_named() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("wide")
    with pytest.raises(ImpossibleError) as error:
        place(graph, {"wide": Demand({"tables": 3})}, CAPACITY)
    assert (error.value.node, error.value.resource) == ("wide", "tables")
