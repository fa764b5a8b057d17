"""Actions, tables and pipelines in C."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import networkx as nx

from p4switch.engine import calc, keys, schema
from p4switch.engine.emit import Emitter, initialiser, long_initialiser
from p4switch.engine.expr import Expressions, hex_value, mask_value, parameter_members, params_of
from p4switch.engine.primitives import Primitives, branch, source_text
from p4switch.engine.program import Program, c_string, numbered
from p4switch.engine.schema import JsonError
from p4switch.engine.value import Value, c_member

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

    def named(self, what: str) -> str:
        """The name in C of something that belongs to the table."""
        return numbered(f"{what}_", self.number, self.json.name)

    @property
    def has_range(self) -> bool:
        return any(f.kind == "P4_RANGE" for f in self.fields)


@dataclass
class Control:
    """Everything between parser and deparser. `text` of actions and pipelines is generated on demand."""

    program: Program
    tables: list[Table] = field(default_factory=list)
    exits: set[int] = field(default_factory=set)  # actions that may exit
    loops: bool = False  # a pipeline or an action has a loop

    def __post_init__(self) -> None:
        json = self.program.json
        self.action_numbers = {action.id: i for i, action in enumerate(json.actions)}
        self.pipelines = {p.name: p for p in json.pipelines}
        for name in ("ingress", "egress"):
            if name not in self.pipelines:
                raise JsonError(f"BMv2 JSON: there is no pipeline {name}")
        self.profiles = [(p, pipeline) for pipeline in json.pipelines for p in pipeline.action_profiles]
        self.profile_numbers = {p.name: i for i, (p, _) in enumerate(self.profiles)}
        # Tables that are looked up come first: they share cache lines.
        tables = [table for pipeline in json.pipelines for table in pipeline.tables]
        for table in sorted(tables, key=lambda table: not table.key):
            self.tables.append(self._table(len(self.tables), table))
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
        where = Expressions(self.program, Emitter())
        specs: list[tuple[str, int, str, int | None]] = []
        for key in table.key:
            if key.match_type == "valid":
                name, width = (key.target if isinstance(key.target, str) else key.target[0]), 8
                where.header(name)
            else:
                name = ".".join(key.target)
                width = where.field(list(key.target)).width
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

    # --- actions ---

    def named(self, what: str, number: int) -> str:
        """The name in C of something that belongs to an action."""
        return numbered(f"{what}_", number, self.program.json.actions[number].name)

    def profile_named(self, what: str, number: int) -> str:
        """The name in C of something that belongs to an action profile."""
        return numbered(f"{what}_", number, self.profiles[number][0].name)

    def actions_text(self) -> str:
        """Structs of arguments and a function for every action."""
        out = []
        for number, action in enumerate(self.program.json.actions):
            named = zip(action.runtime_data, parameter_members(action), strict=True)
            members = " ".join(c_member(parameter.bitwidth, member) for parameter, member in named)
            args = self.named("args", number)
            out.append(f"typedef struct {{ {members} }} {args};")
            em = Emitter()
            primitives = Primitives(self.program, em, params_of("a->", action), f"a{number}")
            primitives.body(action.primitives)
            self.loops |= primitives.loops
            if primitives.exits:
                self.exits.add(number)
            out.append(
                f"P4_INLINE void {self.named('action', number)}(p4_switch *sw, phv *p, const {args} *a)\n{{\n"
                f"    (void)sw, (void)p, (void)a;\n{em.text()}\n}}\n"
            )
        return "\n".join(out)

    # --- pipelines ---

    def pipeline_text(self, name: str) -> str:
        """`static void run_<name>(p4_switch *sw, phv *p)`."""
        return _PipelineGenerator(self, self.pipelines[name]).function(f"run_{name}")

    def selectors_text(self) -> str:
        return "\n".join(
            calc.function(self.program, self.profile_named("select", i), profile.selector.algo, profile.selector.input)
            for i, (profile, _) in enumerate(self.profiles) if profile.selector is not None
        )

    # --- descriptions ---

    def description(self) -> str:
        """Constant tables for the control plane."""
        json = self.program.json
        out = []
        for number, action in enumerate(json.actions):
            args, named = self.named("args", number), zip(action.runtime_data, parameter_members(action), strict=True)
            rows = "".join(
                "    " + initialiser({
                    "name": c_string(parameter.name),
                    "width": parameter.bitwidth,
                    "offset": f"offsetof({args}, {member})",
                }) + ",\n"
                for parameter, member in named
            )
            if rows:
                out.append(f"static const p4_param_info {self.named('params', number)}[] = {{\n{rows}}};")
        out.append("static const p4_action_info actions[] = {")
        for number, action in enumerate(json.actions):
            count = len(action.runtime_data)
            row = initialiser({
                "name": c_string(action.name),
                "id": action.id,
                "n_params": count,
                "size": f"sizeof({self.named('args', number)})",
                "params": self.named("params", number) if count else "NULL",
            })
            out.append(f"    {row},")
        out.append("    {.name = NULL}};")
        for table in self.tables:
            out.append(self._table_parts(table))
        members = "\n".join(
            f"    struct {{ uint32_t action, pad; {t.named('data')} data; }} {t.named('default')};" for t in self.tables
        )
        out.append(f"typedef struct {{\n{members}\n    uint64_t none;\n}} fallbacks;")
        out.append("static const p4_table_info tables[] = {")
        for table in self.tables:
            out.append(f"    {self._table_row(table)},")
        out.append("    {.name = NULL}};")
        out.append(self._profiles_text())
        return "\n".join(out)

    def _args(self, number: int, values: Sequence[str], where: str) -> bytes:
        """Action data as the control plane would give it."""
        action = self.program.json.actions[number]
        if len(values) != len(action.runtime_data):
            raise JsonError(f"BMv2 JSON: {where}: action {action.name} takes {len(action.runtime_data)} arguments")
        return b"".join(
            (hex_value(value) & (1 << parameter.bitwidth) - 1).to_bytes((parameter.bitwidth + 7) // 8, "big")
            for value, parameter in zip(values, action.runtime_data, strict=True)
        )

    def _table_parts(self, table: Table) -> str:
        actions = ", ".join(map(str, table.actions)) or "0"
        out = [f"static const uint32_t {table.named('actions')}[] = {{{actions}}};"]
        if table.fields:
            out.append(f"static const p4_key_info {table.named('keys')}[] = {{\n{keys.description(table.fields)}}};")
        data = table.named("data")
        sizes = " ".join(f"{self.named('args', a)} a{i};" for i, a in enumerate(table.actions))
        out.append(f"typedef union {{ uint64_t align; p4_target target; {sizes} }} {data};")
        has_data = table.profile >= 0 or any(self.program.json.actions[a].runtime_data for a in table.actions)
        size = f"{table.data_offset} + sizeof({data})" if has_data else str(table.data_offset)
        out.append(f"enum {{ {table.named('stride')} = STRIDE({size}) }};")
        if table.json.entries:
            # The lowest number is the highest priority in the JSON; it is the other way round everywhere else. The last
            # of the program's entries has priority 1, as a controller sees it; but negative numbers are priorities that
            # the program gives, their sign changed.
            lowest = max(entry.priority for entry in table.json.entries)
            top = 0 if lowest < 0 else lowest + 1
            rows = "".join(
                f"    {self._own_entry(table, entry, top - entry.priority)},\n" for entry in table.json.entries
            )
            out.append(f"static const p4_entry_info {table.named('entries')}[] = {{\n{rows}}};")
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
            "action": action,
        })

    def _table_row(self, table: Table) -> str:
        json = table.json
        entries = len(json.entries or ())
        default, data, constant = "P4_NO_ACTION", "NULL", 0
        if json.default_entry is not None:
            action = self._action(json.default_entry.action_id)
            default = str(action)
            data = keys.byte_array(self._args(action, json.default_entry.action_data, f"table {json.name}"))
            constant = 2 if json.default_entry.action_entry_const else int(json.default_entry.action_const)
        return long_initialiser({
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
            "stride": table.named("stride"),
            "fallback_offset": f"offsetof(fallbacks, {table.named('default')})",
            "keys": table.named("keys") if table.fields else "NULL",
            "actions": table.named("actions"),
            "entries": table.named("entries") if entries else "NULL",
            "default_action": default,
            "default_args": data,
        }, "    ")

    def profile_actions(self, number: int) -> list[int]:
        """Actions of all tables that use the profile."""
        return sorted({a for table in self.tables if table.profile == number for a in table.actions})

    def _profiles_text(self) -> str:
        out, rows = [], []
        for i, (profile, _) in enumerate(self.profiles):
            actions = self.profile_actions(i)
            own, member = self.profile_named("profile_actions", i), self.profile_named("member", i)
            out.append(f"static const uint32_t {own}[] = {{{', '.join(map(str, actions)) or '0'}}};")
            sizes = " ".join(f"{self.named('args', a)} a{j};" for j, a in enumerate(actions))
            out.append(f"typedef union {{ uint64_t none; {sizes} }} {member};")
            row = initialiser({
                "name": c_string(profile.name),
                "with_selector": int(profile.selector is not None),
                "n_actions": len(actions),
                "actions": own,
                "stride": f"STRIDE(8 + sizeof({member}))",
                "max_size": profile.max_size,
            })
            rows.append(f"    {row},\n")
        out.append(f"static const p4_profile_info profiles[] = {{\n{''.join(rows)}    {{.name = NULL}}}};")
        return "\n".join(out)


class _PipelineGenerator:
    """One pipeline: a label a node, jumps between them."""

    def __init__(self, control: Control, pipeline: schema.Pipeline) -> None:
        self.control = control
        self.program = control.program
        self.pipeline = pipeline
        self.em = Emitter()
        self.x = Expressions(self.program, self.em)
        self.names: dict[str, int] = {}
        nodes = [t.name for t in pipeline.tables]
        nodes += [c.name for c in pipeline.conditionals]
        nodes += [c.name for c in pipeline.action_calls]
        for name in nodes:
            if name in self.names:
                raise JsonError(f"BMv2 JSON: pipeline {pipeline.name} has two nodes named {name}")
            self.names[name] = len(self.names)

    def _order(self) -> list[str]:
        """Nodes that can be reached, each after those that lead to it but for loops, whose nodes are noted."""
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
        if self.looping:
            return list(reversed(list(nx.dfs_postorder_nodes(graph, start))))
        return [name for name in nx.topological_sort(graph) if name in reachable]

    def function(self, name: str) -> str:
        order = self._order()
        tables = {t.name: t for t in self.pipeline.tables}
        conditions = {c.name: c for c in self.pipeline.conditionals}
        calls = {c.name: c for c in self.pipeline.action_calls}
        for node in order:
            if node not in self.names:
                raise JsonError(f"BMv2 JSON: pipeline {self.pipeline.name} has no node {node}")
            self.em.label(self._label(node))
            self.em.open("")
            if node in self.looping:
                self.em.line("if (++p->steps >= P4_MAX_STEPS) { p->endless = 1; goto end; }")
            if node in tables:
                self._table(self.control.table_of[node])
            elif node in conditions:
                self._condition(conditions[node])
            else:
                call = calls[node]
                self._call(self.control._action(call.action_id), "NULL")
                self._goto(call.next_node)
            self.em.close()
        self.em.label("end")
        start = f"goto {self._label(order[0])};" if order else "goto end;"
        self.control.loops |= bool(self.looping)
        return (
            f"static void {name}(p4_switch *sw, phv *p)\n{{\n"
            f"    (void)sw, (void)p;\n    {start}\n{self.em.text()}\n}}\n"
        )

    def _label(self, name: str) -> str:
        return numbered("node_", self.names[name], name)

    def _goto(self, name: str | None) -> None:
        if name is None:
            self.em.line("goto end;")
        elif name in self.names:
            self.em.line(f"goto {self._label(name)};")
        else:
            raise JsonError(f"BMv2 JSON: pipeline {self.pipeline.name} has no node {name}")

    def _condition(self, condition: schema.Conditional) -> None:
        text = source_text(condition.source_info, condition.name)
        self.em.comment(text)
        value = self.em.temp("int", self.x.bool(condition.expression))
        branch(self.program, self.em, value, text, condition.source_info)
        self.em.open(f"if ({value})")
        self._goto(condition.true_next)
        self.em.close()
        self._goto(condition.false_next)

    def _call(self, action: int, data: str) -> None:
        """Runs an action, and leaves the pipeline if it exits."""
        self.em.line(f"{self.control.named('action', action)}(sw, p, {data});")
        if action in self.control.exits:
            self.em.line("if (p->exit) goto end;")

    def _key(self, table: Table) -> str:
        values: list[Value] = []
        valid: list[str] = []
        for key, f in zip(table.json.key, table.fields, strict=True):
            if key.match_type == "valid":
                ref = self.x.header(key.target if isinstance(key.target, str) else key.target[0])
                values.append(Value(f"(uint64_t)({ref.valid})", 0, 1))
                valid.append("")
                continue
            place = self.x.field(list(key.target))
            value = place.load(self.em)
            if place.signed:
                low = place.low(self.em, f.width)
                value = Value(f"({low} & p4_mask64({f.width}))", 0, (1 << f.width) - 1) if f.width <= 64 else value
            values.append(value)
            # BMv2 matches on 0 where the header is not valid.
            valid.append("" if key.target[1] == "$valid$" else self.x.header(key.target[0]).valid)
        return keys.pack(self.em, table.fields, table.words, values, valid)

    def _constant_call(self, table: Table) -> bool:
        """A table without key whose default entry cannot change is a call."""
        default = table.json.default_entry
        if table.fields or table.profile >= 0 or default is None or not default.action_entry_const:
            return False
        number = self.control._action(default.action_id)
        action = self.program.json.actions[number]
        values = default.action_data
        self.control._args(number, values, f"table {table.json.name}")
        data = "NULL"
        if values:
            fields = []
            for value, parameter in zip(values, action.runtime_data, strict=True):
                v = hex_value(value) & (1 << parameter.bitwidth) - 1
                limbs = [f"0x{v >> 64 * i & (1 << 64) - 1:x}ull" for i in range((parameter.bitwidth + 63) // 64)]
                fields.append(limbs[0] if parameter.bitwidth <= 64 else "{" + ", ".join(limbs) + "}")
            members = dict(zip(parameter_members(action), fields, strict=True))
            data = f"&(const {self.control.named('args', number)}){initialiser(members)}"
        if not table.json.hidden:
            self._tell_action(table, number, "-1", data)
        self._call(number, data)
        self._goto(self._next(table, number, hit=False))
        return True

    def _tell_action(self, table: Table, action: int, member: str, data: str) -> None:
        name = self.program.json.actions[action].name
        implied = name == "NoAction" and table.profile >= 0 and table.json.default_entry is None  # no member has it
        point = self.program.points.add(
            "action", table.json.name, table.json.source_info, name, counted=not implied
        )
        args = self.control.named("args", action)
        size = f"sizeof({args})" if self.program.json.actions[action].runtime_data else "0"
        self.em.line(f"PASS({point});")
        self.em.line(f"TRACE(P4_TRACE_ACTION, {point}, {member}, 0, {data}, {size});")

    def _tell_table(self, table: Table, key: str) -> None:
        """Of a table that is looked up: the key, what matched, and the points of hit, miss and its own entries."""
        points, source = self.program.points, table.json.source_info
        point = points.add("table", table.json.name, source, counted=False)
        masks = int(table.kind == "P4_TABLE_ORDERED")
        self.em.line(f"TRACE_TABLE({point}, {table.number}, {key}, {table.words}, e, {masks});")
        if table.kind == "P4_TABLE_KEYLESS":
            return
        hit, miss = points.add("hit", table.json.name, source), points.add("miss", table.json.name, source)
        self.em.line(f"PASS(e ? {hit} : {miss});")
        entries = table.json.entries or []
        numbers = [
            points.add("entry", table.json.name, entry.source_info or source, str(i)) for i, entry in enumerate(entries)
        ]
        if numbers:
            self.em.line(f"if (e && e->handle < {len(numbers)}) PASS({numbers[0]} + e->handle);")

    def _next(self, table: Table, action: int, hit: bool) -> str | None:
        nexts = table.json.next_tables
        if hit and "__HIT__" in nexts:
            return nexts["__HIT__"]
        if not hit and "__MISS__" in nexts:
            return nexts["__MISS__"]
        name = self.program.json.actions[action].name
        return nexts.get(name, table.json.base_default_next)

    def _lookup(self, table: Table) -> str:
        """Declares `e`: the entry that matches, or NULL. Returns the key."""
        em, t = self.em, table
        if t.kind == "P4_TABLE_KEYLESS":
            em.line("p4_entry *e = NULL;")
            return "NULL"
        key = self._key(t)
        arguments = f"t, {key}, {t.words}, {t.named('stride')}"
        if t.kind == "P4_TABLE_EXACT":
            em.line(f"p4_entry *e = p4_find_exact({arguments});")
        elif t.kind == "P4_TABLE_LPM":
            prefix = next(f for f in t.fields if f.kind == "P4_LPM")
            if prefix.width < 64:
                place = f"{prefix.word}, {prefix.shift}, {prefix.width}"
                em.line(f"p4_entry *e = p4_find_lpm({arguments}, {place});")
            else:
                em.line(f"p4_entry *e = p4_find_lpm_wide({arguments}, &sw->controls[{t.number}]);")
        elif t.has_range:
            em.line(f"p4_entry *e = p4_find_range({arguments}, {t.named('keys')}, {len(t.fields)});")
        else:
            em.line(f"p4_entry *e = p4_find_ternary({arguments});")
        return key

    def _table(self, table: Table) -> None:
        if self._constant_call(table):
            return
        em, t = self.em, table
        em.line(f"const p4_table *t = &sw->tables[{t.number}];")
        self._tell_table(t, self._lookup(t))
        if t.kind != "P4_TABLE_KEYLESS" and (t.json.with_counters or t.json.support_timeout or t.meter >= 0):
            em.open("if (e)")
            if t.json.with_counters:
                em.line(f"p4_counter *counter = (p4_counter *)(void *)((uint8_t *)e + {t.counter_offset});")
                em.line("counter->packets++;")
                em.line("counter->bytes += p->ingress_len;")
                point = self.program.points.add("counter", self._direct_counter(t), None, counted=False)
                em.line(f"TRACE(P4_TRACE_COUNTER, {point}, e->handle, 0, counter, sizeof *counter);")
            if t.json.support_timeout:
                em.line(f"*(p4_tick *)(void *)((uint8_t *)e + {t.last_hit_offset}) = p->now;")
            if t.meter >= 0:
                self._direct_meter(t)
            em.close()
        em.line("const int hit = e != NULL;")
        em.line("uint32_t action;")
        em.line("const void *data;")
        if t.profile >= 0:
            self._member(t)
        elif t.kind != "P4_TABLE_KEYLESS":
            em.open("if (P4_LIKELY(hit))")
            em.line("action = e->action;")
            em.line(f"data = (const uint8_t *)e + {t.data_offset};")
            em.close(" else {")
            self._fallback(t)
            em.line("}")
        else:
            self._fallback(t)
        em.line("(void)t, (void)hit, (void)data;")
        em.open("switch (action)")
        for number in dict.fromkeys(self._possible(t)):
            em.line(f"case {number}:")
            em.open("")
            self._tell_action(t, number, "member_index" if t.profile >= 0 else "-1", "data")
            self._call(number, f"(const {self.control.named('args', number)} *)data")
            on_hit, on_miss = self._next(t, number, True), self._next(t, number, False)
            if on_hit != on_miss:
                em.open("if (hit)")
                self._goto(on_hit)
                em.close()
            self._goto(on_miss)
            em.close()
        em.line("default:")
        em.open("")
        nexts = t.json.next_tables
        on_hit = nexts.get("__HIT__", t.json.base_default_next)
        on_miss = nexts.get("__MISS__", t.json.base_default_next)
        if on_hit != on_miss:
            em.open("if (hit)")
            self._goto(on_hit)
            em.close()
        self._goto(on_miss)
        em.close()
        em.close()

    def _possible(self, table: Table) -> list[int]:
        actions = list(table.actions)
        if table.json.default_entry is not None:
            actions.append(self.control._action(table.json.default_entry.action_id))
        if table.profile >= 0:
            actions += self.control.profile_actions(table.profile)
        return actions

    def _direct_meter(self, table: Table) -> None:
        em = self.em
        meter = self.program.json.meter_arrays[table.meter]
        assert meter.result_target is not None
        color = em.temp(
            "uint64_t",
            f"p4_meter_execute(sw, &sw->meters[{table.meter}][e->handle], {meter.rate_count}, "
            f"{int(meter.type == 'packets')}, p->ingress_len, p->now)",
        )
        point = self.program.points.add("meter", meter.name, None, counted=False)
        em.line(f"TRACE(P4_TRACE_METER, {point}, e->handle, (int64_t){color}, NULL, 0);")
        self.x.field(list(meter.result_target)).store(em, color)

    def _direct_counter(self, table: Table) -> str:
        arrays = self.program.json.counter_arrays
        return next((c.name for c in arrays if c.is_direct and c.binding == table.json.name), table.json.name)

    def _fallback(self, table: Table) -> None:
        """The default action."""
        where = f"((const fallbacks *)(const void *)sw->fallbacks)->{table.named('default')}"
        self.em.line(f"    action = {where}.action;")
        self.em.line(f"    data = &{where}.data;")

    def _member(self, table: Table) -> None:
        """`action` and `data` of the member, chosen by hash where the entry has a group."""
        em, n = self.em, table.profile
        profile = self.control.profiles[n][0]
        em.line("uint32_t found = hit || t->default_target_set;")
        em.line("int64_t member_index = -1;")
        em.line("(void)member_index;")
        em.open("if (P4_LIKELY(found))")
        em.line("p4_target target;")
        em.open("if (P4_LIKELY(hit))")
        em.line(f"memcpy(&target, (const uint8_t *)e + {table.data_offset}, sizeof target);")
        em.close(" else {")
        em.line(f"    target = sw->controls[{table.number}].default_target;")
        em.line("}")
        em.line(f"const p4_profile *profile = &sw->profiles[{n}];")
        em.line("uint32_t index = target.index;")
        if profile.selector is not None:
            em.open("if (target.group)")
            select = self.control.profile_named("select", n)
            em.line("const p4_members *group = &profile->groups[index];")
            em.line("found = group->count;")
            em.line("if (found)")
            em.line(f"    index = p4_member_of(group, (uint32_t){select}(sw, p));")
            em.close()
        em.open("if (found)")
        size = f"sizeof({self.control.profile_named('member', n)})"
        em.line(f"const p4_member *member = p4_member_at(profile, index, STRIDE(8 + {size}));")
        em.line("member_index = index;")
        em.line("action = member->action;")
        em.line("data = member->data;")
        em.close()
        em.close()
        em.open("if (!found)")
        self._fallback(table)
        em.close()
