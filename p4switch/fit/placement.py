"""Placement of a dependency graph in a minimum number of stages.

A list schedule gives an upper bound. The longest chain and the sums of demands give a lower bound.
If the bounds differ, an integer program decides, within a time limit (HiGHS through scipy).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from p4switch.fit.dependencies import LATER

TIME_LIMIT_S = 5.0
"""Time limit of each integer program. After it the list schedule is used, and `Placement.least` is False."""

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of a node.

    `fixed` is needed in each stage that the node occupies. `blocks` of memory may be spread over stages.
    """

    fixed: Mapping[str, int] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """Placement in stages: `first` and `last` of each node, from 0.

    `least` is True if it is proven that fewer stages are impossible.
    """

    first: Mapping[Any, int]
    last: Mapping[Any, int]
    stages: int
    least: bool


class ImpossibleError(Exception):
    """Error for a node that needs more of `resource` than a stage has, and that cannot be spread over stages."""

    def __init__(self, node: Any, resource: str) -> None:
        super().__init__(f"{node}: {resource}")
        self.node = node
        self.resource = resource


def place(
    graph: nx.DiGraph[Node],
    demands: Mapping[Node, Demand],
    capacity: Mapping[str, int],
    earliest: Mapping[Node, int] | None = None,
    time_limit_s: float = TIME_LIMIT_S,
) -> Placement:
    """Place the nodes of `graph`, whose edges have a `kind` (see `dependencies`), into stages.

    `capacity` has the amount of each resource in a stage; resources that it does not name are unlimited. `earliest` has
    the earliest stage of some nodes. Raises ImpossibleError if a node needs more than a stage has.
    """
    earliest = earliest or {}
    for node in graph:
        for resource, amount in demands[node].fixed.items():
            if amount > capacity.get(resource, amount):
                raise ImpossibleError(node, resource)
        for resource, amount in demands[node].blocks.items():
            if amount and not capacity.get(resource, amount):
                raise ImpossibleError(node, resource)
    best = _list_schedule(graph, demands, capacity, earliest)
    lower = _lower_bound(graph, demands, capacity, earliest)
    for stages in range(lower, best.stages):
        placement, decided = _integer_program(graph, demands, capacity, earliest, stages, time_limit_s)
        if placement is not None:
            return placement
        if not decided:
            return Placement(best.first, best.last, best.stages, least=False)
    return best


def _step(kind: str) -> int:
    return 1 if kind in LATER else 0


def _least_span(demand: Demand, capacity: Mapping[str, int]) -> int:
    """Return the minimum number of stages of a node."""
    return max([1, *(math.ceil(n / capacity[r]) for r, n in demand.blocks.items() if n and r in capacity)])


def heights(
    graph: nx.DiGraph[Node], demands: Mapping[Node, Demand], capacity: Mapping[str, int], earliest: Mapping[Node, int]
) -> tuple[dict[Node, int], dict[Node, int]]:
    """Return for each node its first possible stage, and the number of stages of the longest chain from it on."""
    order = list(nx.topological_sort(graph))
    span = {n: _least_span(demands[n], capacity) for n in order}
    before: dict[Node, int] = {}
    for n in order:
        ends = (before[p] + span[p] - 1 + _step(graph.edges[p, n]["kind"]) for p in graph.predecessors(n))
        before[n] = max(earliest.get(n, 0), *ends, 0)
    height: dict[Node, int] = {}
    for n in reversed(order):
        rest = (height[s] - 1 + _step(graph.edges[n, s]["kind"]) for s in graph.successors(n))
        height[n] = span[n] + max(rest, default=0)
    return before, height


def _lower_bound(
    graph: nx.DiGraph[Node], demands: Mapping[Node, Demand], capacity: Mapping[str, int], earliest: Mapping[Node, int]
) -> int:
    before, height = heights(graph, demands, capacity, earliest)
    bound = max((before[n] + height[n] for n in graph), default=0)
    totals: dict[str, int] = defaultdict(int)
    for n in graph:
        for resource, amount in (*demands[n].fixed.items(), *demands[n].blocks.items()):
            totals[resource] += amount
    return max([bound, *(math.ceil(n / capacity[r]) for r, n in totals.items() if n and capacity.get(r))])


def _list_schedule(
    graph: nx.DiGraph[Node], demands: Mapping[Node, Demand], capacity: Mapping[str, int], earliest: Mapping[Node, int]
) -> Placement:
    """Return a list schedule: nodes on the longest remaining chains first, each as early as possible."""
    _, height = heights(graph, demands, capacity, earliest)
    number = {n: i for i, n in enumerate(graph)}
    left: list[dict[str, int]] = []
    first: dict[Node, int] = {}
    last: dict[Node, int] = {}
    waiting = {n: graph.in_degree(n) for n in graph}
    ready = {n for n, count in waiting.items() if not count}
    while ready:
        node = min(ready, key=lambda n: (-height[n], number[n]))
        ready.discard(node)
        demand = demands[node]
        starts = (last[p] + _step(graph.edges[p, node]["kind"]) for p in graph.predecessors(node))
        stage = max(earliest.get(node, 0), *starts, 0)
        rest = {r: n for r, n in demand.blocks.items() if n}
        begun = False
        while True:
            while len(left) <= stage:
                left.append(dict(capacity))
            here = left[stage]
            takes = {r: min(n, here.get(r, n)) for r, n in rest.items()}
            fits = all(here.get(r, n) >= n for r, n in demand.fixed.items()) and (not rest or any(takes.values()))
            if fits:
                if not begun:
                    first[node], begun = stage, True
                for resource, amount in (*demand.fixed.items(), *takes.items()):
                    if resource in here:
                        here[resource] -= amount
                rest = {r: n - takes[r] for r, n in rest.items() if n > takes[r]}
                if not rest:
                    last[node] = stage
                    break
            stage += 1
        for following in graph.successors(node):
            waiting[following] -= 1
            if not waiting[following]:
                ready.add(following)
    return Placement(first, last, 1 + max(last.values(), default=-1), least=True)


