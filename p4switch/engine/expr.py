"""Generation of C for expressions of the intermediate representation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4switch import ir
from p4switch.bits.operators import evaluate
from p4switch.compiler import types
from p4switch.engine import cexpr
from p4switch.engine.cdomain import CValues
from p4switch.engine.cexpr import C, Code
from p4switch.engine.emit import Emitter
from p4switch.engine.program import Column, Field, Header, HeaderType, Program, Register, Stack, labels
from p4switch.engine.value import Computed, InHeader, Native, Place, Value, constant, flag, named
from p4switch.ir.errors import ProgramError


@dataclass(frozen=True)
class HeaderRef:
    """Header with its index in `valid` and its address. It may be a stack element known only at run time.

    `siblings` are the slots of the other members of its union.
    """

    type: HeaderType
    slot: C
    base: C
    siblings: tuple[C, ...] = ()
    metadata: Header | None = None
    at: str = ""  # offset of the header in `H`, if that is known

    @property
    def valid(self) -> C:
        return cexpr.literal(1, "int") if self.metadata else cexpr.packet("valid")[self.slot]

    @property
    def varbytes(self) -> C:
        """The length of the header's varbit in bytes."""
        return cexpr.packet("varbytes")[self.slot]

    def place(self, field: Field) -> Place:
        if self.metadata:
            return Native(field.width, field.signed, cexpr.packet("m").dot(self.metadata.label).dot(field.member))
        if field.varbit:
            raise ProgramError(f"{self.type.name}.{field.name} has variable length: it has no value")
        return InHeader(field.width, field.signed, self.base, field)

    def set_valid(self, em: Emitter) -> None:
        if self.metadata:
            return
        for sibling in self.siblings:
            em.set(cexpr.packet("valid")[sibling], 0)
        em.set(self.valid, 1)

    def length(self) -> C:
        """Return the length in bytes on the wire if the header is valid."""
        if self.type.fixed_bytes < 0:
            raise ProgramError(f"header type {self.type.name} is not a whole number of bytes")
        fixed = cexpr.node(self.type.fixed_bytes)
        return fixed + self.varbytes if self.type.varbit else fixed


