"""Control-flow graphs: order, and what can be dropped from them."""

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


def _final(block: ir.Block) -> ir.Block:
    """Where control ends up from `block` without doing anything."""
    seen = {block}
    while not block.ops and isinstance(block.end, ir.Goto):
        block = block.end.target
        if block in seen:
            return ir.Block()  # an endless loop that does nothing
        seen.add(block)
    return block


def simplify(start: ir.Block) -> ir.Block:
    """Threads jumps and joins blocks that always follow each other; named blocks stay apart. Returns the entry."""
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
