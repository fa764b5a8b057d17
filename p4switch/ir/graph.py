"""Control-flow graphs: the order of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from p4switch import ir
from p4switch.bits.checksums import DRAWN


def successors(block: ir.Block) -> list[ir.Block]:
    end = block.end
    if end is None:
        return []
    if isinstance(end, ir.Goto):
        return [end.target]
    if isinstance(end, ir.Branch):
        return [end.if_true, end.if_false]
    if isinstance(end, ir.Apply):
        return [*end.on.values(), end.default]
    return [target for _, target in end.cases if target is not None]


def digraph(blocks: Sequence[ir.Block]) -> nx.DiGraph[ir.Block]:
    """Return the graph of blocks and their successors, without empty blocks."""
    graph: nx.DiGraph[ir.Block] = nx.DiGraph()
    graph.add_nodes_from(blocks)
    graph.add_edges_from((block, target) for block in blocks for target in successors(block) if not target.is_end)
    return graph


def looping(blocks: Sequence[ir.Block]) -> set[ir.Block]:
    """Return the blocks that lie on a cycle."""
    graph = digraph(blocks)
    return {
        block for component in nx.strongly_connected_components(graph) for block in component
        if len(component) > 1 or graph.has_edge(block, block)
    }


def reverse_postorder(start: ir.Block) -> list[ir.Block]:
    """Return the blocks reachable from `start` in reverse postorder: each before its successors, except in loops."""
    if start.end is None:
        return [start]
    order: list[ir.Block] = []
    seen = {start}
    stack = [(start, iter(reversed(successors(start))))]
    while stack:
        block, following = stack[-1]
        for target in following:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(reversed(successors(target)))))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    return order


def tables(program: ir.Program) -> list[ir.Table]:
    """Return the tables that pipelines apply, in the order of the code."""
    blocks = (block for pipeline in program.pipelines for block in reverse_postorder(pipeline.start))
    return list(dict.fromkeys(block.end.table for block in blocks if isinstance(block.end, ir.Apply)))


def actions(program: ir.Program) -> list[ir.Action]:
    """Return the actions of the tables that pipelines apply."""
    return list(dict.fromkeys(action for table in tables(program) for action in table.actions))


def code(program: ir.Program) -> Iterator[ir.Block]:
    """Yield the blocks of parsers, pipelines, actions and deparsers."""
    starts = [part.start for part in program.parsers] + [part.start for part in program.pipelines]
    starts += [action.body for action in actions(program)] + [part.body for part in program.deparsers]
    for start in starts:
        yield from reverse_postorder(start)


def draws(program: ir.Program) -> bool:
    """Return whether a program draws random numbers.

    An operation may draw them, or a calculation or selector whose hash is random.
    """
    hashes = {calculation.algorithm for calculation in program.calculations}
    hashes |= {profile.algorithm for profile in program.profiles}
    operations = (op for block in code(program) for op in block.ops)
    return DRAWN in hashes or any(
        isinstance(op, ir.ExternOperation) and op.draws for op in operations
    )