class _Problem:
    """Integer linear program: variables within bounds, and limits of linear sums of variables."""

    def __init__(self) -> None:
        self.columns: dict[tuple[Any, ...], int] = {}  # number of each variable by its key
        self._bounds: list[tuple[float, float]] = []  # bounds of the variables
        self._entries: list[tuple[int, int, float]] = []  # constraint, variable, factor
        self._limits: list[tuple[float, float]] = []  # limits of the constraints

    def variable(self, key: tuple[Any, ...], least: float, most: float) -> int:
        """Add a variable, and return its number."""
        self.columns[key] = len(self.columns)
        self._bounds.append((least, most))
        return self.columns[key]

    def constraint(self, terms: list[tuple[int, float]], least: float, most: float) -> None:
        """Add limits of a sum. Each term is a variable's number and its factor."""
        self._entries += [(len(self._limits), column, factor) for column, factor in terms]
        self._limits.append((least, most))

    def solve(self, time_limit_s: float) -> tuple[NDArray[np.int_] | None, bool]:
        """Return values of the variables, or None, and whether the program was decided within the time limit."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        rows, columns, factors = zip(*self._entries, strict=True)
        shape = len(self._limits), len(self.columns)
        result = milp(
            np.zeros(len(self.columns)),
            constraints=LinearConstraint(coo_array((factors, (rows, columns)), shape=shape).tocsr(),
                                         *np.array(self._limits).T),
            bounds=Bounds(*np.array(self._bounds).T),
            integrality=np.ones(len(self.columns), dtype=int),
            options={"time_limit": time_limit_s},
        )
        if result.x is None:
            return None, result.status == 2  # status 2: infeasible, not out of time
        return np.round(result.x).astype(int), True


def _integer_program(
    graph: nx.DiGraph[Node],
    demands: Mapping[Node, Demand],
    capacity: Mapping[str, int],
    earliest: Mapping[Node, int],
    stages: int,
    time_limit_s: float,
) -> tuple[Placement | None, bool]:
    """Return a placement into `stages`, or None, and whether it was decided within the time limit."""
    before, height = heights(graph, demands, capacity, earliest)
    problem = _Problem()
    variable, constraint, columns = problem.variable, problem.constraint, problem.columns
    use: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    windows: dict[Node, range] = {}
    for n in graph:
        window = windows[n] = range(before[n], stages - _tail(n, height, demands, capacity))
        if not window:
            return None, True
        start, end = variable((n, "first"), window[0], window[-1]), variable((n, "last"), window[0], window[-1])
        constraint([(end, 1), (start, -1)], 0, math.inf)
        there = {s: variable((n, s), 0, 1) for s in window}
        blocks = {r: amount for r, amount in demands[n].blocks.items() if amount}
        if not blocks:
            constraint([(v, 1) for v in there.values()], 1, 1)
        for s, v in there.items():
            constraint([(start, 1), (v, stages)], -math.inf, s + stages)
            constraint([(end, 1), (v, -stages)], s - stages, math.inf)
            for r, amount in demands[n].fixed.items():
                use[s, r].append((v, amount))
        if not blocks:
            constraint([(end, 1), (start, -1)], 0, 0)
        for r, amount in blocks.items():
            parts = {s: variable((n, s, r), 0, amount) for s in window}
            constraint([(v, 1) for v in parts.values()], amount, amount)
            for s, v in parts.items():
                constraint([(v, 1), (there[s], -amount)], -math.inf, 0)
                use[s, r].append((v, 1))
    for a, b in graph.edges:
        kind = graph.edges[a, b]["kind"]
        constraint([(columns[b, "first"], 1), (columns[a, "last"], -1)], _step(kind), math.inf)
    for (_, resource), terms in use.items():
        if resource in capacity:
            constraint(terms, -math.inf, capacity[resource])
    values, decided = problem.solve(time_limit_s)
    if values is None:
        return None, decided
    first = {n: int(min(s for s in windows[n] if values[columns[n, s]])) for n in graph}
    last = {n: int(max(s for s in windows[n] if values[columns[n, s]])) for n in graph}
    return Placement(first, last, stages, least=True), True


def _tail(n: Node, height: Mapping[Node, int], demands: Mapping[Node, Demand], capacity: Mapping[str, int]) -> int:
    """Return the number of stages that must follow the last stage of `n`."""
    return height[n] - _least_span(demands[n], capacity)
