"""Pass that implements the reset of a parser's stacks to their first element.

A reset becomes a `pop_front` of all elements, because the target decrements the stack's counter for each element that
it removes. A reset is dropped if the stack cannot have advanced.
"""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.passes.base import spell_out
from p4switch.ir.graph import reverse_postorder, successors


def run(program: ir.Program) -> None:
    for parser in program.parsers:
        _drop_needless(parser.start)
    spell_out(program, ir.RewindStack, lambda op: [ir.MoveStack(op.stack, -op.stack.size, op.span)])


def _drop_needless(start: ir.Block) -> None:
    order = reverse_postorder(start)
    before: dict[ir.Block, set[str]] = {block: set() for block in order}  # advanced stacks
    changed = True
    while changed:
        changed = False
        for block in order:
            moved = set(before[block])
            for op in block.ops:
                _note_move(op, moved)
            for target in successors(block):
                if not moved <= before[target]:
                    before[target] |= moved
                    changed = True
    for block in order:
        moved, kept = before[block], []
        for op in block.ops:
            if not (isinstance(op, ir.RewindStack) and op.stack.name not in moved):
                kept.append(op)
            _note_move(op, moved)
        block.ops = kept


def _note_move(op: ir.Operation, moved: set[str]) -> None:
    """Update `moved` for the effect of `op` on the position of `next` in a stack."""
    if isinstance(op, ir.RewindStack):
        moved.discard(op.stack.name)
    elif isinstance(op, ir.MoveStack):
        if op.by > 0:
            moved.add(op.stack.name)
    elif isinstance(op, ir.CopyStack):
        moved.add(op.dst.name)
    elif isinstance(op, ir.Extract) and op.header.where == "next":
        moved.add(op.header.stack)
