"""Control-flow graphs: what follows what."""

from __future__ import annotations

from p4switch import ir


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


def reverse_postorder(start: ir.Block) -> list[ir.Block]:
    """The blocks reachable from `start`: each before its successors but for loops, the first successor's side first."""
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
    """Those that pipelines apply, in the order of the code."""
    blocks = (block for pipeline in program.pipelines for block in reverse_postorder(pipeline.start))
    return list(dict.fromkeys(block.end.table for block in blocks if isinstance(block.end, ir.Apply)))


def actions(program: ir.Program) -> list[ir.Action]:
    """Those of the tables that pipelines apply."""
    return list(dict.fromkeys(action for table in tables(program) for action in table.actions))


def drop_needless(start: ir.Block, rewinds: set[ir.MoveStack]) -> None:
    """Drop those of `rewinds` from the code that begins with `start` before which nothing has moved on in the stack."""
    order = reverse_postorder(start)
    before: dict[ir.Block, set[str]] = {block: set() for block in order}  # stacks in which something may have moved on
    changed = True
    while changed:
        changed = False
        for block in order:
            moved = set(before[block])
            for op in block.ops:
                _note_move(op, moved, rewinds)
            for target in successors(block):
                if not moved <= before[target]:
                    before[target] |= moved
                    changed = True
    for block in order:
        moved, kept = before[block], []
        for op in block.ops:
            if not (isinstance(op, ir.MoveStack) and op in rewinds and op.stack.name not in moved):
                kept.append(op)
            _note_move(op, moved, rewinds)
        block.ops = kept


def _note_move(op: ir.Operation, moved: set[str], rewinds: set[ir.MoveStack]) -> None:
    """Change `moved` by what `op` does to where `next` of a stack is."""
    if isinstance(op, ir.MoveStack):
        if op in rewinds:
            moved.discard(op.stack.name)
        elif op.by > 0:
            moved.add(op.stack.name)
    elif isinstance(op, ir.CopyStack):
        moved.add(op.dst.name)
    elif isinstance(op, ir.Extract) and op.header.where == "next":
        moved.add(op.header.stack)
