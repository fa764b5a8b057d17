"""The operations of a pipeline as a chip sees them: a vertex for each lookup, condition, sum, move, register access.

Vertices are in a control-flow graph without cycles. What costs a chip nothing has been taken out: casts, slices and
concatenations (wiring), copies of values that no longer change, zeros that the parser writes, results nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from p4switch.compiler import types
from p4switch.compiler.midend import ir
from p4switch.compiler.midend.graph import reverse_postorder
from p4switch.compiler.midend.storage import SCALARS, flat_fields

FREE = frozenset({"cast", "slice", "++"})
"""Operations that are wiring, or part of another one (deposit-field in the RMT paper, section 3.1)."""

_EFFECTS = frozenset({"mark_to_drop", "truncate"})

COMPARISONS = frozenset({"<", "<=", ">", ">="})
SUMS = frozenset({"+", "-", "*", "|+|", "|-|", "neg", "<<", ">>"})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(slots=True, eq=False)
class Vertex:
    """One step. `looks_up` is read before the stage begins (keys, conditions, addresses), `reads` by its action."""

    kind: str  # "table", "condition", "operation", "register", "hash", "point" (nothing: where paths meet)
    name: str
    span: int | None = None
    looks_up: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    op: str = ""  # as in `ir.Op`, or the name of the primitive
    width: int = 0  # bits of the widest operand
    constant: int | None = None  # the right operand, where it is one
    table: ir.Table | None = None
    register: str = ""
    access: str = ""  # "read" or "write"
    index: tuple[str, ...] = ()  # what a register is addressed by
    in_action: bool = False  # a table's

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}"


class Pipeline:
    """Ingress or egress as a graph of vertices. `loops` are the spans of what jumps back."""

    def __init__(self, pipeline: ir.Pipeline, program: ir.Program) -> None:
        self.name = pipeline.name
        self.program = program
        self.graph: nx.DiGraph[Vertex] = nx.DiGraph()
        self.loops: list[int | None] = []
        self._calculations = {c.name: c for c in program.calculations}
        self._headers = {i.name: i.type for i in program.headers}
        self._stacks = {ref.name: names for ref, names in program.stacks}
        self._temporaries = 0
        self._in_action = False
        self._order: list[Vertex] = []
        self._tail: Vertex | None = None
        self.end = Vertex("point", "end")
        self.graph.add_node(self.end)
        self.start = Vertex("point", "start")
        self._connect(self.start, self._blocks(pipeline.start, self.end))
        self._break_cycles()
        self._simplify()

    # From blocks to vertices

    def _connect(self, a: Vertex, b: Vertex) -> None:
        self.graph.add_edge(a, b)

    def _append(self, vertex: Vertex) -> Vertex:
        assert self._tail is not None
        self._connect(self._tail, vertex)
        self._tail = vertex
        return vertex

    def _blocks(self, start: ir.Block, end: Vertex) -> Vertex:
        """The vertices of the code from `start`, which goes on to `end`; returns the first."""
        order = reverse_postorder(start)
        entries = {block: Vertex("point", block.name or "block") for block in order}
        for block in order:
            self._tail = entries[block]
            self.graph.add_node(self._tail)
            for op in block.ops:
                self._operation(op)
            terminator = block.end
            if isinstance(terminator, ir.Branch):
                condition = self._condition(terminator)
                self._connect(condition, entries[terminator.if_true])
                self._connect(condition, entries[terminator.if_false])
            elif isinstance(terminator, ir.Apply):
                self._apply(terminator, entries)
            else:
                assert not isinstance(terminator, ir.Select)
                self._connect(self._tail, end if terminator is None else entries[terminator.target])
        return entries[start]

    def _apply(self, apply: ir.Apply, entries: dict[ir.Block, Vertex]) -> None:
        table = apply.table
        keys = set().union(*(self._reads(k.target) for k in table.keys)) if table.keys else set()
        if table.profile is not None:
            keys |= set().union(*(self._reads(e) for e in table.profile.inputs))
        lookup = self._append(Vertex("table", table.name, table.span, keys, table=table))
        if table.meter:
            result = next(m.result for m in self.program.meters if m.name == table.meter)
            assert result is not None
            lookup.writes |= self._reads(result)
        if any(isinstance(label, bool) for label in apply.on):
            following = {apply.on.get(hit, apply.default) for hit in (True, False)}
            targets = [following] * len(table.actions)
        else:
            targets = [{apply.on.get(i, apply.default)} for i in range(len(table.actions))]
        for action, blocks in zip(table.actions, targets, strict=True):
            done = Vertex("point", f"after {action.name}")
            self._in_action = True
            self._connect(lookup, self._blocks(action.body, done))
            self._in_action = False
            for block in blocks:
                self._connect(done, entries[block])
        self._tail = None

    def _operation(self, op: ir.Operation) -> None:
        if isinstance(op, ir.Assign):
            self._assign(op)
        elif isinstance(op, ir.Prim):
            self._primitive(op)

    def _assign(self, op: ir.Assign) -> None:
        writes = self._places(op.dst)
        source = op.src
        while isinstance(source, ir.Op) and source.op in ("cast", "slice"):
            source = source.args[0]
        if isinstance(source, ir.Op) and source.op not in FREE:
            vertex = self._compute(source, op.span)
            vertex.writes = writes
            return
        constant = source.value if isinstance(source, ir.Const) else None
        reads = self._value(source, op.span)
        width = types.width_of(op.dst.type) or 1
        op_name = "=" if op.src is source else "convert"
        name = next(iter(sorted(writes)), "")
        self._append(
            Vertex("operation", name, op.span, reads=reads, writes=writes, op=op_name, width=width, constant=constant)
        )

    def _compute(self, expr: ir.Op, span: int | None) -> Vertex:
        """A vertex for `expr`, after those for its operands; what it writes is to be set."""
        reads: set[str] = set()
        for arg in expr.args:
            reads |= self._value(arg, span)
        width = max(types.width_of(a.type) or 1 for a in (expr, *expr.args))
        op, last = expr.op, expr.args[-1]
        if op in _MIRRORED and isinstance(expr.args[0], ir.Const):
            op, last = _MIRRORED[op], expr.args[0]
        constant = last.value if isinstance(last, ir.Const) else None
        return self._append(Vertex("operation", op, span, reads=reads, op=op, width=width, constant=constant))

    def _value(self, expr: ir.Expr, span: int | None) -> set[str]:
        """What has to be read for `expr`; operations in it become vertices of their own."""
        if not isinstance(expr, ir.Op):
            return self._reads(expr)
        if expr.op in FREE:
            return set().union(*(self._value(a, span) for a in expr.args))
        self._temporaries += 1
        vertex = self._compute(expr, span)
        vertex.writes = {f"{SCALARS}.%{self._temporaries}"}
        return set(vertex.writes)

    def _condition(self, branch: ir.Branch) -> Vertex:
        """Equality, `!`, `&&` and `||` of fields are looked up; anything else is computed before."""
        reads, width = self._lookup(branch.condition, branch.span)
        return self._append(
            Vertex("condition", "if", branch.span, reads, op="if", width=width, in_action=self._in_action)
        )

    def _lookup(self, expr: ir.Expr, span: int | None) -> tuple[set[str], int]:
        if isinstance(expr, ir.Op) and expr.op in ("&&", "||", "!", "==", "!="):
            inner = [self._lookup(arg, span) for arg in expr.args]
            together = max if expr.op in ("==", "!=") else sum  # two fields are compared bit by bit
            return set().union(*(reads for reads, _ in inner)), together(bits for _, bits in inner)
        if isinstance(expr, ir.Const):
            return set(), 0
        return self._value(expr, span), types.width_of(expr.type) or 1

    def _primitive(self, op: ir.Prim) -> None:
        args = op.args
        if op.op in ("register_read", "register_write"):
            register = next(a.value for a in args if isinstance(a, ir.Named))
            index = args[2] if op.op == "register_read" else args[1]
            looks_up = self._value(index, op.span)
            vertex = Vertex("register", register, op.span, looks_up, op=op.op, register=register)
            vertex.index = tuple(sorted(looks_up)) or (str(getattr(index, "value", "")),)
            if op.op == "register_read":
                vertex.access, vertex.writes = "read", self._places(args[0])
            else:
                vertex.access, vertex.reads = "write", self._value(args[2], op.span)
            self._append(vertex)
            return
        if op.op == "modify_field_with_hash_based_offset":
            calculation = self._calculations[args[2].value]
            reads = set().union(*(self._inputs(e) for e in calculation.inputs)) if calculation.inputs else set()
            size = args[3]
            modulus = size.value if isinstance(size, ir.Const) else None
            reads |= self._value(args[1], op.span) | self._value(size, op.span)
            name = f"hash {calculation.algorithm}"
            self._append(Vertex("hash", name, op.span, reads, set(), self._places(args[0]), op.op, constant=modulus))
            return
        if op.op in ("log_msg", "assert", "assume"):
            return
        reads, writes = self._arguments(op)
        vertex = Vertex("operation", op.op, op.span, reads=reads, writes=writes, op=op.op)
        if op.op == "modify_field_rng_uniform" and all(isinstance(a, ir.Const) for a in args[1:]):
            vertex.constant = args[2].value - args[1].value + 1
        if op.op in ("count", "execute_meter"):
            vertex.kind, vertex.register = "register", args[0].value
            vertex.access = "count"
        self._append(vertex)

    def _arguments(self, op: ir.Prim) -> tuple[set[str], set[str]]:
        reads: set[str] = set()
        writes: set[str] = set()
        if op.op == "mark_to_drop":
            return reads, {"standard_metadata.egress_spec", "standard_metadata.mcast_grp"}
        results = {"modify_field_rng_uniform": 0, "execute_meter": 2}
        result = results.get(op.op)
        for i, arg in enumerate(op.args):
            if isinstance(arg, (ir.HeaderRef, ir.UnionRef, ir.StackRef)):
                fields = set(self._parts(arg))
                if i == 0:
                    writes |= {f for f in fields if f.endswith("$valid$")} if "_header" in op.op else fields
                if op.op in ("push", "pop") or (i > 0 and "assign" in op.op):
                    reads |= fields
                if i == 0 and op.op in ("assign_header", "assign_header_stack", "assign_union"):
                    writes |= fields
            elif i == result:
                writes |= self._places(arg)
            elif isinstance(arg, list):
                reads |= set().union(*(self._reads(a) for a in arg)) if arg else set()
            elif not isinstance(arg, ir.Named):
                reads |= self._value(arg, op.span)
        return reads, writes

    # Fields

    def _parts(self, ref: ir.HeaderRef | ir.UnionRef | ir.StackRef) -> Iterator[str]:
        """The fields, and the validity, of all headers that `ref` may mean."""
        if isinstance(ref, ir.HeaderRef) and not ref.stack:
            yield from self._header(ref.name)
            return
        stack = ref.stack if isinstance(ref, ir.HeaderRef) else ref.name
        for name in self._headers:
            if name == stack or name.startswith((f"{stack}[", f"{stack}.")):
                yield from self._header(name)

    def _header(self, name: str) -> Iterator[str]:
        yield f"{name}.$valid$"
        for f, _ in flat_fields(self._headers[name]) if name in self._headers else ():
            yield f"{name}.{f}"

    def _elements(self, stack: str, name: str) -> set[str]:
        return {f"{header}.{name}" for header in self._stacks.get(stack, ())}

    def _places(self, place: ir.Expr) -> set[str]:
        if isinstance(place, ir.FieldRef):
            return {f"{place.header}.{place.name}"}
        assert isinstance(place, (ir.ElemField, ir.LastField))
        return self._elements(place.stack, place.name)

    def _inputs(self, given: Any) -> set[str]:
        return set(self._parts(given)) if isinstance(given, ir.HeaderRef) else self._reads(given)

    def _reads(self, expr: ir.Expr) -> set[str]:
        if isinstance(expr, ir.Op):
            return set().union(*(self._reads(a) for a in expr.args))
        if isinstance(expr, ir.FieldRef):
            return {f"{expr.header}.{expr.name}"}
        if isinstance(expr, ir.ElemField):
            return self._elements(expr.stack, expr.name) | self._reads(expr.index)
        if isinstance(expr, ir.LastField):
            return self._elements(expr.stack, expr.name)
        if isinstance(expr, ir.Valid):
            return {f for f in self._parts(expr.header) if f.endswith("$valid$")}
        return set()

    # What a chip does not have to do

    def _break_cycles(self) -> None:
        while True:
            try:
                cycle = nx.find_cycle(self.graph, self.start)
            except nx.NetworkXNoCycle:
                return
            first, _ = cycle[-1][:2]
            self.loops.append(next((v.span for edge in cycle for v in edge[:2] if v.span is not None), None))
            self.graph.remove_edge(*cycle[-1][:2])
            if not self.graph.out_degree(first):
                self._connect(first, self.end)

    def vertices(self) -> list[Vertex]:
        """In an order in which each comes after all that can come before it."""
        if len(self._order) != len(self.graph):
            self._order = list(nx.topological_sort(self.graph))
        return self._order

    def most(self, weight: Callable[[Vertex], int]) -> int:
        """The largest sum of `weight` on a path of a packet."""
        best: dict[Vertex, int] = {}
        for vertex in self.vertices():
            best[vertex] = weight(vertex) + max((best[p] for p in self.graph.predecessors(vertex)), default=0)
        return max(best.values(), default=0)

    def remove(self, vertex: Vertex) -> None:
        before, after = list(self.graph.predecessors(vertex)), list(self.graph.successors(vertex))
        self.graph.remove_node(vertex)
        self.graph.add_edges_from((a, b) for a in before for b in after)

    def _simplify(self) -> None:
        reached = {self.start} | nx.descendants(self.graph, self.start)
        self.graph.remove_nodes_from([v for v in self.graph if v not in reached and v is not self.end])
        _Simplifier(self).run()
        for vertex in [v for v in self.vertices() if v.kind == "point" and v not in (self.start, self.end)]:
            edges = self.graph.in_degree(vertex), self.graph.out_degree(vertex)
            if min(edges) <= 1:
                self.remove(vertex)

    def listed(self) -> set[str]:
        """The fields in field lists and digests, which are read when the pipeline ends."""
        lists = (*self.program.field_lists, *self.program.learn_lists)
        return set().union(*(self._reads(element) for each in lists for element in each.elements))


class _Simplifier:
    """Takes out what a chip does not have to do. Reachability among the rest stays as it is."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        order = pipeline.vertices()
        self._order = order
        self._number = {v: i for i, v in enumerate(order)}
        self._after = reachable(pipeline.graph, order)
        self._kept = pipeline.listed()
        self._writers: dict[str, set[Vertex]] = {}
        self._readers: dict[str, set[Vertex]] = {}
        for vertex in order:
            for f in vertex.writes:
                self._writers.setdefault(f, set()).add(vertex)
            for f in vertex.reads | vertex.looks_up:
                self._readers.setdefault(f, set()).add(vertex)

    def run(self) -> None:
        changed = True
        while changed:
            changed = False
            for vertex in self._order:
                if vertex in self.pipeline.graph and self._removable(vertex):
                    self._remove(vertex)
                    changed = True

    def _remove(self, vertex: Vertex) -> None:
        self.pipeline.remove(vertex)
        for f in vertex.writes:
            self._writers[f].discard(vertex)
        for f in vertex.reads | vertex.looks_up:
            self._readers[f].discard(vertex)

    def _follows(self, later: Vertex, vertex: Vertex) -> bool:
        return bool(self._after[self._number[vertex]] >> self._number[later] & 1)

    def _removable(self, vertex: Vertex) -> bool:
        """Whether it can go; where it is a copy, its readers have what it copies afterwards."""
        if vertex.kind not in ("operation", "hash") or len(vertex.writes) != 1 or vertex.op in _EFFECTS:
            return False
        (place,) = vertex.writes
        if not _local(place) or place in self._kept:
            return False
        readers, writers = self._readers.get(place, set()), self._writers[place]
        if not readers:
            return True
        if vertex.op not in ("=", "convert"):
            return False
        if vertex.constant == 0 and not vertex.reads:  # the parser has written it, unless something was before
            return not any(self._follows(vertex, v) for v in (*writers, *readers))
        if len(writers) > 1 or not vertex.reads or not all(self._follows(v, vertex) for v in readers):
            return False
        if any(self._follows(v, vertex) for f in vertex.reads for v in self._writers.get(f, ())):
            return False
        self._read_instead(place, vertex.reads, readers)
        return True

    def _read_instead(self, place: str, sources: set[str], readers: set[Vertex]) -> None:
        for reader in list(readers):
            for fields in (reader.reads, reader.looks_up):
                if place in fields:
                    fields.discard(place)
                    fields |= sources
            if place in reader.index:
                reader.index = tuple(sorted({*reader.index, *sources} - {place}))
            for f in sources:
                self._readers.setdefault(f, set()).add(reader)
        readers.clear()


def _local(place: str) -> bool:
    """Whether nothing outside of the pipeline sees the field."""
    header, _, name = place.partition(".")
    return header == SCALARS and not name.startswith("userMetadata.")


def pipelines(program: ir.Program) -> list[Pipeline]:
    """Ingress and egress of `program`."""
    return [Pipeline(p, program) for p in program.pipelines]


def reachable(graph: nx.DiGraph[Vertex], order: list[Vertex]) -> list[int]:
    """For each vertex, by its number in the topological `order`, a bit for each that can follow it."""
    number = {v: i for i, v in enumerate(order)}
    after = [0] * len(order)
    for vertex in reversed(order):
        bits = 0
        for following in graph.successors(vertex):
            bits |= after[number[following]] | 1 << number[following]
        after[number[vertex]] = bits
    return after
