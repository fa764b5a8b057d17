"""Writer of a program's BMv2 JSON (format: behavioral-model's docs/JSON_format.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from p4switch import ir
from p4switch.bmv2.flat import Jump, flat
from p4switch.bmv2.symbols import VALID
from p4switch.bmv2.values import hexstr
from p4switch.compiler import types

VERSION = [2, 23]  # version of the JSON format
_NAMES = {"&&": "and", "||": "or", "!": "not", "?:": "?"}

Json = dict[str, Any]


# Expressions


def _width(t: types.Type) -> int:
    return types.width_of(t) or 0


def _number(value: int, width: int = 0) -> Json:
    return {"type": "hexstr", "value": hexstr(value, width)}


def _op(op: str, left: Json | None, right: Any, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def _header(ref: ir.HeaderRef) -> Json:
    if not ref.stack:
        return {"type": "header", "value": ref.name}
    assert ref.index is not None
    if ref.member:
        return _member(ref.stack, ref.index, ref.position)
    return _element(ref.stack, ref.index)


def _element(stack: str, index: ir.Expr) -> Json:
    return _op("dereference_header_stack", {"type": "header_stack", "value": stack}, _value(index))


def _member(stack: str, index: ir.Expr, position: int) -> Json:
    union = _op("dereference_union_stack", {"type": "header_union_stack", "value": stack}, _value(index))
    return _op("access_union_header", union, position)


def _stack(ref: ir.StackRef) -> Json:
    kind = "header_stack" if isinstance(ref.element, types.Header) else "header_union_stack"
    return {"type": kind, "value": ref.name}


def _place(expr: ir.Expr) -> Json:
    """Return a field in its stored form."""
    if isinstance(expr, ir.FieldRef):
        return {"type": "field", "value": [expr.header, expr.name]}
    if isinstance(expr, ir.LastField):
        if expr.member:
            return {"type": "union_stack_field", "value": [expr.stack, expr.member, expr.name]}
        return {"type": "stack_field", "value": [expr.stack, expr.name]}
    if isinstance(expr, ir.ElemField):
        stack, index = expr.stack, expr.index
        header = _member(stack, index, expr.member_position) if expr.member else _element(stack, index)
        return _op("access_field", header, expr.position)
    assert isinstance(expr, ir.Valid)
    return {"type": "field", "value": [expr.header.name, VALID]}


class _Values(ir.ExpressionVisitor[Json]):
    """Writer of expressions as operands of others."""

    def const(self, expr: ir.Const) -> Json:
        if isinstance(expr.type, types.Bool):
            return {"type": "bool", "value": bool(expr.value)}
        return _number(expr.value, _width(expr.type))

    def field(self, expr: ir.Place) -> Json:
        return _place(expr)

    last_field = elem_field = field

    def param(self, expr: ir.Param) -> Json:
        return {"type": "local", "value": expr.index}

    def valid(self, expr: ir.Valid) -> Json:
        if expr.header.stack:
            return _op("valid", None, _header(expr.header))
        return _op("d2b", None, _place(expr))

    def last_index(self, expr: ir.LastIndex) -> Json:
        return _op("last_stack_index", None, {"type": "header_stack", "value": expr.stack})

    def lookahead(self, expr: ir.Lookahead) -> Json:
        return {"type": "lookahead", "value": [expr.offset, expr.width]}

    def op(self, expr: ir.Op) -> Json:
        op, t = expr.op, expr.type
        args = [each.accept(self) for each in expr.args]
        if op == "?:":
            return _op("?", args[1], args[2], cond=args[0])
        if op == "cast" and isinstance(t, types.Bool):
            return _op("d2b", None, args[0])
        if op == "cast" and isinstance(expr.args[0].type, types.Bool):
            return _op("b2d", None, args[0])
        if op == "cast" and t == ir.INT:
            return args[0]
        if op == "cast":
            return _op("two_comp_mod", args[0], _number(_width(t)))
        if op == "saturate":
            assert isinstance(t, types.Bits)
            return _op("sat_cast" if t.signed else "usat_cast", args[0], _number(t.width))
        return _op(_NAMES.get(op, op), args[0] if len(args) == 2 else None, args[-1])


_VALUES = _Values()


def _value(expr: ir.Expr) -> Json:
    return expr.accept(_VALUES)


def _argument(expr: ir.Argument) -> Json:
    """Return an argument of a primitive or parser operation."""
    if isinstance(expr, ir.HeaderRef):
        header = _header(expr)
        return header if not expr.stack else {"type": "expression", "value": header}
    if isinstance(expr, ir.UnionRef):
        return {"type": "header_union", "value": expr.name}
    if isinstance(expr, ir.StackRef):
        return _stack(expr)
    if isinstance(expr, ir.Named):
        return {"type": expr.kind, "value": expr.value}
    if isinstance(expr, list):
        return {"type": "parameters_vector", "value": [_argument(each) for each in expr]}
    if isinstance(expr, ir.Param):
        return {"type": "runtime_data", "value": expr.index}
    header = _value(expr)
    if isinstance(expr, ir.Const | ir.FieldRef | ir.LastField | ir.Lookahead):
        return header
    return {"type": "expression", "value": header}


# Code


class _Primitives(ir.OperationVisitor[Json]):
    """Writer of operations as primitives of actions."""

    def __init__(self, info: Callable[[int | None], Json]) -> None:
        self._info = info

    def _primitive(self, op: ir.Operation, args: Iterable[ir.Argument]) -> Json:
        return {"op": op.bmv2_name, "parameters": [_argument(a) for a in args], **self._info(op.span)}

    def _plain(self, op: ir.Operation) -> Json:
        return self._primitive(op, op.arguments)

    def assign(self, op: ir.Assign) -> Json:
        return self._plain(op)

    set_valid = set_invalid = copy_header = copy_union = copy_stack = exit = extern = _plain

    def move_stack(self, op: ir.MoveStack) -> Json:
        return self._primitive(op, [op.stack, ir.Const(abs(op.by), ir.ENUM_TYPE)])

    def extract(self, op: ir.Extract) -> Json:
        raise AssertionError("only a parser extracts")

    def advance(self, op: ir.Advance) -> Json:
        raise AssertionError("only a parser advances")

    def verify(self, op: ir.Verify) -> Json:
        raise AssertionError("only a parser verifies")

    def body(self, start: ir.Block) -> list[Json]:
        """Return the primitives of an action's blocks."""
        return [self._jump(item) if isinstance(item, Jump) else item.accept(self) for item in flat(start)]

    def _jump(self, jump: Jump) -> Json:
        target = _number(jump.target)
        if jump.condition is None:
            return {"op": "_jump", "parameters": [target]}
        return {"op": "_jump_if_zero", "parameters": [_condition(jump.condition), target], **self._info(jump.span)}