class Expressions(ir.ExpressionVisitor[Value]):
    """Generator of expressions in one function. `params` are the action's parameters, in order."""

    def __init__(self, program: Program, em: Emitter, params: Sequence[Place] = ()) -> None:
        self.program = program
        self.em = em
        self.params = params
        self.domain = CValues(em)

    # --- headers ---

    def named(self, name: str) -> HeaderRef:
        header = self.program.header(name)
        if header.metadata:
            nowhere = cexpr.node(0)
            return HeaderRef(header.type, nowhere, nowhere, metadata=header)
        siblings: tuple[C, ...] = ()
        if header.union:
            members = (self.program.headers[member] for member in self.program.unions[header.union])
            siblings = tuple(cexpr.node(m.is_valid) for m in members if m is not header)
        return HeaderRef(header.type, cexpr.node(header.is_valid), header.memory(), siblings, at=header.at)

    @staticmethod
    def element(stack: Column, index: C) -> HeaderRef:
        """Return the element at a C index, which is at most `stack.size`."""
        nbytes = stack.type.nbytes
        at = index * nbytes if index.value is None else cexpr.node(index.value * nbytes)
        return HeaderRef(stack.type, cexpr.node(stack.is_valid) + index, stack.memory() + at)

    def any_element(self, stack: Stack, member: str, index: C) -> HeaderRef:
        """Return the element, or its header `member`, at a C index, which is at most `stack.size`."""
        columns = {name: self.element(column, index) for name, column in stack.columns.items()}
        chosen = columns.pop(member)
        return HeaderRef(chosen.type, chosen.slot, chosen.base, tuple(other.slot for other in columns.values()))

    def header(self, ref: ir.HeaderRef) -> HeaderRef:
        if not ref.stack:
            return self.named(ref.name)
        assert ref.index is not None, "only an extraction has a next element"
        stack = self.program.stacks[ref.stack]
        return self.any_element(stack, ref.member, self.index(ref.index, stack.size))

    def last(self, stack: Stack) -> C:
        """Return the index of the last element that was extracted, or of the spare element if there is none."""
        following = cexpr.packet("next")[stack.next]
        return self.em.temp("uint32_t", cexpr.chosen(following, following - 1, stack.size, "uint32_t"))

    def index(self, expr: ir.Expr, size: int) -> C:
        """Return an index into a stack of `size` elements. An index out of bounds becomes `size`, the spare element."""
        value = self.data(expr)
        if value.constant is not None:
            return cexpr.node(value.constant if 0 <= value.constant < size else size)
        value = named(self.em, value)
        inside = self.domain.compare("<", value, constant(size), ir.INT)
        if value.low < 0:
            inside = self.domain.both(self.domain.compare(">=", value, constant(0), ir.INT), inside)
        index = cexpr.cast("uint32_t", value.lowest(self.em, 64))
        return self.em.temp("uint32_t", cexpr.chosen(inside.condition(self.em), index, size, "uint32_t"))

    # --- places ---

    def place(self, expr: ir.Expr) -> Place:
        """Return the place where a field, a parameter or a header's validity is stored."""
        if isinstance(expr, ir.Valid):
            return Native(1, False, self.header(expr.header).valid)
        if isinstance(expr, ir.Param):
            return self.params[expr.index]
        header, field = self.located(expr)
        return header.place(field)

    def located(self, expr: ir.Expr) -> tuple[HeaderRef, Field]:
        """Return the header of a field, and the field."""
        if isinstance(expr, ir.FieldRef):
            header = self.named(expr.header)
        elif isinstance(expr, ir.LastField):
            stack = self.program.stacks[expr.stack]
            header = self.any_element(stack, expr.member, self.last(stack))
        else:
            assert isinstance(expr, ir.ElemField)
            stack = self.program.stacks[expr.stack]
            header = self.any_element(stack, expr.member, self.index(expr.index, stack.size))
        return header, header.type.field(expr.name)

    def cell(self, register: Register, index: Code) -> Native:
        """Return a register's cell at a C expression."""
        return Native(register.width, False, register.code(index))

    # --- data ---

    def data(self, expr: ir.Expr) -> Value:
        """Return the value of `expr`."""
        return expr.accept(self)

    def const(self, expr: ir.Const) -> Value:
        """Return a constant. In the JSON, its type only gives the width of the digits, and it may be negative."""
        return self.domain.constant(expr.value, ir.BOOL if isinstance(expr.type, types.Bool) else ir.INT)

    def field(self, expr: ir.Place | ir.Param) -> Value:
        return self.place(expr).load(self.em)

    last_field = elem_field = param = field

    def valid(self, expr: ir.Valid) -> Value:
        return flag(self.header(expr.header).valid)

    def lookahead(self, expr: ir.Lookahead) -> Value:
        raise ProgramError("a lookahead stands in the key of a parser state or alone in an assignment")

    def last_index(self, expr: ir.LastIndex) -> Value:
        stack = self.program.stacks[expr.stack]
        following = cexpr.cast("int64_t", cexpr.packet("next")[stack.next])
        return Computed(-1, stack.size - 1, following - 1)

    def op(self, expr: ir.Op) -> Value:
        if isinstance(expr.args[0].type, types.Varbit):
            same = self._varbits_equal(*expr.args)
            return flag(same if expr.op == "==" else cexpr.negated(same))
        return evaluate(self.domain, expr, [self.data(a) for a in expr.args])

    def low(self, expr: ir.Expr, width: int) -> C:
        """Return the low `width` bits in the representation of `low_rep`. Higher bits are arbitrary."""
        return self.data(expr).lowest(self.em, width)

    def bool(self, expr: ir.Expr) -> C:
        """Return a C condition."""
        return self.data(expr).condition(self.em)

    def _varbits_equal(self, left: ir.Expr, right: ir.Expr) -> C:
        """Return whether the lengths and the bits are equal, as in P4-16. BMv2 compares only the values."""
        (a, first), (b, second) = self.located(left), self.located(right)
        lengths = cexpr.compared("==", a.varbytes, b.varbytes)
        differ = cexpr.call("memcmp", "int", a.base + first.bit // 8, b.base + second.bit // 8, a.varbytes)
        return cexpr.both("&&", lengths, cexpr.negated(differ))


@dataclass(frozen=True)
class Parameter:
    """Parameter of an action, which is a member of a struct in C."""

    name: str
    width: int
    member: str

    @classmethod
    def of(cls, action: ir.Action) -> list[Parameter]:
        """Return the parameters of an action, in order."""
        members = labels([name for name, _ in action.params])
        return [
            cls(name, types.width_of(t) or 0, member)
            for (name, t), member in zip(action.params, members, strict=True)
        ]
