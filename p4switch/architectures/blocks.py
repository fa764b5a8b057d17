"""Lowering of blocks to IR: parsers, controls, and deparsers that emit headers conditionally."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import networkx as nx

from p4switch import ir
from p4switch.compiler import ast
from p4switch.ir.graph import reverse_postorder, successors

if TYPE_CHECKING:
    from p4switch.architectures.package import Site
    from p4switch.compiler import types
    from p4switch.compiler.midend.elaborate import Block
    from p4switch.tool_types import Lowering, Value


def lower_parser(low: Lowering, name: str, block: Block) -> ir.Block:
    """Add a parser, whose parameters are bound, to the program.

    Return the block of its state `accept`, which is empty.
    """
    start, accept = ir.Block(), ir.Block()
    low.code = start
    low.parsers.run_parser(block, accept)
    low.out.parsers.append(ir.Parser(name, start))
    return accept


def lower_control(low: Lowering, block: Block) -> tuple[ir.Block, ir.Block]:
    """Lower a control whose parameters are bound.

    Return the first block of its code and the last one, which is empty.
    """
    assert isinstance(block.decl, ast.ControlDecl)
    start, end = ir.Block(), ir.Block()
    low.code = start
    low.jumps.exit = end
    low.calls.make_locals(block)
    low.jumps.returns.append((end, None))
    low.statements.run(block.decl.body)
    low.jumps.returns.pop()
    low.goto(end)
    return start, end


def allocate_side(low: Lowering, role: str, t: types.Type) -> Value:
    """Return storage for a value that the blocks of ingress or of egress share.

    `role` names the side and the purpose, such as `ingress headers`. Headers of ingress are named
    after their fields, without a prefix.
    """
    side, _, what = role.partition(" ")
    if what == "headers":
        return low.storage.allocate(t, "" if side == "ingress" else side, exact=True)
    return low.storage.allocate(t, role.replace(" ", "_"))


def lower_side(low: Lowering, site: Site, block: Block, emitted: Emitted) -> None:
    """Add a control or deparser of ingress or egress, whose parameters are bound, to the program."""
    start, end = lower_control(low, block)
    if site.aside or site.name in ("ingress", "egress"):
        low.out.pipelines.append(ir.Pipeline(site.name, start, block.decl.pos))
    else:
        order = emitted.order(start, end, block)
        low.out.deparsers.append(ir.Deparser(site.name, start, order, block.decl.pos))


class Emitted:
    """Headers that a deparser emits, with copies of those that need one.

    The target emits headers in one fixed order after all statements have run. A header that is not
    emitted on every path, or that may change after `emit`, is therefore copied at its `emit`. The
    copy is valid only if that `emit` was reached, and takes the header's place in the order.
    """

    def __init__(self, low: Lowering, name: str) -> None:
        self._low = low
        self._name = name
        self._emitted: list[tuple[ir.HeaderRef, ir.Block, int]] = []  # block and number of operations before `emit`

    def add(self, header: ir.HeaderRef) -> None:
        self._emitted.append((header, self._low.code, len(self._low.code.ops)))

    def order(self, start: ir.Block, end: ir.Block, block: Block) -> list[ir.HeaderRef]:
        """Make the necessary copies and return the headers in order. Raises CompileError for a loop."""
        graph: nx.DiGraph[ir.Block] = nx.DiGraph()
        blocks = reverse_postorder(start)
        graph.add_nodes_from(blocks)
        graph.add_edges_from((b, s) for b in blocks for s in successors(b))
        if not nx.is_directed_acyclic_graph(graph):
            raise self._low.error(block.decl, "loops are not supported in a deparser")
        if any(isinstance(b.end, ir.Apply) for b in blocks):
            raise self._low.error(block.decl, "tables are not supported in a deparser")
        always = _on_every_path(graph, start, end)
        place = {b: i for i, b in enumerate(blocks)}
        reached = [(header, code, at) for header, code, at in self._emitted if code in place]
        reached.sort(key=lambda each: (place[each[1]], each[2]))
        result: list[ir.HeaderRef] = []
        for header, code, at in reversed(reached):
            later = [*code.ops[at:], *(op for b in nx.descendants(graph, code) for op in b.ops)]
            if code not in always or any(self._changes(op, header) for op in later):
                copy = self._low.storage.allocate(header.type, f"{self._name}.emitted")
                assert isinstance(copy, ir.HeaderRef)
                code.ops.insert(at, ir.CopyHeader(copy, header, None))
                header = copy
            result.append(header)
        result.reverse()
        return result

    def _changes(self, op: ir.Operation, header: ir.HeaderRef) -> bool:
        roots = self._low.storage.roots
        return any(roots.get(name, name) == roots.get(header.name, header.name) for name in _written(op))


def _written(op: ir.Operation) -> Iterator[str]:
    """Yield the instances, stacks and unions that an operation may change."""
    for written in op.writes:
        if isinstance(written, ir.Valid):
            written = written.header
        if isinstance(written, ir.FieldRef):
            yield written.header
        elif isinstance(written, ir.HeaderRef):
            yield written.stack or written.name
        elif isinstance(written, (ir.StackRef, ir.UnionRef)):
            yield written.name
        elif isinstance(written, (ir.ElemField, ir.LastField)):
            yield written.stack


def _on_every_path(graph: nx.DiGraph[ir.Block], start: ir.Block, end: ir.Block) -> set[ir.Block]:
    """Return the blocks that every path from `start` to `end` goes through."""
    dominators = nx.immediate_dominators(graph, start)
    visited: set[ir.Block] = set()
    block: ir.Block | None = end
    while block is not None and block not in visited:
        visited.add(block)
        block = dominators.get(block)
    return visited