def _condition(expr: ir.Expr) -> Json:
    """Return a condition as an argument. Arguments are numbers."""
    if isinstance(expr, ir.Op) and expr.op == "cast":
        return _argument(expr.args[0])
    return {"type": "expression", "value": _op("b2d", None, _value(expr))}


class _ParserOperations(_Primitives):
    """Writer of operations of parser states, some of which are primitives."""

    def _operation(self, op: ir.Operation, name: str, *parameters: Json) -> Json:
        return {"op": name, "parameters": list(parameters), **self._info(op.span)}

    def _primitive(self, op: ir.Operation, args: Iterable[ir.Argument]) -> Json:
        return {"op": "primitive", "parameters": [super()._primitive(op, args)]}

    def assign(self, op: ir.Assign) -> Json:
        if not isinstance(op.dst, ir.FieldRef) or isinstance(op.dst.type, types.Varbit):
            return super().assign(op)
        assigned = _argument(op.src)
        if assigned["type"] == "stack_field":
            assigned = {"type": "expression", "value": assigned}
        return self._operation(op, "set", _place(op.dst), assigned)

    def extract(self, op: ir.Extract) -> Json:
        target = _extracted(op.header)
        if op.length is None:
            return self._operation(op, "extract", target)
        return self._operation(op, "extract_VL", target, {"type": "expression", "value": _value(op.length)})

    def advance(self, op: ir.Advance) -> Json:
        return self._operation(op, "advance", _argument(op.bits))

    def verify(self, op: ir.Verify) -> Json:
        return self._operation(op, "verify", _value(op.condition), _value(op.error))


def _extracted(ref: ir.HeaderRef) -> Json:
    if ref.where == "next":
        if ref.member:
            return {"type": "union_stack", "value": [ref.stack, ref.member]}
        return {"type": "stack", "value": ref.stack}
    return {"type": "regular", "value": ref.name}


def _name(block: ir.Block | None) -> str | None:
    return (block.name or None) if block is not None else None


