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
