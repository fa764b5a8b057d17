"""Conversion of a BMv2 JSON to a program of the intermediate representation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from p4switch import ir
from p4switch.architectures.packet_path import packet_path
from p4switch.bmv2 import schema
from p4switch.bmv2.expressions import Expressions, lookahead
from p4switch.bmv2.operations import Operations
from p4switch.bmv2.schema import Json, JsonError
from p4switch.bmv2.symbols import Symbols, found, unique
from p4switch.bmv2.values import hex_value, mask_value, written_number
from p4switch.compiler import types
from p4switch.interpreter import deep_recursion, uncollected
from p4switch.ir.places import Place

_MAX_CONSTANT_BITS = 4096
_ORDERED = ("ternary", "range", "optional")
_HIT_AND_MISS = {"__HIT__": True, "__MISS__": False}
_Named = TypeVar("_Named", schema.Calculation, schema.ParseVset, schema.ActionProfile, schema.MeterArray)


def read(document: Mapping[str, Json]) -> ir.Program:
    """Return the program in a BMv2 JSON of p4c or of the built-in compiler.

    Raises JsonError, which names the first violation of the format.
    """
    with uncollected(), deep_recursion():
        return _Reader(document).program


def stands_outside(name: str, keys: Sequence[object], const: bool) -> bool:
    """Return whether this table is one that compilers create for statements outside of actions."""
    return const and not keys and name.startswith("tbl_")


def _by_name(items: Sequence[_Named]) -> dict[str, _Named]:
    return {item.name: item for item in items}


class _Reader:
    """Builder of a program. A part is built before the parts that refer to it."""

    def __init__(self, document: Mapping[str, Json]) -> None:
        self._json = json = schema.validate(document)
        blocks = [block.name for kind in (json.parsers, json.pipelines, json.deparsers) for block in kind]
        self._externs = packet_path(json.meta.package, blocks).operations
        self._symbols = Symbols(json)
        self._places: list[Place] = []
        self._x = Expressions(self._symbols)
        self._calculations = {c.name: self._calculation(c.name, c.algo, c.input, c.place) for c in json.calculations}
        self._code = self._operations(self._x)
        unique("register array", (array.name for array in json.register_arrays))
        self._value_sets = _by_name(json.parse_vsets)
        self._meters = _by_name(json.meter_arrays)
        self._direct_counters = {c.binding: c.name for c in reversed(json.counter_arrays) if c.is_direct}
        self._profiles = {p.name: self._profile(p) for each in json.pipelines for p in each.action_profiles}
        unique("action", (action.id for action in json.actions))
        self._actions = {action.id: self._action(action) for action in json.actions}
        self._action_names = {action.name: action for action in self._actions.values()}
        unique("table", (table.name for pipeline in json.pipelines for table in pipeline.tables))
        self.program = self._program(str(document.get("program", "program")))

    def _program(self, name: str) -> ir.Program:
        json, x = self._json, self._x
        return ir.Program(
            name=name,
            package=json.meta.package,
            source_names=json.meta.source_names,
            headers=self._symbols.instances,
            stacks=self._symbols.stacks,
            unions=self._symbols.unions,
            errors=dict(json.errors),
            enums=[(enum.name, [member for member, _ in enum.entries]) for enum in json.enums],
            parsers=[self._parser(parser) for parser in json.parsers],
            value_sets=[ir.ValueSet(v.name, v.compressed_bitwidth, v.max_size) for v in json.parse_vsets],
            pipelines=[self._pipeline(pipeline) for pipeline in json.pipelines],
            checksums=[each for checksum in json.checksums for each in self._checksum(checksum)],
            deparsers=[
                ir.Deparser(d.name, self._code.body(d.primitives), [self._symbols.header(h) for h in d.order])
                for d in json.deparsers
            ],
            counters=[
                ir.Counter(c.name, 0 if c.is_direct else c.size, (c.binding or "") * c.is_direct, self._span(c.place))
                for c in json.counter_arrays
            ],
            meters=[self._meter(meter) for meter in json.meter_arrays],
            registers=[
                ir.Register(r.name, r.size, r.bitwidth, self._span(r.place),
                            hex_value(r.initial_value) & (1 << r.bitwidth) - 1)
                for r in json.register_arrays
            ],
            externs=[self._instance(instance) for instance in json.extern_instances],
            calculations=list(self._calculations.values()),
            field_lists=[ir.FieldList(f.name, self._copied(f.elements), f.id) for f in json.field_lists],
            learn_lists=[ir.FieldList(f.name, [x.place(e) for e in f.elements], f.id) for f in json.learn_lists],
            actions=list(self._actions.values()),
            profiles=list(self._profiles.values()),
            aliases=dict(json.field_aliases),
            lengths={
                item.name: Expressions(self._symbols, [f.type for f in self._symbols.types[item.name].fields])
                .number(item.length_exp)
                for item in json.header_types if item.length_exp is not None
            },
            place=self._place,
        )

    # Places

    def _place(self, span: int | None) -> Place | None:
        return None if span is None else self._places[span]

    def _span(self, place: Place | None) -> int | None:
        if place is None:
            return None
        self._places.append(place)
        return len(self._places) - 1

    # Code

    def _operations(self, x: Expressions) -> Operations:
        return Operations(x, self._externs, self._calculations, self._span)

    def _action(self, action: schema.Action) -> ir.Action:
        params: list[tuple[str, types.Type]] = [(p.name, ir.Bits(p.bitwidth)) for p in action.runtime_data]
        code = self._operations(Expressions(self._symbols, [t for _, t in params]))
        return ir.Action(action.name, params, code.body(action.primitives), self._span(action.place), action.id)

    # Parsers

    def _parser(self, parser: schema.Parser) -> ir.Parser:
        unique("name of a state", (state.name for state in parser.parse_states))
        states = {state.name: ir.Block(name=state.name, span=self._span(state.place)) for state in parser.parse_states}
        accept = ir.Block()

        def target(name: str | None) -> ir.Block:
            return accept if name is None else found("parser state", name, states)

        for state, block in zip(parser.parse_states, states.values(), strict=True):
            block.ops = [op for each in state.parser_ops for op in self._code.parser_operation(each)]
            defaults = [t for t in state.transitions if t.type == "default"][:1]
            if state.transition_key:
                keys = [self._key_of_state(key) for key in state.transition_key]
                widths = [types.width_of(key.type) or 0 for key in keys]
                taken = [*(t for t in state.transitions if t.type != "default"), *defaults]
                cases = [(self._case(t, widths), target(t.next_state) if t.next_state is not None else None)
                         for t in taken]
                block.end = ir.Select(keys, cases, [self._span(t.place) for t in taken])
            elif defaults:
                block.end = ir.Goto(target(defaults[0].next_state), self._span(defaults[0].place))
        return ir.Parser(parser.name, target(parser.init_state), list(states.values()))

    def _key_of_state(self, key: Mapping[str, Json]) -> ir.Expr:
        return lookahead(key.get("value")) if key.get("type") == "lookahead" else self._x.place(key)

    def _case(self, transition: schema.Transition, widths: Sequence[int]) -> list[tuple[int, int | None]] | str:
        """Return the values and masks of a transition's keys, or the name of a value set.

        The JSON has one number for all keys. Each key takes whole bytes, and the last key is lowest.
        """
        if transition.type == "default":
            return []
        if transition.type == "parse_vset":
            found("parse_vset", transition.value, self._value_sets)
            return str(transition.value)
        value = hex_value(transition.value)
        mask = None if transition.mask is None else mask_value(transition.mask)
        case: list[tuple[int, int | None]] = []
        for position, width in reversed([*enumerate(widths)]):
            bits = (width + 7) // 8 * 8
            own = value & (1 << bits) - 1 if position else value  # the first key gets the excess bits
            case.insert(0, (own, None if mask is None else mask & (1 << width) - 1))
            value, mask = value >> bits, None if mask is None else mask >> bits
        return case

    # Pipelines

    def _pipeline(self, pipeline: schema.Pipeline) -> ir.Pipeline:
        json = pipeline
        names = [node.name for kind in (json.tables, json.conditionals, json.action_calls) for node in kind]
        unique(f"name of a node in pipeline {pipeline.name}", names)
        nodes = {name: ir.Block(name=name) for name in names}
        end = ir.Block()

        def target(name: str | None) -> ir.Block:
            if name is not None and name not in nodes:
                raise JsonError(f"BMv2 JSON: pipeline {pipeline.name} has no node {name}")
            return end if name is None else nodes[name]

        for table in json.tables:
            ir_table = self._table(table)
            on = {self._label(ir_table, name): target(node) for name, node in table.next_tables.items()}
            if len({isinstance(label, bool) for label in on}) > 1:
                raise JsonError(f"BMv2 JSON: table {table.name} has next nodes both by hit or miss and by action")
            nodes[table.name].end = ir.Apply(ir_table, on, target(table.base_default_next))
        for condition in json.conditionals:
            test, span = self._x.condition(condition.expression), self._span(condition.place)
            yes, no = target(condition.true_next), target(condition.false_next)
            nodes[condition.name].end = ir.Branch(test, yes, no, span)
        for call in json.action_calls:
            action = found("action with id", call.action_id, self._actions)
            default = self._call(action, (), f"call {call.name}")
            once = ir.Table(call.name, [], [action], default, True, True, hidden=True)
            nodes[call.name].end = ir.Apply(once, {}, target(call.next_node))
        return ir.Pipeline(pipeline.name, target(pipeline.init_table), self._span(pipeline.place), list(nodes.values()))

    @staticmethod
    def _label(table: ir.Table, name: str) -> bool | int:
        """Return the label of `Apply` for a name in `next_tables`."""
        if name in _HIT_AND_MISS:
            return _HIT_AND_MISS[name]
        for number, action in enumerate(table.actions):
            if action.name == name:
                return number
        raise JsonError(f"BMv2 JSON: table {table.name} has a next node for action {name}, which it does not have")

    def _table(self, table: schema.Table) -> ir.Table:
        if table.action_ids is not None:
            actions = [found("action with id", ident, self._actions) for ident in table.action_ids]
        else:
            actions = [found("action", name, self._action_names, f"table {table.name}: ") for name in table.actions]
        keys = [self._key(table, key) for key in table.key]
        ir_table = ir.Table(
            table.name, keys, actions, size=table.max_size, support_timeout=table.support_timeout,
            span=self._span(table.place),
            counter=self._direct_counters.get(table.name, table.name) if table.with_counters else "",
            ordered=table.match_type in _ORDERED or any(key.match_kind in _ORDERED for key in keys),
        )
        if table.type != "simple":
            ir_table.profile = found("action profile", table.action_profile, self._profiles, f"table {table.name}: ")
        if table.direct_meters is not None:
            meter = found("meter array", table.direct_meters, self._meters, f"table {table.name}: ")
            if meter.result_target is None:
                raise JsonError(f"BMv2 JSON: direct meter {meter.name} has no result_target")
            ir_table.meter = meter.name
        if table.direct_cells:
            if table.entry_target is None:
                raise JsonError(f"BMv2 JSON: table {table.name} has direct_cells, but no entry_target")
            ir_table.direct, ir_table.entry = table.direct_cells, self._x.field(table.entry_target)
        default = table.default_entry
        if default is not None:
            action = found("action with id", default.action_id, self._actions)
            ir_table.default = self._call(action, default.action_data, f"table {table.name}")
            ir_table.default_const, ir_table.default_action_const = default.action_entry_const, default.action_const
            ir_table.hidden = stands_outside(table.name, keys, default.action_entry_const)
        if table.entries is not None:
            ir_table.entries = [self._entry(ir_table, entry) for entry in table.entries]
        return ir_table

    def _key(self, table: schema.Table, key: schema.TableKey) -> ir.Key:
        if key.match_type == "valid":
            name = key.target if isinstance(key.target, str) else key.target[0]
            target: ir.FieldRef | ir.Valid = ir.Valid(self._symbols.header(name))
            width = 8
        else:
            name, target = ".".join(key.target), self._x.field(key.target)
            width = types.width_of(target.type) or 1
        mask = mask_value(key.mask) if key.mask is not None else None
        if mask is not None and mask >> width:
            raise JsonError(
                f"BMv2 JSON: table {table.name}: key field {name} has {width} bits, fewer than its mask {key.mask}"
            )
        return ir.Key(target, key.match_type, key.name or name, mask)

    @staticmethod
    def _call(action: ir.Action, data: Sequence[str], where: str) -> ir.ActionCall:
        if len(data) != len(action.params):
            raise JsonError(f"BMv2 JSON: {where}: action {action.name} takes {len(action.params)} arguments")
        widths = [types.width_of(t) or 0 for _, t in action.params]
        return ir.ActionCall(action, [hex_value(value) & (1 << w) - 1 for value, w in zip(data, widths, strict=True)])

    def _entry(self, table: ir.Table, entry: schema.Entry) -> ir.Entry:
        where = f"entries of table {table.name}"
        if len(entry.match_key) != len(table.keys):
            raise JsonError(f"BMv2 JSON: {where}: expected {len(table.keys)} key fields")
        keys = [self._match(where, key, json) for key, json in zip(table.keys, entry.match_key, strict=True)]
        action = found("action with id", entry.action_entry.action_id, self._actions)
        call = self._call(action, entry.action_entry.action_data, where)
        return ir.Entry(keys, call, entry.priority, entry.is_const, self._span(entry.place))

    @staticmethod
    def _match(where: str, key: ir.Key, json: Mapping[str, Json]) -> int | tuple[int, int]:
        """Return the value of an entry for a key."""
        kind = json.get("match_type")
        if kind != key.match_kind:
            raise JsonError(f"BMv2 JSON: {where}: key field {key.name} cannot have match_type {kind}")
        ones = (1 << (types.width_of(key.target.type) or 1)) - 1
        if kind == "valid":
            return int(bool(json.get("key")))
        if kind == "range":
            low, high = hex_value(json.get("start")), hex_value(json.get("end"))
            if low & ones > high & ones:
                raise JsonError(f"BMv2 JSON: {where}: key field {key.name}: range {low:#x} to {high:#x} is empty")
            return low & ones, high & ones
        value = hex_value(json.get("key")) & ones
        if kind == "exact":
            return value
        if kind == "lpm":
            prefix = json.get("prefix_length", -1)
            if not isinstance(prefix, int) or not 0 <= prefix <= ones.bit_length():
                raise JsonError(f"BMv2 JSON: {where}: bad prefix_length")
            return value, ones & ~(ones >> prefix)
        return value, mask_value(json.get("mask")) & ones if json.get("mask") is not None else ones

    # Objects

    def _profile(self, profile: schema.ActionProfile) -> ir.Profile:
        ir_profile = ir.Profile(profile.name, profile.max_size, span=self._span(profile.place))
        if profile.selector is not None:
            selector = self._calculation(profile.name, profile.selector.algo, profile.selector.input, None)
            ir_profile.algorithm, ir_profile.inputs = selector.algorithm, selector.inputs
        return ir_profile

    def _meter(self, meter: schema.MeterArray) -> ir.Meter:
        table = meter.binding if meter.is_direct else ""
        if table is None:
            raise JsonError(f"BMv2 JSON: direct meter {meter.name} has no binding")
        result = None if meter.result_target is None else self._x.field(meter.result_target)
        return ir.Meter(meter.name, meter.size, meter.type, table, result, self._span(meter.place), meter.rate_count)

    def _instance(self, instance: schema.ExternInstance) -> ir.ExternInstance:
        attributes: dict[str, ir.Const | str] = {}
        for each in instance.attribute_values:
            if each.type == "hexstr":
                attributes[each.name] = written_number(each.value)
            elif each.type == "string":
                attributes[each.name] = str(each.value)
        return ir.ExternInstance(instance.name, instance.type, attributes, self._span(instance.place))

    def _checksum(self, checksum: schema.Checksum) -> list[ir.Checksum]:
        """Return a checksum for each use, verification and update."""
        calculation = found("calculation", checksum.calculation, self._calculations, f"checksum {checksum.name}: ")
        target = self._x.field(list(checksum.target))
        if isinstance(target, ir.Valid):
            raise JsonError(f"BMv2 JSON: checksum {checksum.name} goes to a validity; expected a field")
        condition = ir.Const(1, ir.BOOL) if checksum.if_cond is None else self._x.condition(checksum.if_cond)
        span = self._span(checksum.place)
        checksums = []
        for verify, wanted in ((True, checksum.verify), (False, checksum.update)):
            if wanted:
                checksums.append(ir.Checksum(target, calculation, condition, verify, span, checksum.name))
        return checksums

    def _field(self, json: Json) -> ir.FieldRef:
        field = self._x.field(json)
        if isinstance(field, ir.Valid):
            raise JsonError(f"BMv2 JSON: expected a field, got {json}")
        return field

    def _copied(self, elements: Sequence[Mapping[str, Json]]) -> list[ir.Expr]:
        """Return the fields of a field list."""
        return [self._field(element.get("value")) for element in elements if element.get("type") == "field"]

    def _calculation(
        self, name: str, algorithm: str, inputs: Sequence[Mapping[str, Json]], place: Place | None
    ) -> ir.Calculation:
        ir_calculation = ir.Calculation(name, algorithm, [], span=self._span(place))
        for item in inputs:
            kind, value = item.get("type"), item.get("value")
            if kind == "field":
                ir_calculation.inputs.append(self._field(value))
            elif kind == "hexstr":
                width = item.get("bitwidth")
                if not isinstance(width, int) or not 0 < width <= _MAX_CONSTANT_BITS:
                    raise JsonError("BMv2 JSON: a constant in a calculation needs a bitwidth")
                ir_calculation.inputs.append(ir.Const(hex_value(value), ir.Bits(width)))
            elif kind == "header":
                ir_calculation.inputs.append(self._symbols.header(str(value)))
            elif kind == "payload":
                ir_calculation.with_payload = True
            else:
                raise JsonError(f"BMv2 JSON: a calculation cannot have {kind} as input")
        return ir_calculation
