"""The operations of a pipeline on a chip: a vertex for each lookup, condition, sum, move and register access.

The vertices form a control-flow graph without cycles. Operations that need no resources of a chip are removed: casts,
slices and concatenations (wiring), copies of values that no longer change, zeros that the parser writes, and results
that are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import networkx as nx

from p4switch import ir
from p4switch.compiler import types
from p4switch.compiler.midend.storage import SCALARS, flat_fields
from p4switch.ir.graph import reverse_postorder

_EXTREMES = {">": "max", ">=": "max", "<": "min", "<=": "min"}
FREE = frozenset({"cast", "slice", "++"})
"""Operations that are only wiring, or part of another operation (deposit-field in the RMT paper, section 3.1)."""

REFERENCES = (ir.HeaderRef, ir.UnionRef, ir.StackRef)
MADE_VALID = ir.SetValid.primitive
"""`Vertex.op` of a vertex that makes a header valid."""

COMPARISONS = frozenset({"<", "<=", ">", ">="})
SUMS = frozenset({"+", "-", "*", "|+|", "|-|", "neg", "<<", ">>"})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(slots=True, eq=False)
class Vertex:
    """Step of a pipeline.

    The fields in `looks_up` are read before the stage begins (keys, conditions, addresses), those
    in `reads` by its action.
    """

    kind: str  # "table", "condition", "operation", "register", "hash", "random", or "point" where paths meet
    name: str
    span: int | None = None
    looks_up: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    op: str = ""  # as in `ir.Op`, or the name of the primitive
    width: int = 0  # bits of the widest operand
    constant: int | None = None  # the right operand if it is constant
    table: ir.Table | None = None
    register: str = ""
    access: str = ""  # "read" or "write"
    index: tuple[str, ...] = ()  # fields that address a register
    in_action: bool = False  # True in an action of a table
    effects: frozenset[ir.Effect] = ir.NOTHING

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}"


def _extreme(expr: ir.Op) -> str:
    """Return "max" or "min" if an ALU can compute the conditional expression `expr` as that operation, else ""."""
    condition, *values = expr.args
    if expr.op != "?:" or not isinstance(condition, ir.Op) or condition.op not in _EXTREMES:
        return ""
    return _EXTREMES[condition.op] if [*condition.args] == values else ""


class Pipeline:
    """Ingress or egress as a graph of vertices. `loops` are the spans of backward jumps."""

    def __init__(self, pipeline: ir.Pipeline, program: ir.Program) -> None:
        self.name = pipeline.name
        self.program = program
        self.graph: nx.DiGraph[Vertex] = nx.DiGraph()
        self.loops: list[int | None] = []
        self._operations = _Operations(self)
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
        """Return the first vertex of the code from `start` on. After the code follows `end`."""
        order = reverse_postorder(start)
        entries = {block: Vertex("point", block.name or "block") for block in order}
        for block in order:
            self._tail = entries[block]
            self.graph.add_node(self._tail)
            for op in block.ops:
                op.accept(self._operations)
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

    def assign(self, op: ir.Assign) -> None:
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
        """Append vertices for the operands of `expr`, then one for `expr`, and return it.

        The caller sets the fields that it writes.
        """
        reads: set[str] = set()
        extreme = _extreme(expr)
        for arg in expr.args[1:] if extreme else expr.args:
            reads |= self._value(arg, span)
        width = max(types.width_of(a.type) or 1 for a in (expr, *expr.args))
        op, last = extreme or expr.op, expr.args[-1]
        if op in _MIRRORED and isinstance(expr.args[0], ir.Const):
            op, last = _MIRRORED[op], expr.args[0]
        constant = last.value if isinstance(last, ir.Const) else None
        return self._append(Vertex("operation", op, span, reads=reads, op=op, width=width, constant=constant))

    def _value(self, expr: ir.Read, span: int | None) -> set[str]:
        """Append vertices for the operations in `expr`, and return the fields with its value."""
        if not isinstance(expr, ir.Op):
            return self._reads(expr)
        if expr.op in FREE:
            return set().union(*(self._value(a, span) for a in expr.args))
        self._temporaries += 1
        vertex = self._compute(expr, span)
        vertex.writes = {f"{SCALARS}.%{self._temporaries}"}
        return set(vertex.writes)

    def _condition(self, branch: ir.Branch) -> Vertex:
        """Return the vertex of a condition.

        A condition looks up equality of fields, `!`, `&&` and `||`. Other operations are computed before it.
        """
        reads, width = self._lookup(branch.condition, branch.span)
        return self._append(
            Vertex("condition", "if", branch.span, reads, op="if", width=width, in_action=self._in_action)
        )

    def _lookup(self, expr: ir.Expr, span: int | None) -> tuple[set[str], int]:
        if isinstance(expr, ir.Op) and expr.op in ("&&", "||", "!", "==", "!="):
            inner = [self._lookup(arg, span) for arg in expr.args]
            together = max if expr.op in ("==", "!=") else sum  # == and != compare two fields bit by bit
            return set().union(*(reads for reads, _ in inner)), together(bits for _, bits in inner)
        if isinstance(expr, ir.Const):
            return set(), 0
        return self._value(expr, span), types.width_of(expr.type) or 1

    def step(
        self,
        op: ir.Operation,
        name: str,
        *,
        kind: str = "operation",
        label: str = "",
        constant: int | None = None,
        register: str = "",
        access: str = "",
        ahead: bool = False,
    ) -> None:
        """Append a vertex for `op`, with the fields that it reads and writes.

        With `ahead`, it reads them before the stage begins.
        """
        reads: set[str] = set()
        for read in op.reads:
            reads |= self._value(read, op.span)
        vertex = Vertex(kind, label or name, op.span, writes=self._written(op), op=name, effects=op.effects)
        if ahead:
            vertex.looks_up = reads
        else:
            vertex.reads = reads
        vertex.constant, vertex.register, vertex.access = constant, register, access
        self._append(vertex)

    def access(
        self, op: ir.ExternOperation, register: str, access: str, index: ir.Expr, value: ir.Expr | None = None
    ) -> None:
        """Append a vertex for the access to the cell `index` of a register: "read", or "write" of `value`."""
        looks_up = self._value(index, op.span)
        reads = set() if value is None else self._value(value, op.span)
        vertex = Vertex("register", register, op.span, looks_up, reads, self._written(op), op.primitive)
        vertex.index = tuple(sorted(looks_up)) or (str(index.value) if isinstance(index, ir.Const) else "",)
        vertex.register, vertex.access, vertex.effects = register, access, op.effects
        self._append(vertex)

    def _written(self, op: ir.Operation) -> set[str]:
        fields: set[str] = set()
        for written in op.writes:
            if isinstance(written, (ir.Valid, *REFERENCES)):
                fields |= self._reads(written)
            else:
                fields |= self._places(written)
        return fields

    # Fields

    def _parts(self, ref: ir.HeaderRef | ir.UnionRef | ir.StackRef) -> Iterator[str]:
        """Yield the fields and the validity of all headers that `ref` may denote."""
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

    def _reads(self, expr: ir.Read) -> set[str]:
        if isinstance(expr, REFERENCES):
            return set(self._parts(expr))
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

    # Operations that a chip does not need

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
        """Return the vertices in topological order."""
        if len(self._order) != len(self.graph):
            self._order = list(nx.topological_sort(self.graph))
        return self._order

    def most(self, weight: Callable[[Vertex], int]) -> int:
        """Return the largest sum of `weight` on a path of a packet."""
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
        """Return the fields in field lists and digests, which are read when the pipeline ends."""
        lists = (*self.program.field_lists, *self.program.learn_lists)
        return set().union(*(self._reads(element) for each in lists for element in each.elements))


class _Operations(ir.OperationVisitor[None]):
    """Visitor that appends the vertices of operations."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def assign(self, op: ir.Assign) -> None:
        self._pipeline.assign(op)

    def _step(self, op: ir.Operation) -> None:
        self._pipeline.step(op, op.bmv2_name)

    set_valid = set_invalid = copy_header = copy_union = copy_stack = move_stack = exit = _step

    def extract(self, op: ir.Extract) -> None:
        raise AssertionError("only a parser extracts")

    def advance(self, op: ir.Advance) -> None:
        raise AssertionError("only a parser advances")

    def verify(self, op: ir.Verify) -> None:
        raise AssertionError("only a parser verifies")

    def extern(self, op: ir.ExternOperation) -> None:
        op.fit(self._pipeline)


