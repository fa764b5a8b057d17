"""Operations, actions and parsers in BMv2 JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4switch.compiler import types
from p4switch.compiler.bmv2.expressions import Json, argument, condition, header, hexstr, place, stack, value
from p4switch.compiler.bmv2.source import Source
from p4switch.compiler.midend import ir
from p4switch.compiler.midend.graph import reverse_postorder, simplify


def _argument(arg: Any) -> Json:
    if isinstance(arg, ir.HeaderRef):
        found = header(arg)
        return found if not arg.stack else {"type": "expression", "value": found}
    if isinstance(arg, ir.UnionRef):
        return {"type": "header_union", "value": arg.name}
    if isinstance(arg, ir.StackRef):
        return stack(arg)
    if isinstance(arg, ir.Named):
        return {"type": arg.kind, "value": arg.value}
    if isinstance(arg, list):
        return {"type": "parameters_vector", "value": [argument(a) for a in arg]}
    return argument(arg)


def primitive(op: ir.Operation, source: Source) -> Json:
    """An operation of an action."""
    with source.at(op.span):
        if isinstance(op, ir.Assign):
            name = "assign_VL" if isinstance(op.dst.type, types.Varbit) else "assign"
            parameters = [argument(op.dst), argument(op.src)]
        else:
            assert isinstance(op, ir.Prim), op
            name = op.op
            parameters = [_argument(a) for a in op.args]
    return {"op": name, "parameters": parameters, **source(op.span)}


def primitives(body: ir.Block, source: Source) -> list[Json]:
    """The body of an action: its blocks one after the other, with jumps."""
    order = reverse_postorder(simplify(body))
    result: list[Json] = []
    starts: dict[ir.Block, int] = {}
    jumps: list[tuple[Json, ir.Block | None]] = []

    def jump(target: ir.Block | None, branch: ir.Branch | None = None) -> None:
        op: Json = {"op": "_jump", "parameters": []}
        if branch is not None:
            with source.at(branch.span):
                op = {"op": "_jump_if_zero", "parameters": [argument(branch.condition)], **source(branch.span)}
        result.append(op)
        jumps.append((op, target))

    for i, block in enumerate(order):
        starts[block] = len(result)
        following = order[i + 1] if i + 1 < len(order) else None
        result += [primitive(op, source) for op in block.ops]
        end = block.end
        if end is None:
            if following is not None:
                jump(None)
        elif isinstance(end, ir.Goto):
            if end.target is not following:
                jump(end.target)
        else:
            assert isinstance(end, ir.Branch)
            jump(end.if_false, end)
            if end.if_true is not following:
                jump(end.if_true)
    for op, target in jumps:
        offset = len(result) if target is None else starts[target]
        op["parameters"].append({"type": "hexstr", "value": hexstr(offset)})
    return result


# Parsers


def _parser_op(op: ir.Operation, source: Source) -> Json:
    with source.at(op.span):
        name, parameters = _named(op, source)
    return {"op": name, "parameters": parameters, **({} if name == "primitive" else source(op.span))}


def _named(op: ir.Operation, source: Source) -> tuple[str, list[Json]]:
    """What the operation is called in a parser, and its parameters."""
    if isinstance(op, ir.Extract):
        parameters = [_extract_target(op.header)]
        if op.length is None:
            return "extract", parameters
        return "extract_VL", [*parameters, {"type": "expression", "value": value(op.length)}]
    if isinstance(op, ir.Verify):
        return "verify", [condition(op.condition), value(op.error)]
    if isinstance(op, ir.Advance):
        return "advance", [argument(op.bits)]
    if isinstance(op, ir.Assign) and isinstance(op.dst, ir.FieldRef) and not isinstance(op.dst.type, types.Varbit):
        assigned = argument(op.src)
        if assigned["type"] == "stack_field":
            assigned = {"type": "expression", "value": assigned}
        return "set", [place(op.dst), assigned]
    return "primitive", [primitive(op, source)]


def _extract_target(ref: ir.HeaderRef) -> Json:
    if ref.where == "next":
        if ref.member:
            return {"type": "union_stack", "value": [ref.stack, ref.member]}
        return {"type": "stack", "value": ref.stack}
    return {"type": "regular", "value": ref.name}


def _bytes(width: int) -> int:
    return -(-width // 8)


def _transitions(end: ir.Select, name: Callable[[ir.Block | None], str | None], source: Source) -> list[Json]:
    widths = [types.width_of(k.type) or 0 for k in end.keys]
    result: list[Json] = []
    for (keys, target), span in zip(end.cases, end.spans, strict=True):
        where = {"next_state": name(target), **source(span)}
        if isinstance(keys, str):
            result.append({"type": "parse_vset", "value": keys, "mask": None, **where})
            continue
        total = sum(map(_bytes, widths))
        bits, mask, exact = 0, 0, True
        for (key, key_mask), width in zip(keys, widths, strict=True):
            shift = 8 * _bytes(width)
            full = (1 << width) - 1
            bits = bits << shift | (key & full)
            mask = mask << shift | (full if key_mask is None else key_mask & full)
            exact = exact and key_mask is None
        if mask == 0:
            result.append({"type": "default", "value": None, "mask": None, **where})
            break
        result.append(
            {
                "type": "hexstr",
                "value": hexstr(bits, 8 * total),
                "mask": None if exact else hexstr(mask, 8 * total),
                **where,
            }
        )
    return result


class StateNames:
    """Unique names for the states of a parser; None is the end."""

    def __init__(self, order: list[ir.Block]) -> None:
        self._names: dict[ir.Block, str] = {}
        taken: set[str] = set()
        for block in order:
            base = block.name or "state"
            name, n = base, 0
            while name in taken:
                n += 1
                name = f"{base}_{n}"
            taken.add(name)
            self._names[block] = name

    def __call__(self, block: ir.Block | None) -> str | None:
        if block is None or (not block.ops and block.end is None):
            return None
        return self._names[block]


def parser(start: ir.Block, branch_flag: ir.FieldRef | None, source: Source) -> Json:
    """The parser whose entry is `start`. `branch_flag` is a bool field for the conditions of `if` statements."""
    start = simplify(start)
    order = reverse_postorder(start)
    name = StateNames(order)
    states: list[Json] = []
    for block in order:
        if name(block) is None and block is not start:
            continue
        ops = [_parser_op(op, source) for op in block.ops]
        keys: list[Json] = []
        end = block.end
        if end is None or isinstance(end, ir.Goto):
            target = None if end is None else end.target
            where = {"next_state": name(target), **source(None if end is None else end.span)}
            transitions = [{"type": "default", "value": None, "mask": None, **where}]
        elif isinstance(end, ir.Branch):
            assert branch_flag is not None
            with source.at(end.span):
                ops.append(_parser_op(ir.Assign(branch_flag, end.condition), source))
            keys = [place(branch_flag)]
            transitions = [
                {"type": "hexstr", "value": "0x01", "mask": None, "next_state": name(end.if_true)},
                {"type": "default", "value": None, "mask": None, "next_state": name(end.if_false)},
            ]
            for transition in transitions:
                transition.update(source(end.span))
        else:
            assert isinstance(end, ir.Select)
            with source.at(next(iter(end.spans), block.span)):
                keys = [place(k) for k in end.keys]
            transitions = _transitions(end, name, source)
        states.append(
            {
                "name": name(block) or "start",
                "id": len(states),
                "parser_ops": ops,
                "transitions": transitions,
                "transition_key": keys,
                **source(block.span),
            }
        )
    return {"name": "parser", "id": 0, "init_state": name(start) or "start", "parse_states": states}
