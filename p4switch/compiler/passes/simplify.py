"""Pass that skips empty blocks and joins blocks that always follow each other."""

from __future__ import annotations

from p4switch import ir
from p4switch.ir.graph import actions, reverse_postorder, successors


def _final(block: ir.Block) -> ir.Block:
    """Return the first block from `block` on that is not empty."""
    seen = {block}
    while not block.ops and isinstance(block.end, ir.Goto):
        block = block.end.target
        if block in seen:
            return ir.Block()  # an endless empty loop
        seen.add(block)
    return block


def run(program: ir.Program) -> None:
    for parser in program.parsers:
        parser.start = simplify(parser.start)
    for pipeline in program.pipelines:
        pipeline.start = simplify(pipeline.start)
    for deparser in program.deparsers:
        deparser.body = simplify(deparser.body)
    for action in actions(program):
        action.body = simplify(action.body)


def simplify(start: ir.Block) -> ir.Block:
    """Skip empty blocks, join blocks that always follow each other, and return the first block.

    Named blocks are not joined.
    """
    start = _final(start)
    for block in reverse_postorder(start):
        _thread(block)
    entries: dict[ir.Block, int] = {}
    order = reverse_postorder(start)
    for block in order:
        for target in successors(block):
            entries[target] = entries.get(target, 0) + 1
    merged: set[ir.Block] = set()
    for block in order:
        if block in merged:
            continue
        while isinstance(block.end, ir.Goto):
            target = block.end.target
            if target is block or target is start or entries[target] != 1 or (target.name and block.name):
                break
            block.ops += target.ops
            block.end = target.end
            block.name = block.name or target.name
            merged.add(target)
    return start


def _thread(block: ir.Block) -> None:
    end = block.end
    if isinstance(end, ir.Goto):
        end.target = _final(end.target)
    elif isinstance(end, ir.Branch):
        end.if_true, end.if_false = _final(end.if_true), _final(end.if_false)
        if end.if_true is end.if_false:
            block.end = ir.Goto(end.if_true)
    elif isinstance(end, ir.Apply):
        end.on = {label: _final(target) for label, target in end.on.items()}
        end.default = _final(end.default)
    elif isinstance(end, ir.Select):
        end.cases = [(keys, target and _final(target)) for keys, target in end.cases]
