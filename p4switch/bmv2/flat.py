"""Code of actions and deparsers in BMv2's form: a sequence of operations with jumps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from p4switch import ir
from p4switch.ir.graph import reverse_postorder


@dataclass(slots=True, eq=False)
class Jump:
    """Jump to the item with number `target`. A jump with a condition is taken only if the condition is false."""

    target: int
    condition: ir.Expr | None = None
    span: int | None = None


Item = ir.Operation | Jump


def flat(start: ir.Block) -> list[Item]:
    """Return the blocks from `start` on as one sequence with jumps."""
    order = reverse_postorder(start)
    items: list[Item] = []
    starts: dict[ir.Block, int] = {}
    jumps: list[tuple[Jump, ir.Block | None]] = []

    def jump(target: ir.Block | None, new: Jump) -> None:
        items.append(new)
        jumps.append((new, target))

    for i, block in enumerate(order):
        starts[block] = len(items)
        following = order[i + 1] if i + 1 < len(order) else None
        items += block.ops
        end = block.end
        if end is None:
            if following is not None:
                jump(None, Jump(0))
        elif isinstance(end, ir.Goto):
            if end.target is not following:
                jump(end.target, Jump(0))
        else:
            assert isinstance(end, ir.Branch)
            jump(end.if_false, Jump(0, end.condition, end.span))
            if end.if_true is not following:
                jump(end.if_true, Jump(0))
    for new, target in jumps:
        new.target = len(items) if target is None else starts[target]
    return items


def blocks(items: Sequence[Item]) -> ir.Block:
    """Convert a sequence of operations and jumps to blocks, and return the first block."""
    count = len(items)
    jumps = {i: item for i, item in enumerate(items) if isinstance(item, Jump)}
    firsts = sorted({0, count, *(jump.target for jump in jumps.values()), *(at + 1 for at in jumps)})
    block_at = {first: ir.Block() for first in firsts}
    for first, after in itertools.pairwise(firsts):
        block, last = block_at[first], jumps.get(after - 1)
        block.ops = [item for item in items[first:after] if not isinstance(item, Jump)]
        if last is None:
            block.end = ir.Goto(block_at[after])
        elif last.condition is None:
            block.end = ir.Goto(block_at[last.target])
        else:
            block.end = ir.Branch(last.condition, block_at[after], block_at[last.target], last.span)
    return block_at[0]
