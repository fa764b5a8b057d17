"""Actions, tables and pipelines in C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from p4switch import ir
from p4switch.bmv2 import schema
from p4switch.bmv2.schema import JsonError
from p4switch.bmv2.values import hex_value, mask_value
from p4switch.compiler import types
from p4switch.engine import calc, cexpr, cnodes, flow, keys
from p4switch.engine.cnodes import Case, Statement, array, initialiser, literal_array
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import parameter_members, params_of
from p4switch.engine.program import Program, c_string, labels, numbered
from p4switch.engine.statements import Statements, is_empty
from p4switch.engine.value import Value, c_member, cut, struct_bytes

_KINDS = {
    "exact": "P4_EXACT", "lpm": "P4_LPM", "ternary": "P4_TERNARY", "range": "P4_RANGE", "optional": "P4_OPTIONAL",
    "valid": "P4_VALID",
}
_ORDERED = ("ternary", "range", "optional")


@dataclass
class Table:
    """A table with its place in memory. Offsets are of an entry, in bytes."""

    number: int
    json: schema.Table
    fields: list[keys.KeyField]
    words: int
    kind: str
    actions: list[int]
    profile: int
    meter: int
    counter_offset: int = 0
    last_hit_offset: int = 0
    data_offset: int = 0
    stride: int = 0
    fallback_offset: int = 0

    label: str = ""

    def named(self, what: str) -> str:
        """Return the C name of something that belongs to the table."""
        return f"{what}_{self.label}"

    @property
    def has_range(self) -> bool:
        return any(f.kind == "P4_RANGE" for f in self.fields)


@dataclass
class Control:
    """Everything between parser and deparser. `text` of actions and pipelines is generated on demand."""

    program: Program
    tables: list[Table] = field(default_factory=list)
    exits: set[int] = field(default_factory=set)  # actions that may exit
    empty: set[int] = field(default_factory=set)  # actions that do nothing
    functions: dict[int, str] = field(default_factory=dict)  # of the others, by numbers of actions
    loops: bool = False  # a pipeline or an action has a loop
    fallbacks_bytes: int = 0

    def __post_init__(self) -> None:
        json = self.program.json
        self.action_numbers = {action.id: i for i, action in enumerate(json.actions)}
        self.profiles = [(p, pipeline) for pipeline in json.pipelines for p in pipeline.action_profiles]
        self.profile_numbers = {p.name: i for i, (p, _) in enumerate(self.profiles)}
        # Tables that are looked up come first: they share cache lines.
        tables = [table for pipeline in json.pipelines for table in pipeline.tables]
        self.statements = {t.name: self._fixed_action(t) for t in tables if _is_statement(t)}
        for table in sorted(tables, key=lambda table: not table.key):
            if table.name not in self.statements:
                self.tables.append(self._table(len(self.tables), table))
        for made, label in zip(self.tables, labels([each.json.name for each in self.tables]), strict=True):
            made.label = label
        self.action_labels = labels([action.name for action in json.actions])
        self.profile_labels = labels([profile.name for profile, _ in self.profiles])
        self.offered = self._offered()
        for made in self.tables:
            self._place(made)
        if len(json.actions) >= 0xFFFF:
            raise JsonError(f"BMv2 JSON: {len(json.actions)} actions are too many")
        self.table_of = {t.json.name: t for t in self.tables}

    # --- tables ---

    def _action(self, ident: int) -> int:
        if ident not in self.action_numbers:
            raise JsonError(f"BMv2 JSON: there is no action with id {ident}")
        return self.action_numbers[ident]

    def _table_actions(self, table: schema.Table) -> list[int]:
        if table.action_ids is not None:
            return [self._action(ident) for ident in table.action_ids]
        by_name = {action.name: i for i, action in enumerate(self.program.json.actions)}
        for name in table.actions:
            if name not in by_name:
                raise JsonError(f"BMv2 JSON: table {table.name}: there is no action {name}")
        return [by_name[name] for name in table.actions]

    def _table(self, number: int, table: schema.Table) -> Table:
        specs: list[tuple[str, int, str, int | None]] = []
        for key in table.key:
            if key.match_type == "valid":
                name, width = (key.target if isinstance(key.target, str) else key.target[0]), 8
                self.program.document.symbols.header(name)
            else:
                name = ".".join(key.target)
                width = types.width_of(self.program.document.field(key.target).type) or 1
            mask = mask_value(key.mask) if key.mask is not None else None
            if mask is not None and mask >> width:
                raise JsonError(
                    f"BMv2 JSON: table {table.name}: key field {name} has {width} bits, fewer than its mask {key.mask}"
                )
            specs.append((key.name or name, width, _KINDS[key.match_type], mask))
        fields, words = keys.layout(specs)
        kinds = [f.kind for f in fields]
        if not fields:
            kind = "P4_TABLE_KEYLESS"
        elif table.match_type in _ORDERED or {_KINDS[k] for k in _ORDERED} & {*kinds}:
            kind = "P4_TABLE_ORDERED"
        elif "P4_LPM" in kinds:
            if kinds.count("P4_LPM") > 1:
                raise JsonError(f"BMv2 JSON: table {table.name} has more than one lpm field")
            kind = "P4_TABLE_LPM"
        else:
            kind = "P4_TABLE_EXACT"
        profile = -1
        if table.type != "simple":
            if table.action_profile not in self.profile_numbers:
                raise JsonError(f"BMv2 JSON: table {table.name}: there is no action profile {table.action_profile}")
            profile = self.profile_numbers[table.action_profile]
        meter = -1
        if table.direct_meters is not None:
            names = [m.name for m in self.program.json.meter_arrays]
            if table.direct_meters not in names:
                raise JsonError(f"BMv2 JSON: table {table.name}: there is no meter array {table.direct_meters}")
            meter = names.index(table.direct_meters)
            if self.program.json.meter_arrays[meter].result_target is None:
                raise JsonError(f"BMv2 JSON: direct meter {table.direct_meters} has no result_target")
        made = Table(number, table, fields, words, kind, self._table_actions(table), profile, meter)
        offset = 8 + 8 * words * (2 if kind == "P4_TABLE_ORDERED" else 1)
        made.counter_offset = offset
        offset += 16 * table.with_counters
        made.last_hit_offset = offset
        made.data_offset = offset + 8 * table.support_timeout
        return made

    def _fixed_action(self, table: schema.Table) -> int:
        """Return the action of a table without key whose default entry cannot change."""
        assert table.default_entry is not None
        return self._action(table.default_entry.action_id)

    def _offered(self) -> dict[int, int]:
        """Return numbers of the actions that a control plane may choose, by their numbers in the JSON."""
        used = [a for table in self.tables for a in self.possible(table)]
        entries = [entry for table in self.tables for entry in table.json.entries or ()]
        used += [self._action(entry.action_entry.action_id) for entry in entries]
        return {a: i for i, a in enumerate(sorted({*used}))}

    def possible(self, table: Table) -> list[int]:
        """Return the actions that a table may run."""
        actions = list(table.actions)
        if table.json.default_entry is not None:
            actions.append(self._action(table.json.default_entry.action_id))
        if table.profile >= 0:
            actions += self.profile_actions(table.profile)
        return list(dict.fromkeys(actions))

    def args_bytes(self, action: int) -> int:
        """Return the size of the struct of an action's arguments."""
        return struct_bytes([p.bitwidth for p in self.program.json.actions[action].runtime_data])

    def _data_bytes(self, actions: Iterable[int]) -> int:
        """Return the size of a place for the arguments of any of the actions."""
        return -(-max([8, *map(self.args_bytes, actions)]) // 8) * 8

    def _place(self, table: Table) -> None:
        """Set sizes and places of entries and of the default entry."""
        has_data = table.profile >= 0 or any(self.program.json.actions[a].runtime_data for a in table.actions)
        table.stride = _stride(table.data_offset + has_data * self._data_bytes(table.actions))
        table.fallback_offset = self.fallbacks_bytes
        self.fallbacks_bytes += 8 + self._data_bytes(self.possible(table))

    # --- actions ---

    def named(self, what: str, number: int) -> str:
        """Return the C name of something that belongs to an action."""
        return f"{what}_{self.action_labels[number]}"

    def profile_named(self, what: str, number: int) -> str:
        """Return the C name of something that belongs to an action profile."""
        return f"{what}_{self.profile_labels[number]}"

    def actions_text(self) -> str:
        """Return structs of arguments and a function for every action.

        Statements that stand outside of actions are functions too: compilers make better code of these than of the same
        statements in the pipeline's own function (8% fewer instructions for a contribution to a sum). Those that do
        the same are one.
        """
        out = []
        written: dict[str, str] = {}
        for number, action in enumerate(self.program.json.actions):
            args = self.named("args", number)
            if action.runtime_data:
                named = zip(action.runtime_data, parameter_members(action), strict=True)
                members = [c_member(parameter.bitwidth, member) for parameter, member in named]
                out.append(f"P4_ARGS({args}, {self.args_bytes(number)}, {' '.join(members)});")
            start = self.program.document.actions[number].body
            if is_empty(start):
                self.empty.add(number)
                continue
            em = Emitter(traced=self.program.traced)
            code = Statements(self.program, em, params_of("a->", action), f"a{number}")
            body = code.body(start)
            self.loops |= code.loops
            if code.exits:
                self.exits.add(number)
            a = f", const {args} *a" if action.runtime_data else ""
            text = cnodes.function(f"(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p{a})", body)
            name = self.functions[number] = written.setdefault(text, self.named("action", number))
            if name == self.named("action", number):
                out.append(f"P4_INLINE void {name}{text}")
        return "\n".join(out)

    # --- pipelines ---

    def pipeline_text(self, pipeline: schema.Pipeline) -> str:
        """Return the definition of `static void run_<name>(p4_switch *sw, phv *p)`."""
        return _PipelineGenerator(self, pipeline).function(f"run_{pipeline.name}")

    def selectors_text(self) -> str:
        return "\n".join(
            calc.function(self.program, self.profile_named("select", i), self.program.document.selectors[profile.name])
            for i, (profile, _) in enumerate(self.profiles) if profile.selector is not None
        )

    # --- descriptions ---

    def description(self) -> str:
        """Return constant tables for the control plane."""
        out, rows = [], []
        for number in self.offered:
            action = self.program.json.actions[number]
            args, named = self.named("args", number), zip(action.runtime_data, parameter_members(action), strict=True)
            params = [
                initialiser({
                    "name": c_string(parameter.name),
                    "width": parameter.bitwidth,
                    "offset": f"offsetof({args}, {member})",
                })
                for parameter, member in named
            ]
            rows.append(initialiser({
                "name": c_string(action.name),
                "id": action.id,
                "n_params": len(params),
                "size": self.args_bytes(number),
                "params": literal_array("p4_param_info", params) if params else "NULL",
            }))
        out.append(array("p4_action_info", "actions", rows, "{.name = NULL}"))
        out += [self._table_parts(table) for table in self.tables]
        out.append(array("p4_table_info", "tables", [self._table_row(t) for t in self.tables], "{.name = NULL}"))
        out.append(self._profiles_text())
        return "\n".join(out)

    def _args(self, number: int, values: Sequence[str], where: str) -> bytes:
        """Return action data as the control plane would give it."""
        action = self.program.json.actions[number]
        if len(values) != len(action.runtime_data):
            raise JsonError(f"BMv2 JSON: {where}: action {action.name} takes {len(action.runtime_data)} arguments")
        return b"".join(
            (hex_value(value) & (1 << parameter.bitwidth) - 1).to_bytes((parameter.bitwidth + 7) // 8, "big")
            for value, parameter in zip(values, action.runtime_data, strict=True)
        )

    def _table_parts(self, table: Table) -> str:
        out = []
        if table.fields:
            out.append(array("p4_key_info", table.named("keys"), keys.description(table.fields)))
        if table.json.entries:
            # The lowest number is the highest priority in the JSON; it is the other way round everywhere else. The last
            # of the program's entries has priority 1, as a controller sees it; but negative numbers are priorities that
            # the program gives, their sign changed.
            lowest = max(entry.priority for entry in table.json.entries)
            top = 0 if lowest < 0 else lowest + 1
            rows = [self._own_entry(table, entry, top - entry.priority) for entry in table.json.entries]
            out.append(array("p4_entry_info", table.named("entries"), rows))
        return "\n".join(out)

    def _own_entry(self, table: Table, entry: schema.Entry, priority: int) -> str:
        where = f"entries of table {table.json.name}"
        if len(entry.match_key) != len(table.fields):
            raise JsonError(f"BMv2 JSON: {where}: expected {len(table.fields)} key fields")
        values, masks, prefixes = b"", b"", []
        for key, f in zip(entry.match_key, table.fields, strict=True):
            ones = (1 << f.width) - 1
            value, mask, prefix = 0, ones, -1
            kind = key.get("match_type")
            if kind == "range":
                value, mask = hex_value(key.get("start")), hex_value(key.get("end"))
                if value & ones > mask & ones:
                    raise JsonError(f"BMv2 JSON: {where}: key field {f.name}: range {value:#x} to {mask:#x} is empty")
            elif kind == "valid":
                value = int(bool(key.get("key")))
            else:
                value = hex_value(key.get("key"))
                if kind == "lpm":
                    prefix = key.get("prefix_length", -1)
                    if not isinstance(prefix, int) or not 0 <= prefix <= f.width:
                        raise JsonError(f"BMv2 JSON: {where}: bad prefix_length")
                elif kind in ("ternary", "optional"):
                    mask = mask_value(key.get("mask")) if key.get("mask") is not None else ones
            if _KINDS.get(str(kind)) != f.kind:
                raise JsonError(f"BMv2 JSON: {where}: key field {f.name} cannot have match_type {kind}")
            values += (value & ones).to_bytes(f.nbytes, "big")
            masks += (mask & ones).to_bytes(f.nbytes, "big")
            prefixes.append(prefix)
        action = self._action(entry.action_entry.action_id)
        args = self._args(action, entry.action_entry.action_data, where)
        return initialiser({
            "values": keys.byte_array(values),
            "masks": keys.byte_array(masks),
            "prefixes": f"(const int32_t[]){{{', '.join(map(str, prefixes)) or '0'}}}",
            "args": keys.byte_array(args),
            "priority": priority,
            "action": self.offered[action],
        })

    def _table_row(self, table: Table) -> str:
        json = table.json
        entries = len(json.entries or ())
        default, data, constant = "P4_NO_ACTION", "NULL", 0
        if json.default_entry is not None:
            action = self._action(json.default_entry.action_id)
            default = str(self.offered[action])
            data = keys.byte_array(self._args(action, json.default_entry.action_data, f"table {json.name}"))
            constant = 2 if json.default_entry.action_entry_const else int(json.default_entry.action_const)
        return initialiser({
            "name": c_string(json.name),
            "kind": table.kind,
            "key_words": table.words,
            "default_constant": constant,
            "n_keys": len(table.fields),
            "n_actions": len(table.actions),
            "n_entries": entries,
            "profile": table.profile,
            "with_counters": int(json.with_counters),
            "with_last_hit": int(json.support_timeout),
            "meter": table.meter,
            "max_size": max(json.max_size, entries, 0),
            "data_offset": table.data_offset,
            "stride": table.stride,
            "fallback_offset": table.fallback_offset,
            "keys": table.named("keys") if table.fields else "NULL",
            "actions": literal_array("uint32_t", [str(self.offered[a]) for a in table.actions] or ["0"]),
            "entries": table.named("entries") if entries else "NULL",
            "default_action": default,
            "default_args": data,
        })

    def profile_actions(self, number: int) -> list[int]:
        """Return the actions of all tables that use the profile."""
        return sorted({a for table in self.tables if table.profile == number for a in table.actions})

    def _profiles_text(self) -> str:
        out, rows = [], []
        for i, (profile, _) in enumerate(self.profiles):
            actions = self.profile_actions(i)
            numbers = [str(self.offered[a]) for a in actions] or ["0"]
            rows.append(initialiser({
                "name": c_string(profile.name),
                "with_selector": int(profile.selector is not None),
                "n_actions": len(actions),
                "actions": literal_array("uint32_t", numbers),
                "stride": _stride(8 + self._data_bytes(actions)),
                "max_size": profile.max_size,
            }))
        out.append(array("p4_profile_info", "profiles", rows, "{.name = NULL}"))
        return "\n".join(out)


def _is_statement(table: schema.Table) -> bool:
    """Return whether a compiler made a table for statements outside of actions, unknown to the control plane."""
    return table.hidden and table.type == "simple" and not (table.with_counters or table.direct_meters)


def _stride(size: int) -> int:
    """Return the bytes from one entry to the next: no entry of up to a cache line lies in two."""
    return next((s for s in (16, 32) if size <= s), -(-size // 64) * 64)


class _PipelineGenerator:
    """Generator of one pipeline: a node for each table, condition and action call."""

    def __init__(self, control: Control, pipeline: schema.Pipeline) -> None:
        self.control = control
        self.program = control.program
        self.pipeline = pipeline
        self.em = Emitter(traced=self.program.traced)
        self.code = Statements(self.program, self.em, (), pipeline.name)
        self.x = self.code.x
        self.names: dict[str, int] = {}
        nodes = [t.name for t in pipeline.tables]
        nodes += [c.name for c in pipeline.conditionals]
        nodes += [c.name for c in pipeline.action_calls]
        for name in nodes:
            if name in self.names:
                raise JsonError(f"BMv2 JSON: pipeline {pipeline.name} has two nodes named {name}")
            self.names[name] = len(self.names)

    def _order(self) -> list[str]:
        """Return the reachable nodes, each after those that lead to it except for loops, whose nodes are noted."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(self.names)
        for table in self.pipeline.tables:
            nexts = [*table.next_tables.values(), table.base_default_next]
            graph.add_edges_from((table.name, n) for n in nexts if n is not None)
        for condition in self.pipeline.conditionals:
            nexts = [condition.true_next, condition.false_next]
            graph.add_edges_from((condition.name, n) for n in nexts if n is not None)
        for call in self.pipeline.action_calls:
            if call.next_node is not None:
                graph.add_edge(call.name, call.next_node)
        self.looping = {
            name for component in nx.strongly_connected_components(graph) for name in component
            if len(component) > 1 or graph.has_edge(name, name)
        }
        start = self.pipeline.init_table
        if start is None:
            return []
        if start not in self.names:
            raise JsonError(f"BMv2 JSON: pipeline {self.pipeline.name} has no node {start}")
        reachable = {start, *nx.descendants(graph, start)}
        for name in reachable:
            if name not in self.names:
                raise JsonError(f"BMv2 JSON: pipeline {self.pipeline.name} has no node {name}")
        if self.looping:
            return list(reversed(list(nx.dfs_postorder_nodes(graph, start))))
        return [name for name in nx.topological_sort(graph) if name in reachable]

    def function(self, name: str) -> str:
        order = self._order()
        tables = {t.name: t for t in self.pipeline.tables}
        conditions = {c.name: c for c in self.pipeline.conditionals}
        calls = {c.name: c for c in self.pipeline.action_calls}
        self.nodes: dict[str, flow.Node] = {}
        for place in order:
            node = self.nodes[place] = flow.Node()
            with self.em.inside(node.body):
                if place in self.looping:
                    with self.em.when("++p->steps >= P4_MAX_STEPS"):
                        self.em.do("p->endless = 1")
                        self.em.leave()
                if place in self.control.statements:
                    self._fixed(node, tables[place])
                elif place in tables:
                    self._table(node, self.control.table_of[place])
                elif place in conditions:
                    self._condition(node, conditions[place])
                else:
                    self._call(self.control._action(calls[place].action_id), "NULL")
                    node.next = calls[place].next_node
        self.control.loops |= bool(self.looping)
        body = flow.statements(self.nodes, order[0] if order else None, self._label)
        return cnodes.function(f"static void {name}(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p)", body)

    def _label(self, name: str) -> str:
        if name in self.names:
            return numbered("node_", self.names[name], name)
        table, _, action = name.rpartition(" ")
        return f"{self._label(table)}_{action}"

    def _condition(self, node: flow.Node, condition: schema.Conditional) -> None:
        node.note = condition.place.note if condition.place is not None else condition.name
        expression = self.program.document.conditions[self.pipeline.name, condition.name]
        span = self.program.document.span(condition.place)
        node.condition = self.code.test(expression, span, condition.name)
        node.yes, node.next = condition.true_next, condition.false_next

    def _call(self, action: int, data: str) -> None:
        """Run an action, and leave the pipeline if it exits."""
        if action in self.control.empty:
            return
        args = f", {data}" if self.program.json.actions[action].runtime_data else ""
        self.em.do(f"{self.control.functions[action]}(sw, p{args})")
        if action in self.control.exits:
            with self.em.when("p->exit"):
                self.em.leave()

    def _fixed(self, node: flow.Node, table: schema.Table) -> None:
        """Generate statements that stand outside of actions."""
        assert table.default_entry is not None
        action = self.control.statements[table.name]
        node.next = self._next(table, action, hit=False)
        self._call(action, self._constant_args(table, action))

    def _key(self, table: Table) -> str:
        values: list[Value] = []
        valid: list[str] = []
        for key, f in zip(table.json.key, table.fields, strict=True):
            if key.match_type == "valid":
                ref = self.x.named(key.target if isinstance(key.target, str) else key.target[0])
                values.append(Value(cexpr.widened(ref.valid), 0, 1))
                valid.append("")
                continue
            target = self.program.document.field(key.target)
            place = self.x.place(target)
            value = place.load(self.em)
            if place.signed:
                low = cut(place.low(self.em, f.width), f.width)
                value = Value(low, 0, (1 << f.width) - 1) if f.width <= 64 else value
            values.append(value)
            # BMv2 matches on 0 where the header is not valid.
            valid.append("" if isinstance(target, ir.Valid) else self.x.named(target.header).valid)
        return keys.pack(self.em, table.fields, table.words, values, valid)

    def _constant_args(self, table: schema.Table, number: int) -> str:
        """Return a pointer to the arguments of a default action that cannot change."""
        assert table.default_entry is not None
        action, values = self.program.json.actions[number], table.default_entry.action_data
        self.control._args(number, values, f"table {table.name}")
        if not values:
            return "NULL"
        fields = []
        for value, parameter in zip(values, action.runtime_data, strict=True):
            v = hex_value(value) & (1 << parameter.bitwidth) - 1
            limbs = [f"0x{v >> 64 * i & (1 << 64) - 1:x}ull" for i in range((parameter.bitwidth + 63) // 64)]
            fields.append(limbs[0] if parameter.bitwidth <= 64 else "{" + ", ".join(limbs) + "}")
        members = dict(zip(parameter_members(action), fields, strict=True))
        return f"&(const {self.control.named('args', number)}){initialiser(members)}"

    def _constant_call(self, node: flow.Node, table: Table) -> bool:
        """Generate a table without key and with a fixed default entry as a call; return whether it is one."""
        default = table.json.default_entry
        if table.fields or table.profile >= 0 or default is None or not default.action_entry_const:
            return False
        number = self.control._action(default.action_id)
        data = self._constant_args(table.json, number)
        if not table.json.hidden:
            self._tell_action(table, number, "-1", data)
        self._call(number, data)
        node.next = self._next(table.json, number, hit=False)
        return True

    def _tell_action(self, table: Table, action: int, member: str, data: str) -> None:
        name = self.program.json.actions[action].name
        implied = name == "NoAction" and table.profile >= 0 and table.json.default_entry is None  # no member has it
        point = self.program.points.add(
            "action", table.json.name, table.json.place, name, counted=not implied
        )
        args = self.control.named("args", action)
        size = f"sizeof({args})" if self.program.json.actions[action].runtime_data else "0"
        self.em.note(f"PASS({point})")
        self.em.note(f"TRACE(P4_TRACE_ACTION, {point}, {member}, 0, {data}, {size})")

    def _tell_table(self, table: Table, key: str, found: str) -> None:
        """Report a looked-up table: the key, what matched, and the points of hit, miss and its own entries."""
        points, source = self.program.points, table.json.place
        point = points.add("table", table.json.name, source, counted=False)
        masks = int(table.kind == "P4_TABLE_ORDERED")
        self.em.note(f"TRACE_TABLE({point}, {table.number}, {key}, {table.words}, {found}.entry, {masks})")
        if table.kind == "P4_TABLE_KEYLESS":
            return
        hit, miss = points.add("hit", table.json.name, source), points.add("miss", table.json.name, source)
        self.em.note(f"PASS({found}.entry ? {hit} : {miss})")
        entries = table.json.entries or []
        numbers = [
            points.add("entry", table.json.name, entry.place or source, str(i)) for i, entry in enumerate(entries)
        ]
        if numbers:
            self.em.note(f"PASS_ENTRY({found}.entry, {len(numbers)}, {numbers[0]})")

    def _next(self, table: schema.Table, action: int, hit: bool) -> str | None:
        nexts = table.next_tables
        if hit and "__HIT__" in nexts:
            return nexts["__HIT__"]
        if not hit and "__MISS__" in nexts:
            return nexts["__MISS__"]
        return nexts.get(self.program.json.actions[action].name, table.base_default_next)

    def _lookup(self, table: Table) -> tuple[str, str]:
        """Declare what a table's lookup finds; returns its name and that of the key."""
        t = table
        key = "NULL" if t.kind == "P4_TABLE_KEYLESS" else self._key(t)
        if t.kind == "P4_TABLE_EXACT":
            entry = f"p4_find_exact(&sw->tables[{t.number}], {key}, {t.words}, {t.stride})"
        elif t.kind == "P4_TABLE_LPM":
            prefix = next(f for f in t.fields if f.kind == "P4_LPM")
            arguments = f"&sw->tables[{t.number}], {key}, {t.words}, {t.stride}"
            if prefix.width < 64:
                entry = f"p4_find_lpm({arguments}, {prefix.word}, {prefix.shift}, {prefix.width})"
            else:
                entry = f"p4_find_lpm_wide({arguments}, &sw->controls[{t.number}])"
        elif t.kind == "P4_TABLE_KEYLESS":
            entry = "NULL"
        elif t.has_range:
            entry = f"p4_find_range(&sw->tables[{t.number}], {key}, {t.words}, {t.stride}, {t.named('keys')}, " \
                    f"{len(t.fields)})"
        else:
            entry = f"p4_find_ternary(&sw->tables[{t.number}], {key}, {t.words}, {t.stride})"
        found = self.em.name("found")
        if t.profile < 0:
            self.em.declare(f"const p4_applied {found} = p4_apply(sw, {t.number}, {entry})")
        else:
            profile = self.control.profiles[t.profile][0]
            select = "NULL" if profile.selector is None else self.control.profile_named("select", t.profile)
            self.em.declare(f"const p4_applied {found} = p4_apply_member(sw, p, {t.number}, {entry}, {select})")
        return found, key

    def _table(self, node: flow.Node, table: Table) -> None:
        em, t = self.em, table
        note = t.json.place.note if t.json.place is not None else t.json.name
        em.comment(note.partition("{")[0].strip())
        if self._constant_call(node, table):
            return
        found, key = self._lookup(t)
        self._tell_table(t, key, found)
        if t.kind != "P4_TABLE_KEYLESS" and (t.json.with_counters or t.json.support_timeout or t.meter >= 0):
            with em.when(f"{found}.entry"):
                self._direct(t, f"{found}.entry")
        cases: list[tuple[str, list[Statement]]] = []
        targets: list[tuple[str | None, str | None]] = []
        for number in self.control.possible(t):
            body: list[Statement] = []
            with em.inside(body):
                self._tell_action(t, number, f"{found}.member" if t.profile >= 0 else "-1", f"{found}.data")
                self._call(number, f"{found}.data")
            cases.append((f"{self.control.offered[number]}", body))
            targets.append((self._next(t.json, number, True), self._next(t.json, number, False)))
        nexts = t.json.next_tables
        default = nexts.get("__HIT__", t.json.base_default_next), nexts.get("__MISS__", t.json.base_default_next)
        self._go_on(node, t, found, cases, targets, default)

    def _go_on(
        self, node: flow.Node, table: Table, found: str, cases: list[tuple[str, list[Statement]]],
        targets: list[tuple[str | None, str | None]], default: tuple[str | None, str | None],
    ) -> None:
        """Generate the actions' effects and where a table leads: to one node after all, or to one after each."""
        if all(pair == default for pair in targets):
            with self.em.switch(f"{found}.action") as switch:
                switch.cases += [Case(value, body) for value, body in cases if body]
            if default[0] == default[1]:
                node.next = default[0]
            else:
                node.condition, node.yes, node.next = f"{found}.entry", *default
            return
        node.value = f"{found}.action"
        for (value, body), pair in zip(cases, targets, strict=True):
            node.cases.append((value, body, self._by_hit(table, found, f"action_{value}", pair)))
        node.next = self._by_hit(table, found, "none", default)

    def _by_hit(self, table: Table, found: str, what: str, pair: tuple[str | None, str | None]) -> str | None:
        """Return where one action of a table leads: a node of its own if that depends on a hit."""
        if pair[0] == pair[1]:
            return pair[0]
        name = f"{table.json.name} {what}"
        self.nodes[name] = flow.Node(condition=f"{found}.entry", yes=pair[0], next=pair[1], inner=True)
        return name

    def _direct(self, table: Table, entry: str) -> None:
        """Update what a table keeps of each entry: counter, time of the last hit, meter."""
        em, t = self.em, table
        if t.json.with_counters:
            counter = em.name("counter")
            em.declare(f"p4_counter *{counter} = p4_count_entry({entry}, {t.counter_offset}, p->ingress_len)")
            point = self.program.points.add("counter", self._direct_counter(t), None, counted=False)
            em.note(f"TRACE(P4_TRACE_COUNTER, {point}, {entry}->handle, 0, {counter}, sizeof *{counter})")
        if t.json.support_timeout:
            em.do(f"p4_note_hit({entry}, {t.last_hit_offset}, p->now)")
        if t.meter >= 0:
            self._direct_meter(t, entry)

    def _direct_meter(self, table: Table, entry: str) -> None:
        em = self.em
        meter = self.program.json.meter_arrays[table.meter]
        assert meter.result_target is not None
        color = em.temp("uint64_t", self.program.metered(table.meter, f"{entry}->handle"))
        point = self.program.points.add("meter", meter.name, None, counted=False)
        em.note(f"TRACE(P4_TRACE_METER, {point}, {entry}->handle, (int64_t){color}, NULL, 0)")
        self.x.place(self.program.document.field(meter.result_target)).store(em, color)

    def _direct_counter(self, table: Table) -> str:
        arrays = self.program.json.counter_arrays
        return next((c.name for c in arrays if c.is_direct and c.binding == table.json.name), table.json.name)
