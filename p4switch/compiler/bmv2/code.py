"""Operations, actions and parsers in BMv2 JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.bmv2.expressions import Json, argument, condition, header, hexstr, place, stack, value
from p4switch.compiler.bmv2.source import Source
from p4switch.ir.graph import reverse_postorder


def _argument(arg: ir.Argument) -> Json:
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


class _Primitives(ir.OperationVisitor[Json]):
    """Operations as primitives of actions."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def written(self, ops: Sequence[ir.Operation]) -> list[Json]:
        """Return the JSON of operations in sequence."""
        result: list[Json] = []
        for op in ops:
            with self._source.at(op.span):
                result.append(op.accept(self))
        return result

    def _primitive(self, op: ir.Operation, name: str, *args: ir.Argument) -> Json:
        return {"op": name, "parameters": [_argument(a) for a in args], **self._source(op.span)}

    def assign(self, op: ir.Assign) -> Json:
        return self._primitive(op, "assign_VL" if isinstance(op.dst.type, types.Varbit) else "assign", op.dst, op.src)

    def set_valid(self, op: ir.SetValid) -> Json:
        return self._primitive(op, "add_header", op.header)

    def set_invalid(self, op: ir.SetInvalid) -> Json:
        return self._primitive(op, "remove_header", op.header)

    def copy_header(self, op: ir.CopyHeader) -> Json:
        return self._primitive(op, "assign_header", op.dst, op.src)

    def copy_union(self, op: ir.CopyUnion) -> Json:
        return self._primitive(op, "assign_union", op.dst, op.src)

    def copy_stack(self, op: ir.CopyStack) -> Json:
        headers = isinstance(op.dst.element, types.Header)
        return self._primitive(op, "assign_header_stack" if headers else "assign_union_stack", op.dst, op.src)

    def move_stack(self, op: ir.MoveStack) -> Json:
        return self._primitive(op, "push" if op.by >= 0 else "pop", op.stack, ir.Const(abs(op.by), ir.ENUM_TYPE))

    def exit(self, op: ir.Exit) -> Json:
        return self._primitive(op, "exit")

    def extract(self, op: ir.Extract) -> Json:
        raise AssertionError("only a parser extracts")

    def advance(self, op: ir.Advance) -> Json:
        raise AssertionError("only a parser advances")

    def verify(self, op: ir.Verify) -> Json:
        raise AssertionError("only a parser verifies")

    def extern(self, op: ir.ExternOperation) -> Json:
        return self._primitive(op, op.primitive, *op.arguments)


def primitives(ops: Sequence[ir.Operation], source: Source) -> list[Json]:
    """Return the JSON of operations in sequence."""
    return _Primitives(source).written(ops)


def action_primitives(body: ir.Block, source: Source) -> list[Json]:
    """Return the JSON of an action's body: its blocks in sequence, with jumps."""
    order = reverse_postorder(body)
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
        result += primitives(block.ops, source)
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


class _ParserOperations(_Primitives):
    """Operations of parser states: some of their own, and primitives."""

    def _operation(self, op: ir.Operation, name: str, *parameters: Json) -> Json:
        return {"op": name, "parameters": list(parameters), **self._source(op.span)}

    def _primitive(self, op: ir.Operation, name: str, *args: ir.Argument) -> Json:
        return {"op": "primitive", "parameters": [super()._primitive(op, name, *args)]}

    def assign(self, op: ir.Assign) -> Json:
        if not isinstance(op.dst, ir.FieldRef) or isinstance(op.dst.type, types.Varbit):
            return super().assign(op)
        assigned = argument(op.src)
        if assigned["type"] == "stack_field":
            assigned = {"type": "expression", "value": assigned}
        return self._operation(op, "set", place(op.dst), assigned)

    def extract(self, op: ir.Extract) -> Json:
        target = _extract_target(op.header)
        if op.length is None:
            return self._operation(op, "extract", target)
        return self._operation(op, "extract_VL", target, {"type": "expression", "value": value(op.length)})

    def advance(self, op: ir.Advance) -> Json:
        return self._operation(op, "advance", argument(op.bits))

    def verify(self, op: ir.Verify) -> Json:
        return self._operation(op, "verify", condition(op.condition), value(op.error))


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


def parser(parsed: ir.Parser, number: int, source: Source) -> Json:
    """Return `parsed` in JSON, as the parser of that number."""
    start = parsed.start
    order = reverse_postorder(start)
    name = StateNames(order)
    states: list[Json] = []
    writer = _ParserOperations(source)
    for block in order:
        if name(block) is None and block is not start:
            continue
        keys: list[Json] = []
        end = block.end
        with source.at(next(iter(end.spans), block.span) if isinstance(end, ir.Select) else block.span):
            ops = writer.written(block.ops)
            if isinstance(end, ir.Select):
                keys = [place(k) for k in end.keys]
                transitions = _transitions(end, name, source)
            else:
                assert end is None or isinstance(end, ir.Goto)
                target = None if end is None else end.target
                where = {"next_state": name(target), **source(None if end is None else end.span)}
                transitions = [{"type": "default", "value": None, "mask": None, **where}]
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
    return {"name": parsed.name, "id": number, "init_state": name(start) or "start", "parse_states": states}
