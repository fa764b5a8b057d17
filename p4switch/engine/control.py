"""Generation of C for actions, tables and pipelines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import networkx as nx

from p4switch import ir
from p4switch.compiler import types
from p4switch.engine import calc, cexpr, cnodes, flow, keys
from p4switch.engine.cnodes import Case, Statement, array, initialiser, literal_array
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Parameter
from p4switch.engine.program import Program, c_string, labels, numbered
from p4switch.engine.statements import Statements
from p4switch.engine.value import Native, Value, c_member, cut, struct_bytes
from p4switch.ir.errors import ProgramError
from p4switch.ir.graph import digraph, looping

_KINDS = {
    "exact": "P4_EXACT", "lpm": "P4_LPM", "ternary": "P4_TERNARY", "range": "P4_RANGE", "optional": "P4_OPTIONAL",
    "valid": "P4_VALID",
}


@dataclass
class Table:
    """Table with its layout in memory. Offsets are in bytes, relative to an entry."""

    number: int
    declared: ir.Table
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
    def name(self) -> str:
        return self.declared.name

    @property
    def has_range(self) -> bool:
        return any(f.kind == "P4_RANGE" for f in self.fields)


@dataclass
class Control:
    """Generator of everything between parser and deparser. The text of actions and pipelines is generated on demand."""

    program: Program
    tables: list[Table] = field(default_factory=list)
    exits: set[int] = field(default_factory=set)  # actions that may exit
    empty: set[int] = field(default_factory=set)  # actions that do nothing
    functions: dict[int, str] = field(default_factory=dict)  # of the others, by numbers of actions
    loops: bool = False  # a pipeline or an action has a loop
    fallbacks_bytes: int = 0

    def __post_init__(self) -> None:
        nodes = self.program.nodes
        self.actions = nodes.actions
        self.numbers = {action: i for i, action in enumerate(nodes.actions)}
        self.parameters = [Parameter.of(action) for action in nodes.actions]
        # Tables with lookups come first, so that they share cache lines.
        tables = [table for pipeline in nodes.pipelines for table in pipeline.tables]
        self.statements = {t.name: self._fixed_action(t) for t in tables if _is_statement(t)}
        for table in sorted(tables, key=lambda table: not table.keys):
            if table.name not in self.statements:
                self.tables.append(self._table(len(self.tables), table))
        for generated, label in zip(self.tables, labels([each.name for each in self.tables]), strict=True):
            generated.label = label
        self.action_labels = labels([action.name for action in nodes.actions])
        self.profile_labels = labels([profile.name for profile in nodes.profiles])
        self.offered = self._offered()
        for generated in self.tables:
            self._place(generated)
        if len(nodes.actions) >= 0xFFFF:
            raise ProgramError(f"{len(nodes.actions)} actions are too many")
        self.table_of = {t.name: t for t in self.tables}

    # --- tables ---

    def _table(self, number: int, table: ir.Table) -> Table:
        specs = [
            (key.name, 8 if key.match_kind == "valid" else types.width_of(key.target.type) or 1,
             _KINDS[key.match_kind], key.mask)
            for key in table.keys
        ]
        fields, words = keys.layout(specs)
        prefixes = sum(f.kind == "P4_LPM" for f in fields)
        if not fields:
            kind = "P4_TABLE_KEYLESS"
        elif table.ordered:
            kind = "P4_TABLE_ORDERED"
        elif prefixes > 1:
            raise ProgramError(f"table {table.name} has more than one lpm field")
        else:
            kind = "P4_TABLE_LPM" if prefixes else "P4_TABLE_EXACT"
        nodes = self.program.nodes
        profile = -1 if table.profile is None else nodes.profiles.index(table.profile)
        meter = self.program.meter(table.meter)[0] if table.meter else -1
        built = Table(number, table, fields, words, kind, [self.numbers[a] for a in table.actions], profile, meter)
        offset = 8 + 8 * words * (2 if kind == "P4_TABLE_ORDERED" else 1)
        built.counter_offset = offset
        offset += 16 * bool(table.counter)
        built.last_hit_offset = offset
        built.data_offset = offset + 8 * table.support_timeout
        return built

    def _fixed_action(self, table: ir.Table) -> int:
        """Return the action of a table without key whose default entry cannot change."""
        assert table.default is not None
        return self.numbers[table.default.action]

    def _offered(self) -> dict[int, int]:
        """Map the program's number of each action that a control plane may choose to a number counted from 0."""
        used = [a for table in self.tables for a in self.possible(table)]
        used += [self.numbers[entry.call.action] for table in self.tables for entry in table.declared.entries or ()]
        return {a: i for i, a in enumerate(sorted({*used}))}

    def possible(self, table: Table) -> list[int]:
        """Return the actions that a table may run."""
        actions = list(table.actions)
        if table.declared.default is not None:
            actions.append(self.numbers[table.declared.default.action])
        if table.profile >= 0:
            actions += self.profile_actions(table.profile)
        return list(dict.fromkeys(actions))

    def args_bytes(self, action: int) -> int:
        """Return the size of the struct of an action's arguments."""
        return struct_bytes([p.width for p in self.parameters[action]])

    def _data_bytes(self, actions: Iterable[int]) -> int:
        """Return the size of a slot for the arguments of any of the actions."""
        return -(-max([8, *map(self.args_bytes, actions)]) // 8) * 8

    def _place(self, table: Table) -> None:
        """Determine sizes and offsets of entries and of the default entry."""
        has_data = table.profile >= 0 or any(self.parameters[a] for a in table.actions)
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

        Statements outside of actions become functions, too, because compilers generate better code for them than for
        the same statements inside the pipeline's function (8% fewer instructions for a contribution to a sum).
        Functions with the same statements are shared.
        """
        out = []
        written: dict[str, str] = {}
        for number, action in enumerate(self.actions):
            args, parameters = self.named("args", number), self.parameters[number]
            if parameters:
                members = [c_member(p.width, p.member) for p in parameters]
                out.append(f"P4_ARGS({args}, {self.args_bytes(number)}, {' '.join(members)});")
            if action.body.is_end:
                self.empty.add(number)
                continue
            em = Emitter(traced=self.program.traced)
            given = [Native(p.width, False, f"a->{p.member}") for p in parameters]
            code = Statements(self.program, em, given, f"a{number}")
            body = code.body(action.body)
            self.loops |= code.loops
            if code.exits:
                self.exits.add(number)
            a = f", const {args} *a" if parameters else ""
            text = cnodes.function(f"(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p{a})", body)
            name = self.functions[number] = written.setdefault(text, self.named("action", number))
            if name == self.named("action", number):
                out.append(f"P4_INLINE void {name}{text}")
        return "\n".join(out)

    # --- pipelines ---

    def pipeline_text(self, pipeline: ir.Pipeline) -> str:
        """Return the definition of `static void run_<name>(p4_switch *sw, phv *p)`."""
        return _PipelineGenerator(self, pipeline).function(f"run_{pipeline.name}")

    def selectors_text(self) -> str:
        return "\n".join(
            calc.function(self.program, self.profile_named("select", i),
                          ir.Calculation(profile.name, profile.algorithm, profile.inputs))
            for i, profile in enumerate(self.program.nodes.profiles) if profile.algorithm
        )

    # --- descriptions ---

    def description(self) -> str:
        """Return constant tables for the control plane."""
        out, rows = [], []
        for number in self.offered:
            action, args = self.actions[number], self.named("args", number)
            params = [
                initialiser({
                    "name": c_string(parameter.name),
                    "width": parameter.width,
                    "offset": f"offsetof({args}, {parameter.member})",
                })
                for parameter in self.parameters[number]
            ]
            rows.append(initialiser({
                "name": c_string(action.name),
                "id": action.number,
                "n_params": len(params),
                "size": self.args_bytes(number),
                "params": literal_array("p4_param_info", params) if params else "NULL",
            }))
        out.append(array("p4_action_info", "actions", rows, "{.name = NULL}"))
        out += [self._table_parts(table) for table in self.tables]
        out.append(array("p4_table_info", "tables", [self._table_row(t) for t in self.tables], "{.name = NULL}"))
        out.append(self._profiles_text())
        return "\n".join(out)

    def _args(self, call: ir.ActionCall) -> bytes:
        """Return action data in the form in which the control plane would supply it."""
        widths = [parameter.width for parameter in self.parameters[self.numbers[call.action]]]
        return b"".join(
            value.to_bytes((width + 7) // 8, "big") for value, width in zip(call.args, widths, strict=True)
        )

    def _table_parts(self, table: Table) -> str:
        out = []
        if table.fields:
            out.append(array("p4_key_info", table.named("keys"), keys.description(table.fields)))
        if table.declared.entries:
            # In the JSON the lowest number is the highest priority; everywhere else it is the other way round. The last
            # of the program's entries has priority 1, as a controller sees it. Negative numbers are negated priorities
            # that the program itself gives.
            lowest = max(entry.priority for entry in table.declared.entries)
            top = 0 if lowest < 0 else lowest + 1
            rows = [self._own_entry(table, entry, top - entry.priority) for entry in table.declared.entries]
            out.append(array("p4_entry_info", table.named("entries"), rows))
        if table.declared.direct:
            cells = [self._cells(table, name) for name in table.declared.direct]
            out.append(array("p4_cells_info", table.named("cells"), cells))
        return "\n".join(out)

    def _cells(self, table: Table, name: str) -> str:
        """Return the initialiser of an object with a cell for each entry of a table and one for the default entry."""
        register = self.program.registers.get(name)
        cells = self.program.object(name) if register is None else register
        if cells.size <= table.declared.room:
            raise ProgramError(f"{name} has {cells.size} cells, too few for the entries of table {table.name}")
        return initialiser({"in_register": int(register is not None), "number": cells.number})

    def _own_entry(self, table: Table, entry: ir.Entry, priority: int) -> str:
        values, masks, prefixes = b"", b"", []
        for key, f in zip(entry.keys, table.fields, strict=True):
            ones = (1 << f.width) - 1
            value, mask = key if isinstance(key, tuple) else (key, ones)
            prefix = f.kind == "P4_LPM"
            values += value.to_bytes(f.nbytes, "big")
            masks += (ones if prefix else mask).to_bytes(f.nbytes, "big")
            prefixes.append(mask.bit_count() if prefix else -1)
        args = self._args(entry.call)
        return initialiser({
            "values": keys.byte_array(values),
            "masks": keys.byte_array(masks),
            "prefixes": f"(const int32_t[]){{{', '.join(map(str, prefixes)) or '0'}}}",
            "args": keys.byte_array(args),
            "priority": priority,
            "action": self.offered[self.numbers[entry.call.action]],
        })

    def _table_row(self, table: Table) -> str:
        own = table.declared
        entries = len(own.entries or ())
        default, data = "P4_NO_ACTION", "NULL"
        if own.default is not None:
            default = str(self.offered[self.numbers[own.default.action]])
            data = keys.byte_array(self._args(own.default))
        return initialiser({
            "name": c_string(own.name),
            "kind": table.kind,
            "key_words": table.words,
            "default_constant": 2 if own.default_const else int(own.default_action_const),
            "n_keys": len(table.fields),
            "n_actions": len(table.actions),
            "n_entries": entries,
            "profile": table.profile,
            "with_counters": int(bool(own.counter)),
            "with_last_hit": int(own.support_timeout),
            "meter": table.meter,
            "n_cells": len(own.direct),
            "cells": table.named("cells") if own.direct else "NULL",
            "max_size": max(own.room, 0),
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
        for i, profile in enumerate(self.program.nodes.profiles):
            actions = self.profile_actions(i)
            numbers = [str(self.offered[a]) for a in actions] or ["0"]
            rows.append(initialiser({
                "name": c_string(profile.name),
                "with_selector": int(bool(profile.algorithm)),
                "n_actions": len(actions),
                "actions": literal_array("uint32_t", numbers),
                "stride": _stride(8 + self._data_bytes(actions)),
                "max_size": profile.size,
            }))
        out.append(array("p4_profile_info", "profiles", rows, "{.name = NULL}"))
        return "\n".join(out)


def _is_statement(table: ir.Table) -> bool:
    """Return whether a compiler made a table for statements outside of actions, unknown to the control plane."""
    return table.hidden and table.profile is None and not (table.counter or table.meter)


def _stride(size: int) -> int:
    """Return the distance between entries in bytes; no entry of at most a cache line crosses a cache line."""
    return next((s for s in (16, 32) if size <= s), -(-size // 64) * 64)


class _PipelineGenerator:
    """Generator of one pipeline, with a node for each table, condition and action call."""

    def __init__(self, control: Control, pipeline: ir.Pipeline) -> None:
        self.control = control
        self.program = control.program
        self.pipeline = pipeline
        self.em = Emitter(traced=self.program.traced)
        self.code = Statements(self.program, self.em, (), pipeline.name)
        self.x = self.code.x
        self.names = {node.name: i for i, node in enumerate(pipeline.nodes)}

    def _order(self) -> list[ir.Block]:
        """Return the reachable nodes, each after its predecessors except in loops, whose nodes are recorded."""
        start = self.pipeline.start
        self.looping = looping(self.pipeline.nodes)
        if start.is_end:
            return []
        graph = digraph(self.pipeline.nodes)
        if self.looping:
            return list(reversed(list(nx.dfs_postorder_nodes(graph, start))))
        reachable = {start, *nx.descendants(graph, start)}
        return [node for node in nx.topological_sort(graph) if node in reachable]

    def function(self, name: str) -> str:
        order = self._order()
        self.nodes: dict[str, flow.Node] = {}
        for block in order:
            node = self.nodes[block.name] = flow.Node()
            with self.em.inside(node.body):
                if block in self.looping:
                    with self.em.when("++p->steps >= P4_MAX_STEPS"):
                        self.em.do("p->endless = 1")
                        self.em.leave()
                if isinstance(block.end, ir.Branch):
                    self._condition(node, block.name, block.end)
                    continue
                assert isinstance(block.end, ir.Apply)
                if block.name in self.control.statements:
                    self._fixed(node, block.end)
                else:
                    self._table(node, self.control.table_of[block.name], block.end)
        self.control.loops |= bool(self.looping)
        body = flow.statements(self.nodes, order[0].name if order else None, self._label)
        return cnodes.function(f"static void {name}(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p)", body)

    def _label(self, name: str) -> str:
        if name in self.names:
            return numbered("node_", self.names[name], name)
        table, _, action = name.rpartition(" ")
        return f"{self._label(table)}_{action}"

    def _condition(self, node: flow.Node, name: str, end: ir.Branch) -> None:
        place = self.program.place(end.span)
        node.note = place.note if place is not None else name
        node.condition = self.code.test(end.condition, end.span, name)
        node.yes, node.next = end.if_true.name or None, end.if_false.name or None

    def _call(self, action: int, data: str) -> None:
        """Generate a call of an action that leaves the pipeline if the action exits."""
        if action in self.control.empty:
            return
        args = f", {data}" if self.control.parameters[action] else ""
        self.em.do(f"{self.control.functions[action]}(sw, p{args})")
        if action in self.control.exits:
            with self.em.when("p->exit"):
                self.em.leave()

    def _fixed(self, node: flow.Node, apply: ir.Apply) -> None:
        """Generate statements outside of actions."""
        assert apply.table.default is not None
        action = self.control.statements[apply.table.name]
        node.next = self._next(apply, action, hit=False)
        self._call(action, self._constant_args(apply.table.default))

    def _key(self, table: Table) -> str:
        values: list[Value] = []
        valid: list[str] = []
        for key, f in zip(table.declared.keys, table.fields, strict=True):
            target = key.target
            if key.match_kind == "valid":
                assert isinstance(target, ir.Valid)
                values.append(Value(cexpr.widened(self.x.named(target.header.name).valid), 0, 1))
                valid.append("")
                continue
            assert isinstance(target, ir.FieldRef | ir.Valid)
            place = self.x.place(target)
            value = place.load(self.em)
            if place.signed:
                low = cut(place.low(self.em, f.width), f.width)
                value = Value(low, 0, (1 << f.width) - 1) if f.width <= 64 else value
            values.append(value)
            # BMv2 matches on 0 if the header is not valid.
            valid.append("" if isinstance(target, ir.Valid) else self.x.named(target.header).valid)
        return keys.pack(self.em, table.fields, table.words, values, valid)

    def _constant_args(self, call: ir.ActionCall) -> str:
        """Return a pointer to the arguments of a default action that cannot change."""
        if not call.args:
            return "NULL"
        number, members = self.control.numbers[call.action], {}
        for value, parameter in zip(call.args, self.control.parameters[number], strict=True):
            limbs = [f"0x{value >> 64 * i & (1 << 64) - 1:x}ull" for i in range((parameter.width + 63) // 64)]
            members[parameter.member] = limbs[0] if parameter.width <= 64 else "{" + ", ".join(limbs) + "}"
        return f"&(const {self.control.named('args', number)}){initialiser(members)}"

    def _constant_call(self, node: flow.Node, table: Table, apply: ir.Apply) -> bool:
        """Generate a table without key and with a fixed default entry as a call; return whether the table is one."""
        default = table.declared.default
        if table.fields or table.profile >= 0 or default is None or not table.declared.default_const:
            return False
        if table.declared.entry is not None or table.meter >= 0:
            return False
        number = self.control.numbers[default.action]
        data = self._constant_args(default)
        if not table.declared.hidden:
            self._tell_action(table, number, "-1", data)
        self._call(number, data)
        node.next = self._next(apply, number, hit=False)
        return True

    def _tell_action(self, table: Table, action: int, member: str, data: str) -> None:
        name = self.control.actions[action].name
        # No member has this number.
        implied = name == "NoAction" and table.profile >= 0 and table.declared.default is None
        place = self.program.place(table.declared.span)
        point = self.program.points.add("action", table.name, place, name, counted=not implied)
        args = self.control.named("args", action)
        size = f"sizeof({args})" if self.control.parameters[action] else "0"
        self.em.note(f"PASS({point})")
        self.em.note(f"TRACE(P4_TRACE_ACTION, {point}, {member}, 0, {data}, {size})")

    def _tell_table(self, table: Table, key: str, applied: str) -> None:
        """Report a table lookup: the key, the match, and the points of hit, miss and the program's own entries."""
        points, source = self.program.points, self.program.place(table.declared.span)
        point = points.add("table", table.name, source, counted=False)
        masks = int(table.kind == "P4_TABLE_ORDERED")
        self.em.note(f"TRACE_TABLE({point}, {table.number}, {key}, {table.words}, {applied}.entry, {masks})")
        if table.kind == "P4_TABLE_KEYLESS":
            return
        hit, miss = points.add("hit", table.name, source), points.add("miss", table.name, source)
        self.em.note(f"PASS({applied}.entry ? {hit} : {miss})")
        numbers = [
            points.add("entry", table.name, self.program.place(entry.span) or source, str(i))
            for i, entry in enumerate(table.declared.entries or ())
        ]
        if numbers:
            self.em.note(f"PASS_ENTRY({applied}.entry, {len(numbers)}, {numbers[0]})")

    def _next(self, apply: ir.Apply, action: int | None, hit: bool) -> str | None:
        """Return the node that follows a table, given whether it hits and which action it runs."""
        return apply.after(None if action is None else self.control.actions[action], hit).name or None

    def _lookup(self, table: Table) -> tuple[str, str]:
        """Declare the result of a table's lookup; return its name and that of the key."""
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
        applied = self.em.name("found")
        if t.profile < 0:
            self.em.declare(f"const p4_applied {applied} = p4_apply(sw, {t.number}, {entry})")
        else:
            selects = self.program.nodes.profiles[t.profile].algorithm
            select = self.control.profile_named("select", t.profile) if selects else "NULL"
            self.em.declare(f"const p4_applied {applied} = p4_apply_member(sw, p, {t.number}, {entry}, {select})")
        return applied, key

    def _table(self, node: flow.Node, table: Table, apply: ir.Apply) -> None:
        em, t, place = self.em, table, self.program.place(table.declared.span)
        note = place.note if place is not None else t.name
        em.comment(note.partition("{")[0].strip())
        if self._constant_call(node, table, apply):
            return
        applied, key = self._lookup(t)
        self._tell_table(t, key, applied)
        if t.declared.entry is not None:
            entry = em.temp("uint64_t", f"{applied}.entry ? {applied}.entry->handle : {t.declared.room}", "entry")
            self.x.place(t.declared.entry).store(em, entry)
        if t.kind != "P4_TABLE_KEYLESS" and (t.declared.counter or t.declared.support_timeout or t.meter >= 0):
            with em.when(f"{applied}.entry"):
                self._direct(t, f"{applied}.entry")
        if t.meter >= 0:
            with em.when(f"!{applied}.entry && sw->meters_more[{t.meter}].fallback.configured"):
                color = em.temp("uint64_t", self.program.metered_by_default(t.meter))
                self._store_colour(t, color, t.declared.room)
        cases: list[tuple[str, list[Statement]]] = []
        targets: list[tuple[str | None, str | None]] = []
        for number in self.control.possible(t):
            body: list[Statement] = []
            with em.inside(body):
                self._tell_action(t, number, f"{applied}.member" if t.profile >= 0 else "-1", f"{applied}.data")
                self._call(number, f"{applied}.data")
            cases.append((f"{self.control.offered[number]}", body))
            targets.append((self._next(apply, number, True), self._next(apply, number, False)))
        default = self._next(apply, None, True), self._next(apply, None, False)
        self._go_on(node, t, applied, cases, targets, default)

    def _go_on(
        self, node: flow.Node, table: Table, applied: str, cases: list[tuple[str, list[Statement]]],
        targets: list[tuple[str | None, str | None]], default: tuple[str | None, str | None],
    ) -> None:
        """Generate the effects of the actions and the jumps that follow: one for all actions, or one for each."""
        if all(pair == default for pair in targets):
            with self.em.switch(f"{applied}.action") as switch:
                switch.cases += [Case(value, body) for value, body in cases if body]
            if default[0] == default[1]:
                node.next = default[0]
            else:
                node.condition, node.yes, node.next = f"{applied}.entry", *default
            return
        node.value = f"{applied}.action"
        for (value, body), pair in zip(cases, targets, strict=True):
            node.cases.append((value, body, self._by_hit(table, applied, f"action_{value}", pair)))
        node.next = self._by_hit(table, applied, "none", default)

    def _by_hit(self, table: Table, applied: str, what: str, pair: tuple[str | None, str | None]) -> str | None:
        """Return the successor of a table after one action; if it depends on a hit, that is a node of its own."""
        if pair[0] == pair[1]:
            return pair[0]
        name = f"{table.name} {what}"
        self.nodes[name] = flow.Node(condition=f"{applied}.entry", yes=pair[0], next=pair[1], inner=True)
        return name

    def _direct(self, table: Table, entry: str) -> None:
        """Update a table's state of each entry: counter, time of the last hit, meter."""
        em, t = self.em, table
        if t.declared.counter:
            counter = em.name("counter")
            em.declare(f"p4_counter *{counter} = p4_count_entry({entry}, {t.counter_offset}, p->ingress_len)")
            point = self.program.points.add("counter", t.declared.counter, None, counted=False)
            em.note(f"TRACE(P4_TRACE_COUNTER, {point}, {entry}->handle, 0, {counter}, sizeof *{counter})")
        if t.declared.support_timeout:
            em.do(f"p4_note_hit({entry}, {t.last_hit_offset}, p->now)")
        if t.meter >= 0:
            self._direct_meter(t, entry)

    def _direct_meter(self, table: Table, entry: str) -> None:
        color = self.em.temp("uint64_t", self.program.metered(table.meter, f"{entry}->handle"))
        self._store_colour(table, color, f"{entry}->handle")

    def _store_colour(self, table: Table, colour: str, cell: str | int) -> None:
        meter = self.program.nodes.meters[table.meter]
        assert meter.result is not None
        point = self.program.points.add("meter", meter.name, None, counted=False)
        self.em.note(f"TRACE(P4_TRACE_METER, {point}, {cell}, (int64_t){colour}, NULL, 0)")
        self.x.place(meter.result).store(self.em, colour)
