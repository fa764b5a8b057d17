"""Dependency graph of tables, conditions, operations and registers.

The kinds are those of Jose, Yan, Varghese and McKeown, "Compiling Packet Programs to Reconfigurable Switches", NSDI
2015, section 3.2 (after Bosshart et al., "Forwarding Metamorphosis", SIGCOMM 2013, section 3.2):

  match      the first writes what the second looks up            a later stage
  action     the first writes what the second reads or writes     a later stage
  successor  the first decides whether the second happens         the same stage or a later one
  reverse    the first looks up or reads what the second writes   the same stage or a later one
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, TypeAlias

import networkx as nx

from p4switch.fit.flow import Pipeline, Vertex, reachable

Kind: TypeAlias = Literal["match", "action", "successor", "reverse"]
LATER: frozenset[Kind] = frozenset({"match", "action"})
"""The kinds that need a later stage."""


def dependency_graph(pipeline: Pipeline) -> nx.DiGraph[Vertex]:
    """Return the graph of vertices with an effect. Each edge has a `kind`, the strictest of those that apply.

    Edges that others imply are omitted, which does not change the earliest stage of any vertex.
    """
    flow = pipeline.graph
    order = pipeline.vertices()
    number = {v: i for i, v in enumerate(order)}
    after = reachable(flow, order)
    before: list[dict[int, Kind]] = [{} for _ in order]
    writers: dict[str, list[Vertex]] = defaultdict(list)
    readers: dict[str, list[Vertex]] = defaultdict(list)

    def add(first: Vertex, second: Vertex, kind: Kind) -> None:
        a, b = number[first], number[second]
        if after[a] >> b & 1 and before[b].get(a) not in LATER:
            known = before[b].get(a)
            if known is None or kind != "reverse":
                before[b][a] = kind

    for vertex in order:
        for f in vertex.writes:
            writers[f].append(vertex)
        for f in vertex.reads | vertex.looks_up:
            readers[f].append(vertex)
    for f, first in writers.items():
        for a in first:
            for b in readers[f]:
                add(a, b, "match" if f in b.looks_up else "action")
                add(b, a, "reverse")
            for b in first:
                add(a, b, "action")
    for a, b in _control(pipeline):
        if a.kind != "point" and b.kind != "point":
            add(a, b, "successor")
    graph: nx.DiGraph[Vertex] = nx.DiGraph()
    graph.add_nodes_from(v for v in order if v.kind != "point")
    graph.add_edges_from((order[a], order[b], {"kind": kind}) for a, b, kind in _reduced(before))
    return graph


def _reduced(before: list[dict[int, Kind]]) -> Iterator[tuple[int, int, Kind]]:
    """Yield the edges that others do not imply, as (first, second, kind); numbers are in topological order.

    A chain of edges implies an edge if it is as strict as that edge. A chain with a reverse dependency
    implies only reverse dependencies.
    """
    depends: list[int] = []  # for each vertex, a bit mask of those it depends on, without reverse dependencies
    later: list[int] = []  # the same, without vertices that may be in the same stage
    for b, edges in enumerate(before):
        any_, strict = 0, 0
        for a in sorted(edges, reverse=True):
            kind = edges[a]
            if (strict if kind in LATER else any_) >> a & 1:
                continue
            yield a, b, kind
            if kind != "reverse":
                any_ |= depends[a] | 1 << a
                strict |= depends[a] | 1 << a if kind in LATER else later[a]
        depends.append(any_)
        later.append(strict)


def _control(pipeline: Pipeline) -> set[tuple[Vertex, Vertex]]:
    """Return pairs of a decision and a vertex that it controls (Ferrante, Ottenstein, Warren 1987)."""
    flow = pipeline.graph
    above = nx.immediate_dominators(flow.reverse(copy=False), pipeline.end)
    result: set[tuple[Vertex, Vertex]] = set()
    for decider in flow:
        if flow.out_degree(decider) < 2 or decider not in above:
            continue
        for following in flow.successors(decider):
            current = following
            while current is not above[decider] and current in above:
                result.add((decider, current))
                if above[current] is current:
                    break
                current = above[current]
    return result
