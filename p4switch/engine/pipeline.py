"""Generation of C for a pipeline: the nodes between parser and deparser."""

from __future__ import annotations

import networkx as nx

from p4switch import ir
from p4switch.engine import cexpr, cnodes, flow, keys
from p4switch.engine.cexpr import C, Code, Fields
from p4switch.engine.cnodes import Case, Statement
from p4switch.engine.control import Control, Table
from p4switch.engine.emit import Emitter
from p4switch.engine.program import numbered
from p4switch.engine.statements import Statements
from p4switch.engine.value import Value
from p4switch.ir.graph import digraph, looping

_ALWAYS = cexpr.literal(1, "int")


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
        """Return the reachable nodes, each after its predecessors except in loops. Record the nodes of loops."""
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
                    self.code.count_step("endless")
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
        return cnodes.Function("static void", f"run_{self.pipeline.name}", (cnodes.SWITCH, cnodes.PACKET), body)

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

    def _call(self, action: int, data: Code) -> None:
        """Generate a call of an action that leaves the pipeline if the action exits."""
        if action in self.control.empty:
            return
        self.em.call(
            self.control.functions[action], "sw", "p", *([data] if self.control.parameters[action] else [])
        )
        if action in self.control.exits:
            with self.em.when(cexpr.packet("exit")):
                self.em.leave()

    def _fixed(self, node: flow.Node, apply: ir.Apply) -> None:
        """Generate statements outside of actions."""
        assert apply.table.default is not None
        action = self.control.statements[apply.table.name]
        node.next = self._next(apply, action, hit=False)
        self._call(action, self._constant_args(apply.table.default))

    def _key(self, table: Table) -> C:
        values: list[Value] = []
        valid: list[C] = []
        for key in table.declared.keys:
            target = key.target
            assert isinstance(target, ir.FieldRef | ir.Valid)
            values.append(self.x.place(target).load(self.em))
            # As in BMv2, a field of an invalid header matches as 0.
            valid.append(_ALWAYS if isinstance(target, ir.Valid) else self.x.named(target.header).valid)
        return keys.pack(self.em, table.fields, table.words, values, valid)

    def _constant_args(self, call: ir.ActionCall) -> Code:
        """Return a pointer to the arguments of a default action that cannot change."""
        if not call.args:
            return "NULL"
        number = self.control.numbers[call.action]
        members = {
            parameter.member: cexpr.literal(value) if parameter.width <= 64
            else cexpr.limbs(value, (parameter.width + 63) // 64)
            for value, parameter in zip(call.args, self.control.parameters[number], strict=True)
        }
        return Fields(members, self.control.named("args", number)).address

    def _constant_call(self, node: flow.Node, table: Table, apply: ir.Apply) -> bool:
        """Generate a call for a table without key whose default entry is fixed; return whether it is such a table."""
        default = table.declared.default
        if table.fields or table.profile >= 0 or default is None or not table.declared.default_const:
            return False
        if table.declared.entry is not None or table.meter >= 0:
            return False
        number = self.control.numbers[default.action]
        data = self._constant_args(default)
        if not table.declared.hidden:
            self._tell_action(table, number, -1, data)
        self._call(number, data)
        node.next = self._next(apply, number, hit=False)
        return True

    def _tell_action(self, table: Table, action: int, member: Code, data: Code) -> None:
        name = self.control.actions[action].name
        # This is the number of no member.
        implied = name == "NoAction" and table.profile >= 0 and table.declared.default is None
        place = self.program.place(table.declared.span)
        point = self.program.points.add("action", table.name, place, name, counted=not implied)
        args = self.control.named("args", action)
        size: Code = cexpr.size_of_type(args) if self.control.parameters[action] else 0
        self.em.note("PASS", point)
        self.em.trace("ACTION", point, member, 0, data, size)

    def _tell_table(self, table: Table, key: Code, applied: C) -> None:
        """Generate the report of a lookup: key, match, and the points of hit, miss and the program's own entries."""
        points, source = self.program.points, self.program.place(table.declared.span)
        point = points.add("table", table.name, source, counted=False)
        masks = int(table.kind == "P4_TABLE_ORDERED")
        found = applied.dot("entry")
        self.em.note("TRACE_TABLE", point, table.number, key, table.words, found, masks)
        if table.kind == "P4_TABLE_KEYLESS":
            return
        hit, miss = points.add("hit", table.name, source), points.add("miss", table.name, source)
        self.em.note("PASS", cexpr.chosen(found, hit, miss, ""))
        numbers = [
            points.add("entry", table.name, self.program.place(entry.span) or source, str(i))
            for i, entry in enumerate(table.declared.entries or ())
        ]
        if numbers:
            self.em.note("PASS_ENTRY", found, len(numbers), numbers[0])

    def _next(self, apply: ir.Apply, action: int | None, hit: bool) -> str | None:
        """Return the node that follows a table, given whether it hits and which action it runs."""
        return apply.after(None if action is None else self.control.actions[action], hit).name or None

    def _lookup(self, table: Table) -> tuple[C, Code]:
        """Generate a table's lookup, and return its result and the key."""
        t = table
        key = "NULL" if t.kind == "P4_TABLE_KEYLESS" else self._key(t)
        found = (cexpr.switch("tables")[t.number].address, key, t.words, t.stride)
        if t.kind == "P4_TABLE_KEYLESS":
            entry = cexpr.node("NULL")
        elif t.kind == "P4_TABLE_EXACT":
            entry = cexpr.call("p4_find_exact", "", *found)
        elif t.kind == "P4_TABLE_LPM":
            prefix = next(f for f in t.fields if f.kind == "P4_LPM")
            if prefix.width < 64:
                entry = cexpr.call("p4_find_lpm", "", *found, prefix.word, prefix.shift, prefix.width)
            else:
                entry = cexpr.call("p4_find_lpm_wide", "", *found, cexpr.switch("controls")[t.number].address)
        elif t.has_range:
            entry = cexpr.call("p4_find_range", "", *found, t.named("keys"), len(t.fields))
        else:
            entry = cexpr.call("p4_find_ternary", "", *found)
        if t.profile < 0:
            applied = cexpr.call("p4_apply", "", "sw", t.number, entry)
        else:
            selects = self.program.nodes.profiles[t.profile].algorithm
            select = self.control.profile_named("select", t.profile) if selects else "NULL"
            applied = cexpr.call("p4_apply_member", "", "sw", "p", t.number, entry, select)
        return self.em.temp("p4_applied", applied, "found"), key

    def _table(self, node: flow.Node, table: Table, apply: ir.Apply) -> None:
        em, t, place = self.em, table, self.program.place(table.declared.span)
        note = place.note if place is not None else t.name
        em.comment(note.partition("{")[0].strip())
        if self._constant_call(node, table, apply):
            return
        applied, key = self._lookup(t)
        self._tell_table(t, key, applied)
        found = applied.dot("entry")
        if t.declared.entry is not None:
            handle = cexpr.chosen(found, found.arrow("handle"), t.declared.room, "uint64_t")
            self.x.place(t.declared.entry).store(em, em.temp("uint64_t", handle, "entry"))
        if t.kind != "P4_TABLE_KEYLESS" and (t.declared.counter or t.declared.support_timeout or t.meter >= 0):
            with em.when(found):
                self._direct(t, found)
        if t.meter >= 0:
            configured = self.program.default_meter(t.meter).dot("configured")
            with em.when(cexpr.both("&&", cexpr.negated(found), configured)):
                colour = em.temp("uint64_t", self.program.metered_by_default(t.meter))
                self._store_colour(t, colour, t.declared.room)
        cases: list[tuple[int, list[Statement]]] = []
        targets: list[tuple[str | None, str | None]] = []
        for number in self.control.possible(t):
            body: list[Statement] = []
            with em.inside(body):
                data = applied.dot("data")
                self._tell_action(t, number, applied.dot("member") if t.profile >= 0 else -1, data)
                self._call(number, data)
            cases.append((self.control.offered[number], body))
            targets.append((self._next(apply, number, True), self._next(apply, number, False)))
        default = self._next(apply, None, True), self._next(apply, None, False)
        self._go_on(node, t, applied, cases, targets, default)

    def _go_on(
        self, node: flow.Node, table: Table, applied: C, cases: list[tuple[int, list[Statement]]],
        targets: list[tuple[str | None, str | None]], default: tuple[str | None, str | None],
    ) -> None:
        """Generate the calls of a table's actions, and the jumps after them."""
        if all(pair == default for pair in targets):
            with self.em.switch(applied.dot("action")) as switch:
                switch.cases += [Case(cexpr.node(value), body) for value, body in cases if body]
            if default[0] == default[1]:
                node.next = default[0]
            else:
                node.condition, node.yes, node.next = applied.dot("entry"), *default
            return
        node.value = applied.dot("action")
        for (value, body), pair in zip(cases, targets, strict=True):
            node.cases.append((cexpr.node(value), body, self._by_hit(table, applied, f"action_{value}", pair)))
        node.next = self._by_hit(table, applied, "none", default)

    def _by_hit(self, table: Table, applied: C, what: str, pair: tuple[str | None, str | None]) -> str | None:
        """Return a table's successor after one action, which is a new node if it depends on the hit."""
        if pair[0] == pair[1]:
            return pair[0]
        name = f"{table.name} {what}"
        self.nodes[name] = flow.Node(condition=applied.dot("entry"), yes=pair[0], next=pair[1], inner=True)
        return name

    def _direct(self, table: Table, entry: C) -> None:
        """Generate the update of an entry's direct counter, time of the last hit, and direct meter."""
        em, t, handle = self.em, table, entry.arrow("handle")
        if t.declared.counter:
            counted = cexpr.call("p4_count_entry", "", entry, t.counter_offset, cexpr.packet("ingress_len"))
            counter = em.declare("p4_counter *", em.name("counter"), counted)
            point = self.program.points.add("counter", t.declared.counter, None, counted=False)
            em.trace("COUNTER", point, handle, 0, counter, cexpr.size_of_type("p4_counter"))
        if t.declared.support_timeout:
            em.call("p4_note_hit", entry, t.last_hit_offset, cexpr.packet("now"))
        if t.meter >= 0:
            self._store_colour(t, em.temp("uint64_t", self.program.metered(t.meter, handle)), handle)

    def _store_colour(self, table: Table, colour: C, cell: Code) -> None:
        meter = self.program.nodes.meters[table.meter]
        assert meter.result is not None
        point = self.program.points.add("meter", meter.name, None, counted=False)
        self.em.trace("METER", point, cell, cexpr.cast("int64_t", colour))
        self.x.place(meter.result).store(self.em, colour)
