"""Generation of C for operations of actions, parser states and deparsers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

from p4switch import ir
from p4switch.compiler import types
from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Code, packet
from p4switch.engine.cnodes import Statement
from p4switch.engine.emit import Emitter
from p4switch.engine.expr import Expressions, HeaderRef
from p4switch.engine.flow import Node, statements
from p4switch.engine.program import Column, Program
from p4switch.engine.value import Place, low_rep
from p4switch.ir.errors import ProgramError
from p4switch.ir.graph import reverse_postorder


class Statements(ir.OperationVisitor[None]):
    """Generator of code for one function. An extern's `emit` uses `em`, `x` and the methods for externs."""

    def __init__(self, program: Program, em: Emitter, params: Sequence[Place], prefix: str) -> None:
        self.program = program
        self.em = em
        self.x = Expressions(program, em, params)
        self.prefix = prefix  # prefix of labels
        self.exits = False
        self.loops = False
        self._span: int | None = None  # span of the current operation
        self._point = -1  # point of the current operation

    def body(self, start: ir.Block) -> list[Statement]:
        """Return the statements of all blocks, with their jumps and exits."""
        order = reverse_postorder(start)
        graph = _Body({block: i for i, block in enumerate(order)})
        for block in order:
            node = graph.nodes[str(graph.numbers[block])] = Node()
            with self.em.inside(node.body):
                for op in self.spelled_out(block.ops):
                    self.statement(op)
                if isinstance(block.end, ir.Branch):
                    node.condition = self.test(block.end.condition, block.end.span, "if")
                    place = self.program.place(block.end.span)
                    node.note = place.note if place is not None else ""
                    node.yes = self._edge(graph, block, block.end.if_true)
                    node.next = self._edge(graph, block, block.end.if_false)
                elif isinstance(block.end, ir.Goto):
                    node.next = self._edge(graph, block, block.end.target)
        self.exits |= self.loops
        return statements(graph.nodes, "0", lambda name: f"{self.prefix}_{name.replace(' ', '_')}")

    def _edge(self, graph: _Body, block: ir.Block, target: ir.Block) -> str | None:
        """Return the name of a block's successor node. A backward edge leads to a node that counts the rounds."""
        if target.is_end:
            return None
        to = str(graph.numbers[target])
        if graph.numbers[target] > graph.numbers[block]:
            return to
        self.loops = True
        name = f"again {graph.numbers[block]}"
        again = graph.nodes[name] = Node(next=to)
        with self.em.inside(again.body):
            self.count_step("exit", "endless")
        return name

    def count_step(self, *flags: str) -> None:
        """Count a step of a loop. A packet with too many steps gets these flags and leaves the function."""
        with self.em.when(cexpr.compared(">=", cexpr.unary("++", packet("steps")), "P4_MAX_STEPS")):
            for flag in flags:
                self.em.set(packet(flag), 1)
            self.em.leave()

    def spelled_out(self, ops: Sequence[ir.Operation]) -> Iterator[ir.Operation]:
        """Yield the operations except those without visible effect. A copy of a union becomes copies of its headers."""
        for op in ops:
            if op in self.program.unread:
                continue
            if not isinstance(op, ir.CopyUnion):
                yield op
                continue
            to, of = self.program.unions[op.dst.name], self.program.unions[op.src.name]
            for member, a, b in zip(op.dst.type.fields, to, of, strict=True):
                assert isinstance(member.type, types.Header)
                yield ir.CopyHeader(ir.HeaderRef(member.type, a), ir.HeaderRef(member.type, b), op.span)

    def statement(self, op: ir.Operation) -> None:
        """Add one operation and its trace."""
        with self.em.block():
            self.point("statement", op.bmv2_name, op.span)
            op.accept(self)
            if not isinstance(op, ir.Exit):
                self.changes()

    def point(self, kind: Literal["statement", "extract"], name: str, span: int | None) -> int:
        """Generate the count of a new point for the current operation, and return the point's number.

        `span` is the position in the source.
        """
        self._span = span
        place = self.program.place(span)
        self._point = self.program.points.add(kind, name, place, name)
        self.em.comment(place.note if place is not None else "")
        self.em.note("PASS", self._point)
        return self._point

    def changes(self) -> None:
        """Generate the report of the changes that the current operation made."""
        self.em.note("CHANGES", "P4_TRACE_STATEMENT", self._point)

    def test(self, condition: ir.Expr, span: int | None, otherwise: str) -> C:
        """Return a condition in C, and generate the report of its outcome."""
        code, place, points = self.x.bool(condition), self.program.place(span), self.program.points
        text = place.text if place is not None and place.text else otherwise
        yes, no = points.add("branch", text, place, "true"), points.add("branch", text, place, "false")
        if self.em.traced:
            code = self.em.temp("int", code)
            self.em.note("PASS", cexpr.chosen(code, yes, no, ""))
            self.em.trace("CONDITION", yes, code)
        return code

    # --- for externs ---

    def store(self, place: Place, code: Code) -> None:
        """Store 64 bits."""
        value = cexpr.node(code, "uint64_t")
        rep = low_rep(place.width)
        if rep.limbs:
            value = self.em.wide(rep.limbs, "p4_big_u128", rep.limbs, value)
        place.store(self.em, value)

    def index(self, c_type: str, expr: ir.Expr) -> C:
        """Return the 32 bits of an index: a constant or a temporary."""
        value = self.x.data(expr).constant
        if value is not None:
            return cexpr.node(value & (1 << 32) - 1)
        return self.em.temp(c_type, cexpr.cast("uint32_t", self.x.low(expr, 32)), "index")

    def within(self, at: C, size: int) -> AbstractContextManager[None]:
        """Open a block that is executed only if the index is within the array."""
        return self.em.block() if at.value is not None and at.value < size else self.em.when(at < size)

    def touch(self, kind: Literal["register", "counter", "meter"], name: str, index: Code, extra: Code = 0,
              memory: tuple[Code, Code] = ("NULL", 0)) -> None:
        """Generate the report of an access to a cell of an array. `memory` is the address and size of its data."""
        point = self.program.points.add(kind, name, self.program.place(self._span), counted=False)
        self.em.trace(kind.upper(), point, index, extra, *memory)

    def tell(self, operation: ir.ExternOperation, name: str, index: Code, cell: C) -> None:
        """Generate the report of an access to a cell of an extern object."""
        place = self.program.place(self._span)
        point = self.program.points.add("extern", name, place, operation.primitive, counted=False)
        self.em.trace("EXTERN", point, index, 0, cell.address, cexpr.size_of(cell))

    def source(self, span: int | None, otherwise: str) -> str:
        """Return FILE:LINE and the first line of the statement."""
        place = self.program.place(span)
        if place is None:
            return otherwise
        return f"{place}: {(place.text or otherwise).partition(';')[0]}"

    # --- assignments ---

    def assign(self, op: ir.Assign) -> None:
        if isinstance(op.dst.type, types.Varbit):
            self._assign_varbit(op.dst, op.src)
            return
        place = self.x.place(op.dst)
        place.store(self.em, self.x.low(op.src, place.width))

    def _assign_varbit(self, target: ir.Expr, source: ir.Expr) -> None:
        (to, a), (of, b) = self.x.located(target), self.x.located(source)
        length = self.em.temp("uint32_t", of.varbytes)
        limit = a.width // 8
        if b.width > a.width:
            length = self.em.temp("uint32_t", cexpr.chosen(length < limit, length, limit, "uint32_t"))
        self.em.call("memmove", to.base + a.bit // 8, of.base + b.bit // 8, length)
        self.em.set(to.varbytes, cexpr.cast("uint16_t", length))

    def _copy(self, to: HeaderRef, of: HeaderRef) -> None:
        """Generate the copy of a header. As in BMv2's assign_header, only a valid header's fields are copied."""
        if to.metadata or of.metadata:
            for a, b in zip(to.type.fields, of.type.fields, strict=True):
                to.place(a).store(self.em, of.place(b).low(self.em, a.width))
            return
        with self.em.when(of.valid):
            to.set_valid(self.em)
            self.em.call("memmove", to.base, of.base, to.type.nbytes)
            if to.type.varbit:
                self.em.set(to.varbytes, of.varbytes)
        with self.em.otherwise():
            self.em.set(to.valid, 0)

    def copy_header(self, op: ir.CopyHeader) -> None:
        self._copy(self.x.header(op.dst), self.x.header(op.src))

    def copy_union(self, op: ir.CopyUnion) -> None:
        raise AssertionError("a union is copied header by header")

    def copy_stack(self, op: ir.CopyStack) -> None:
        to, of = self.program.stacks[op.dst.name], self.program.stacks[op.src.name]
        self.em.set(packet("next")[to.next], packet("next")[of.next])
        for column_to, column_of in zip(to.columns.values(), of.columns.values(), strict=True):
            for i in range(to.size):
                at = cexpr.node(i)
                self._copy(self.x.element(column_to, at), self.x.element(column_of, at))

    # --- validity ---

    def set_valid(self, op: ir.SetValid) -> None:
        ref = self.x.header(op.header)
        if ref.metadata:
            return
        with self.em.when(cexpr.negated(ref.valid)):
            if not self.program.path.keeps_fields:
                self.em.call("memset", ref.base, 0, ref.type.nbytes)
            if ref.type.varbit:
                self.em.set(ref.varbytes, 0)
            ref.set_valid(self.em)
            self.em.set(packet("length"), ref.length(), "+=")

    def set_invalid(self, op: ir.SetInvalid) -> None:
        ref = self.x.header(op.header)
        if ref.metadata:
            return
        with self.em.when(ref.valid):
            self.em.set(ref.valid, 0)
            self.em.set(packet("length"), ref.length(), "-=")

    def move_stack(self, op: ir.MoveStack) -> None:
        stack = self.program.stacks[op.stack.name]
        count = min(abs(op.by), stack.size)
        kept = stack.size - count
        for column in stack.columns.values():
            source, target, cleared = (0, count, 0) if op.by >= 0 else (count, 0, kept)
            self._shift(column, source, target, kept)
            self.em.call("memset", packet("valid") + column.is_valid + cleared, 0, count)
        following = packet("next")[stack.next]
        if op.by >= 0:
            moved = cexpr.chosen(following < kept, following + count, stack.size, "")
        else:
            moved = cexpr.chosen(following > count, following - count, 0, "")
        self.em.set(following, moved)

    def _shift(self, stack: Column, source: int, target: int, count: int) -> None:
        """Move `count` elements within a stack."""
        nbytes = stack.type.nbytes
        valid, varbytes = (packet(array) + stack.is_valid for array in ("valid", "varbytes"))
        # An array, and the number of its units and bytes per element.
        arrays = [(stack.memory(), nbytes, nbytes), (valid, 1, 1), *([(varbytes, 1, 2)] if stack.type.varbit else [])]
        for first, units, size in arrays:
            self.em.call("memmove", first + target * units, first + source * units, count * size)

    # --- the rest ---

    def exit(self, op: ir.Exit) -> None:
        self.exits = True
        self.changes()
        self.em.set(packet("exit"), 1)
        self.em.leave()

    def extern(self, op: ir.ExternOperation) -> None:
        op.emit(self)

    def extract(self, op: ir.Extract) -> None:
        raise ProgramError("only a parser extracts")

    def advance(self, op: ir.Advance) -> None:
        raise ProgramError("only a parser advances")

    def verify(self, op: ir.Verify) -> None:
        raise ProgramError("only a parser verifies")


@dataclass
class _Body:
    """The nodes of one function, and the numbers of its blocks."""

    numbers: Mapping[ir.Block, int]
    nodes: dict[str, Node] = field(default_factory=dict)
