"""Expressions and references in BMv2's form.

BMv2 computes with integers of any size and truncates a value when it stores it. A result that may be outside the range
of its type is therefore masked or cast. Bools are stored as one-bit numbers, and are cast when they are read.

Every operand is used once, so that the size of the result is proportional to the size of the expression. The middle
end has already expanded operations that use an operand more than once, and has saved such operands in temporaries.
"""

from __future__ import annotations

from p4switch import ir
from p4switch.bmv2.values import number
from p4switch.compiler import types
from p4switch.compiler.bmv2.storage import Storage
from p4switch.compiler.diagnostics import UnsupportedError

_WRAPS = {"+", "-", "*", "<<", ">>", "/", "%", "neg", "~"}
_BOOLEAN = {"==", "!=", "<", "<=", ">", ">=", "&&", "||", "!"}


def _op(op: str, *args: ir.Expr) -> ir.Op:
    return ir.Op(op, args, ir.BOOL if op in _BOOLEAN else ir.INT)


def _truncated(expr: ir.Expr, t: types.Type) -> ir.Expr:
    if not isinstance(t, types.Bits):
        return expr
    if t.signed:
        return ir.Op("cast", (expr,), t)
    return _op("&", expr, number((1 << t.width) - 1, t.width))


class Expressions(ir.ExpressionVisitor[ir.Expr]):
    """Converter of expressions to BMv2's form. Methods raise UnsupportedError."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    # References

    def header(self, ref: ir.HeaderRef) -> ir.HeaderRef:
        """Return a reference to a header in the form that operations take."""
        if not ref.stack:
            return ir.HeaderRef(self._storage.instances[ref.name].type, ref.name)
        if ref.index is None:
            raise UnsupportedError(
                f"'{ref.where}' of stack '{ref.stack}': this target can only "
                + ("extract to it" if ref.where == "next" else "read its fields")
            )
        t = self._storage.element(ref.stack, ref.member)
        return ir.HeaderRef(t, "", ref.stack, self.value(ref.index), "", ref.member, ref.position)

    def extracted(self, ref: ir.HeaderRef) -> ir.HeaderRef:
        """Return a reference to a header to extract, which may be the next header of a stack."""
        if ref.where != "next":
            return ir.HeaderRef(self._storage.instances[ref.name].type, ref.name)
        t = self._storage.element(ref.stack, ref.member)
        return ir.HeaderRef(t, "", ref.stack, where="next", member=ref.member, position=ref.position)

    def stack(self, ref: ir.StackRef) -> ir.StackRef:
        return self._storage.stacks[ref.name]

    def union(self, ref: ir.UnionRef) -> ir.UnionRef:
        return self._storage.unions[ref.name]

    def place(self, expr: ir.Expr) -> ir.Place | ir.Valid:
        """Return a field in its stored form."""
        if isinstance(expr, ir.FieldRef):
            return self._storage.field(expr.header, expr.name)
        if isinstance(expr, ir.LastField):
            t = self._storage.element(expr.stack, expr.member).find(expr.name)
            assert t is not None
            return ir.LastField(expr.stack, expr.name, t.type, expr.member)
        if isinstance(expr, ir.ElemField):
            field = self._storage.element(expr.stack, expr.member).fields[expr.position]
            index = self.value(expr.index)
            member = expr.member, expr.member_position
            return ir.ElemField(expr.stack, index, field.name, expr.position, field.type, *member)
        if isinstance(expr, ir.Valid) and not expr.header.stack:
            return ir.Valid(self.header(expr.header))
        raise AssertionError(expr)

    def target(self, expr: ir.Place) -> ir.Place:
        """Return a field that is the target of an assignment."""
        place = self.place(expr)
        assert not isinstance(place, ir.Valid)
        return place

    def input(self, expr: ir.Input) -> ir.Input:
        """Return an input of a calculation or selector."""
        if isinstance(expr, ir.Const):
            return ir.Const(expr.value, ir.Bits(types.width_of(expr.type) or 0))
        return self.header(expr) if isinstance(expr, ir.HeaderRef) else self._storage.field(expr.header, expr.name)

    # Values

    def value(self, expr: ir.Expr) -> ir.Expr:
        """Return `expr` as an operand of an expression. A bool becomes a condition, anything else a number."""
        return expr.accept(self)

    def argument(self, expr: ir.Expr) -> ir.Expr:
        """Return `expr` as an argument of an operation, which has to be a number."""
        if isinstance(expr, ir.Const):
            return number(expr.value, types.width_of(expr.type) or 0)
        if isinstance(expr, (ir.FieldRef, ir.LastField, ir.ElemField)):
            return self.place(expr)
        if isinstance(expr, ir.Param):
            return self._param(expr)
        value = self.value(expr)
        if isinstance(value, ir.FieldRef | ir.Param):
            return ir.Op("cast", (value,), ir.INT)
        return ir.Op("cast", (value,), ir.Bits(1)) if isinstance(value.type, types.Bool) else value

    @staticmethod
    def _param(expr: ir.Param) -> ir.Param:
        return ir.Param(expr.index, ir.Bits(types.width_of(expr.type) or 0))

    @staticmethod
    def _read(stored: ir.Expr, t: types.Type) -> ir.Expr:
        """Return a stored number as a value of type `t`."""
        return ir.Op("cast", (stored,), ir.BOOL) if isinstance(t, types.Bool) else stored

    def const(self, expr: ir.Const) -> ir.Expr:
        if isinstance(expr.type, types.Bool):
            return ir.Const(expr.value, ir.BOOL)
        return number(expr.value, types.width_of(expr.type) or 0)

    def field(self, expr: ir.FieldRef | ir.ElemField) -> ir.Expr:
        return self._read(self.place(expr), expr.type)

    elem_field = field

    def last_field(self, expr: ir.LastField) -> ir.Expr:
        if expr.member:
            raise UnsupportedError(f"'last' of union stack '{expr.stack}': this target can only select on its fields")
        return self._read(self.place(expr), expr.type)

    def param(self, expr: ir.Param) -> ir.Expr:
        return self._read(self._param(expr), expr.type)

    def valid(self, expr: ir.Valid) -> ir.Expr:
        return ir.Valid(self.header(expr.header))

    def last_index(self, expr: ir.LastIndex) -> ir.Expr:
        return ir.LastIndex(expr.stack)

    def lookahead(self, expr: ir.Lookahead) -> ir.Expr:
        return ir.Lookahead(expr.offset, expr.width, ir.Bits(expr.width))

    def op(self, expr: ir.Op) -> ir.Expr:
        op, args, t = expr.op, expr.args, expr.type
        if op == "?:":
            test, yes, no = map(self.value, args)
            return ir.Op("?:", (test, yes, no), ir.BOOL if isinstance(t, types.Bool) else ir.INT)
        if op == "cast":
            return self._cast(args[0], t)
        if op == "slice":
            low = args[2]
            assert isinstance(low, ir.Const)
            whole = self.value(args[0])
            return _truncated(_op(">>", whole, number(low.value, 8)) if low.value else whole, t)
        if op == "++":
            return self._concatenation(args[0], args[1], t)
        if op in ("|+|", "|-|"):
            return ir.Op("saturate", (_op(op[1], self.value(args[0]), self.value(args[1])),), t)
        if op == "neg":
            return _truncated(_op("-", number(0, types.width_of(t) or 0), self.value(args[0])), t)
        result = _op(op, *map(self.value, args))
        shrinks = op in (">>", "/", "%") and isinstance(t, types.Bits) and not t.signed
        return _truncated(result, t) if op in _WRAPS and not shrinks else result

    def _cast(self, source: ir.Expr, t: types.Type) -> ir.Expr:
        inner = self.value(source)
        if isinstance(t, types.Bool):
            if isinstance(source.type, types.Bool):
                return inner
            return _op("!=", inner, number(0, types.width_of(source.type) or 0))
        if isinstance(source.type, types.Bool):
            width = types.width_of(t) or 1
            return _op("?:", inner, number(1, width), number(0, width))
        if isinstance(t, types.Bits) and isinstance(source.type, types.Bits):
            fits = source.type.signed == t.signed and source.type.width <= t.width
            fits = fits or (t.signed and source.type.width < t.width and not source.type.signed)
            return inner if fits else _truncated(inner, t)
        return inner

    def _concatenation(self, left: ir.Expr, right: ir.Expr, t: types.Type) -> ir.Expr:
        assert isinstance(left.type, types.Bits)
        assert isinstance(right.type, types.Bits)
        assert isinstance(t, types.Bits)
        width = right.type.width
        high = self.value(left)
        if left.type.signed:
            high = _truncated(high, types.Bits(left.type.width))
        low = self.value(right)
        if right.type.signed:
            low = _truncated(low, types.Bits(width))
        result = _op("|", _op("<<", high, number(width)), low)
        return _truncated(result, t) if t.signed else result