def _transition(case: list[tuple[int, int | None]] | str, widths: list[int]) -> Json:
    if isinstance(case, str):
        return {"type": "parse_vset", "value": case, "mask": None}
    if not case:
        return {"type": "default", "value": None, "mask": None}
    bits = mask = 0
    for (value, own_mask), width in zip(case, widths, strict=True):
        shift = (width + 7) // 8 * 8
        bits, mask = bits << shift | value, mask << shift | (own_mask or 0)
    total = sum((width + 7) // 8 * 8 for width in widths)
    masked = any(own_mask is not None for _, own_mask in case)
    return {"type": "hexstr", "value": hexstr(bits, total), "mask": hexstr(mask, total) if masked else None}


# Tables


def _match(key: ir.Key, value: ir.KeyValue) -> Json:
    """Return one key of an entry."""
    width = _width(key.target.type) or 1
    kind = key.match_kind
    if kind == "exact":
        assert isinstance(value, int)
        return {"match_type": "exact", "key": hexstr(value, width)}
    assert isinstance(value, tuple)
    first, second = value
    if kind == "range":
        return {"match_type": "range", "start": hexstr(first, width), "end": hexstr(second, width)}
    if kind == "lpm":
        return {"match_type": "lpm", "key": hexstr(first, width), "prefix_length": second.bit_count()}
    return {"match_type": "ternary", "key": hexstr(first, width), "mask": hexstr(second, width)}


def _match_type(table: ir.Table) -> str:
    kinds = {key.match_kind for key in table.keys}
    return next((kind for kind in ("range", "ternary", "lpm") if kind in kinds), "exact")


def _call(call: ir.ActionCall) -> Json:
    return {"action_id": call.action.number, "action_data": [hexstr(value) for value in call.args]}


def _next_tables(end: ir.Apply) -> Json:
    if end.by_hit:
        return {"__HIT__" if label else "__MISS__": _name(node) for label, node in end.on.items()}
    return {end.table.actions[label].name: _name(node) for label, node in end.on.items()}


def _key(key: ir.Key) -> Json:
    mask = None if key.mask is None else hexstr(key.mask, _width(key.target.type) or 1)
    return {"match_type": key.match_kind, "name": key.name, "target": _place(key.target)["value"], "mask": mask}


class _Writer:
    def __init__(self, program: ir.Program) -> None:
        self._program = program
        self._primitives = _Primitives(self._info)
        self._operations = _ParserOperations(self._info)
        self._numbers = dict.fromkeys(("table", "conditional", "profile"), 0)

    def _info(self, span: int | None) -> Json:
        place = self._program.place(span)
        if place is None:
            return {}
        file, line, column, text = place
        return {"source_info": {"filename": file, "line": line, "column": column, "source_fragment": text}}

    def _next(self, what: str) -> int:
        """Return the next number of a kind of objects. They are numbered across all pipelines."""
        self._numbers[what] += 1
        return self._numbers[what] - 1

    def json(self) -> Json:
        program = self._program
        return {
            "program": program.name,
            "__meta__": {
                "version": VERSION,
                "compiler": "p4cc",
                **({"package": program.package} if program.package else {}),
                "source_names": program.source_names,
            },
            **self._headers(),
            "field_lists": _field_lists(program.field_lists),
            "errors": [[name, i] for name, i in program.errors.items()],
            "enums": [{"name": n, "entries": [[m, i] for i, m in enumerate(members)]} for n, members in program.enums],
            "parsers": _numbered(map(self._parser, program.parsers)),
            "parse_vsets": _numbered(
                {"name": v.name, "compressed_bitwidth": v.width, "max_size": v.size} for v in program.value_sets
            ),
            "deparsers": _numbered(map(self._deparser, program.deparsers)),
            "meter_arrays": _numbered(map(self._meter, program.meters)),
            "counter_arrays": _numbered(map(self._counter, program.counters)),
            "register_arrays": _numbered(map(self._register, program.registers)),
            "calculations": _numbered(map(self._calculation, program.calculations)),
            "learn_lists": _field_lists(program.learn_lists),
            "actions": [self._action(action) for action in program.actions],
            "pipelines": _numbered(map(self._pipeline, program.pipelines)),
            "checksums": _numbered(map(self._checksum, program.checksums)),
            "force_arith": [],
            "extern_instances": _numbered(map(self._instance, program.externs)),
            "field_aliases": [[alias, list(field)] for alias, field in program.aliases.items()],
        }

    def _headers(self) -> Json:
        program = self._program
        unions = dict.fromkeys(ref.type for ref, _ in program.unions)
        unions |= dict.fromkeys(ref.element for ref, _ in program.stacks if isinstance(ref.element, types.Union))
        kinds = dict.fromkeys(instance.type for instance in program.headers)
        kinds |= dict.fromkeys(f.type for union in unions for f in union.fields if isinstance(f.type, types.Header))
        kinds |= dict.fromkeys(ref.element for ref, _ in program.stacks if isinstance(ref.element, types.Header))
        ids = {instance.name: i for i, instance in enumerate(program.headers)}
        union_ids = {ref.name: i for i, (ref, _) in enumerate(program.unions)}
        stacks, union_stacks = [], []
        for ref, names in program.stacks:
            own: Json = {"name": ref.name}
            if isinstance(ref.element, types.Header):
                own |= {"header_type": ref.element.name, "size": ref.size, "header_ids": [ids[n] for n in names]}
                stacks.append(own)
            else:
                own |= {"union_type": ref.element.name, "size": ref.size}
                union_stacks.append(own | {"header_union_ids": [union_ids[n] for n in names]})
        omitted = {"pi_omit": True}
        return {
            "header_types": _numbered(map(_header_type, kinds)),
            "headers": _numbered(
                {"name": h.name, "header_type": h.type.name, "metadata": h.metadata, **omitted} for h in program.headers
            ),
            "header_stacks": _numbered(stacks),
            "header_union_types": _numbered(
                {"name": t.name, "headers": [[f.name, str(f.type)] for f in t.fields]} for t in unions
            ),
            "header_unions": _numbered(
                {"name": ref.name, "union_type": ref.type.name, "header_ids": [ids[n] for n in names], **omitted}
                for ref, names in program.unions
            ),
            "header_union_stacks": _numbered(union_stacks),
        }

    # Parsers and deparsers

    def _parser(self, parser: ir.Parser) -> Json:
        states = _numbered(map(self._state, parser.states))
        return {"name": parser.name, "init_state": parser.start.name, "parse_states": states}

    def _deparser(self, deparser: ir.Deparser) -> Json:
        order = [header.name for header in deparser.order]
        return {"name": deparser.name, "order": order, "primitives": self._primitives.body(deparser.body)}

    def _state(self, state: ir.Block) -> Json:
        end, keys = state.end, []
        if isinstance(end, ir.Select):
            keys = [_place(key) for key in end.keys]
            widths = [_width(key.type) for key in end.keys]
            transitions = [
                {**_transition(case, widths), "next_state": _name(target), **self._info(span)}
                for (case, target), span in zip(end.cases, end.spans, strict=True)
            ]
        else:
            assert isinstance(end, ir.Goto)
            where = {"next_state": _name(end.target), **self._info(end.span)}
            transitions = [{"type": "default", "value": None, "mask": None, **where}]
        return {
            "name": state.name,
            "parser_ops": [op.accept(self._operations) for op in state.ops],
            "transitions": transitions,
            "transition_key": keys,
            **self._info(state.span),
        }

    # Pipelines

    def _action(self, action: ir.Action) -> Json:
        return {
            "name": action.name,
            "id": action.number,
            "runtime_data": [{"name": name, "bitwidth": _width(t)} for name, t in action.params],
            "primitives": self._primitives.body(action.body),
            **self._info(action.span),
        }

    def _pipeline(self, pipeline: ir.Pipeline) -> Json:
        profiles = dict.fromkeys(table.profile for table in pipeline.tables if table.profile is not None)
        ends = [(node, node.end) for node in pipeline.nodes]
        return {
            "name": pipeline.name,
            "init_table": _name(pipeline.start),
            "tables": [self._table(end) for _, end in ends if isinstance(end, ir.Apply)],
            "action_profiles": [self._profile(profile) for profile in profiles],
            "conditionals": [self._conditional(node, end) for node, end in ends if isinstance(end, ir.Branch)],
            **self._info(pipeline.span),
        }

    def _conditional(self, node: ir.Block, end: ir.Branch) -> Json:
        return {
            "name": node.name,
            "id": self._next("conditional"),
            **self._info(end.span),
            "expression": _value(end.condition),
            "true_next": _name(end.if_true),
            "false_next": _name(end.if_false),
        }

    def _table(self, end: ir.Apply) -> Json:
        table, profile = end.table, end.table.profile
        actions = {"action_ids": [a.number for a in table.actions], "actions": [a.name for a in table.actions]}
        nexts = {"base_default_next": _name(end.default), "next_tables": _next_tables(end)}
        what: Json = {"type": "simple"}
        if profile is not None:
            what = {"type": "indirect_ws" if profile.algorithm else "indirect", "action_profile": profile.name}
        keys: Json = {"key": [_key(key) for key in table.keys], "match_type": _match_type(table)}
        result = {"name": table.name, "id": self._next("table"), **self._info(table.span), **keys, **what}
        result |= {
            "max_size": table.size,
            "with_counters": bool(table.counter),
            "support_timeout": table.support_timeout,
            "direct_meters": table.meter or None,
            **actions,
            **nexts,
        }
        if table.entry is not None:
            result |= {"direct_cells": table.direct, "entry_target": _place(table.entry)["value"]}
        if table.default is not None:
            call = _call(table.default)
            result["default_entry"] = {
                "action_id": call["action_id"],
                "action_const": table.default_action_const,
                "action_data": call["action_data"],
                "action_entry_const": table.default_const,
            }
        if table.entries is not None:
            result["entries"] = [self._entry(table, entry) for entry in table.entries]
        return result

    def _entry(self, table: ir.Table, entry: ir.Entry) -> Json:
        return {
            **self._info(entry.span),
            "match_key": [_match(key, value) for key, value in zip(table.keys, entry.keys, strict=True)],
            "action_entry": _call(entry.call),
            "priority": entry.priority,
            "is_const": entry.const,
        }

    def _profile(self, profile: ir.Profile) -> Json:
        number = self._next("profile")
        json: Json = {"name": profile.name, "id": number, "max_size": profile.size, **self._info(profile.span)}
        if profile.algorithm:
            json["selector"] = {"algo": profile.algorithm, "input": [_argument(each) for each in profile.inputs]}
        return json

    # Objects

    def _calculation(self, calculation: ir.Calculation) -> Json:
        elements: list[Json] = []
        for element in calculation.inputs:
            json = _argument(element)
            if isinstance(element, ir.Const):
                json["bitwidth"] = _width(element.type)
            elements.append(json)
        if calculation.with_payload:
            elements.append({"type": "payload", "value": None})
        info = self._info(calculation.span)
        return {"name": calculation.name, "algo": calculation.algorithm, "input": elements, **info}

    def _checksum(self, checksum: ir.Checksum) -> Json:
        return {
            "name": checksum.name,
            **self._info(checksum.span),
            "target": _place(checksum.target)["value"],
            "type": "generic",
            "calculation": checksum.calculation.name,
            "verify": checksum.verify,
            "update": not checksum.verify,
            "if_cond": _value(checksum.condition),
        }

    def _counter(self, counter: ir.Counter) -> Json:
        if counter.table:
            own: Json = {"is_direct": True, "binding": counter.table}
        else:
            own = {"size": counter.size, "is_direct": False}
        return {"name": counter.name, **own, **self._info(counter.span)}

    def _meter(self, meter: ir.Meter) -> Json:
        json: Json = {"name": meter.name, "is_direct": bool(meter.table), "size": meter.size, "rate_count": meter.rates}
        json["type"] = meter.unit
        if meter.table:
            assert meter.result is not None
            json |= {"binding": meter.table, "result_target": _place(meter.result)["value"]}
        return {**json, **self._info(meter.span)}

    def _register(self, register: ir.Register) -> Json:
        initial = {"initial_value": hex(register.initial)} if register.initial else {}
        info = self._info(register.span)
        return {"name": register.name, "size": register.size, "bitwidth": register.width, **initial, **info}

    def _instance(self, extern: ir.ExternInstance) -> Json:
        attributes = [
            {"name": name, **({"type": "string", "value": value} if isinstance(value, str) else _argument(value))}
            for name, value in extern.attributes.items()
        ]
        own = {"name": extern.name, "type": extern.type, "attribute_values": attributes}
        return {**own, **self._info(extern.span)}


def _header_type(t: types.Header) -> Json:
    fields = [
        [f.name, "*"] if isinstance(f.type, types.Varbit)
        else [f.name, _width(f.type), isinstance(f.type, types.Bits) and f.type.signed]
        for f in t.fields
    ]
    json: Json = {"name": t.name, "fields": fields}
    if any(isinstance(f.type, types.Varbit) for f in t.fields):
        json["max_length"] = sum(_width(f.type) for f in t.fields) // 8
    return json


def _numbered(items: Iterable[Json]) -> list[Json]:
    """Return items with numbers appended to their names."""
    return [{"name": item.pop("name"), "id": i, **item} for i, item in enumerate(items)]


def _field_lists(lists: Iterable[ir.FieldList]) -> list[Json]:
    return [{"id": each.number, "name": each.name, "elements": [_place(e) for e in each.elements]} for each in lists]


def to_json(program: ir.Program) -> Json:
    """Return the BMv2 JSON of a program. `read` returns the same program for it."""
    return _Writer(program).json()