class _Simplifier:
    """Removal of operations that a chip does not need. Reachability among the remaining vertices does not change."""

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
        """Return whether a vertex can be removed. The readers of a copy then read its source."""
        if vertex.kind not in ("operation", "hash", "random") or len(vertex.writes) != 1 or vertex.effects:
            return False
        (place,) = vertex.writes
        if not _local(place) or place in self._kept:
            return False
        readers, writers = self._readers.get(place, set()), self._writers[place]
        if not readers:
            return True
        if vertex.op not in ("=", "convert"):
            return False
        if vertex.constant == 0 and not vertex.reads:  # written by the parser, unless a vertex wrote before
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
    """Return whether only the pipeline reads the field."""
    header, _, name = place.partition(".")
    return header == SCALARS and not name.startswith("userMetadata.")


def pipelines(program: ir.Program) -> list[Pipeline]:
    """Return ingress and egress of `program`."""
    return [Pipeline(p, program) for p in program.pipelines]


def reachable(graph: nx.DiGraph[Vertex], order: list[Vertex]) -> list[int]:
    """Return for each vertex, numbered by the topological `order`, a bit mask of the vertices that can follow."""
    number = {v: i for i, v in enumerate(order)}
    after = [0] * len(order)
    for vertex in reversed(order):
        bits = 0
        for following in graph.successors(vertex):
            bits |= after[number[following]] | 1 << number[following]
        after[number[vertex]] = bits
    return after
