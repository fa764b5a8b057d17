"""Generation of C for a pipeline: the nodes between parser and deparser."""

from __future__ import annotations

import networkx as nx

from p4switch import ir
from p4switch.engine import cnodes, flow, keys
from p4switch.engine.cnodes import Case, Statement
from p4switch.engine.control import Control, Table
from p4switch.engine.emit import Emitter
from p4switch.engine.program import numbered
from p4switch.engine.statements import Statements
from p4switch.engine.value import Value
from p4switch.ir.graph import digraph, looping


class PipelineGenerator:
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

    def function(self) -> cnodes.Function:
        """Return the definition of `static void run_<name>(p4_switch *sw, phv *p)`."""
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
        return cnodes.Function(f"static void run_{self.pipeline.name}(P4_UNUSED p4_switch *sw, P4_UNUSED phv *p)", body)

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
        for key in table.declared.keys:
            target = key.target
            assert isinstance(target, ir.FieldRef | ir.Valid)
            values.append(self.x.place(target).load(self.em))
            # BMv2 matches on 0 if the header is not valid.
            valid.append("" if isinstance(target, ir.Valid) else self.x.named(target.header).valid)
        return keys.pack(self.em, table.fields, table.words, values, valid)

    def _constant_args(self, call: ir.ActionCall) -> str:
        """Return a pointer to the arguments of a default action that cannot change."""
        if not call.args:
            return "NULL"
        number, members = self.control.numbers[call.action], {}
        for value, parameter in zip(call.args, self.control.parameters[number], strict=True):
            limbs = cnodes.limbs(value, (parameter.width + 63) // 64)
            members[parameter.member] = limbs.items[0] if parameter.width <= 64 else limbs
        return f"&(const {self.control.named('args', number)}){cnodes.Fields(members)}"

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
                colour = em.temp("uint64_t", self.program.metered_by_default(t.meter))
                self._store_colour(t, colour, t.declared.room)
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
            colour = em.temp("uint64_t", self.program.metered(t.meter, f"{entry}->handle"))
            self._store_colour(t, colour, f"{entry}->handle")

    def _store_colour(self, table: Table, colour: str, cell: str | int) -> None:
        meter = self.program.nodes.meters[table.meter]
        assert meter.result is not None
        point = self.program.points.add("meter", meter.name, None, counted=False)
        self.em.note(f"TRACE(P4_TRACE_METER, {point}, {cell}, (int64_t){colour}, NULL, 0)")
        self.x.place(meter.result).store(self.em, colour)
