"""Conversions: implicit and explicit casts, initialisers, default values (language specification, section 8.11 on)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.bits.domain import fits, wrap
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.types import Type

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

MAX_DEFAULTS = 10_000
"""How many fields and elements `...` may stand for."""


def retyped(e: ast.IntLiteral, value: int, t: Type) -> ast.IntLiteral:
    return ast.IntLiteral(e.pos, value, e.base, type=t)


class Conversions:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx

    def convert(self, e: ast.Expr, target: Type, what: str = "") -> ast.Expr:
        """`e`, checked, as a value of type `target`: as it is, or implicitly converted; reports if it cannot be.

        `what` says in the message what needs that type.
        """
        if e.type == target and not isinstance(e, (ast.ListExpr, ast.StructExpr)):
            return e
        if isinstance(e.type, types.Unknown) or isinstance(target, types.Unknown):
            return e
        result = self._converted(e, target)
        if result is not None:
            return result
        self.ctx.error(e, f"expected {target}{' for ' + what if what else ''}, not {describe(e)}")
        e.type = types.UNKNOWN
        return e

    def _converted(self, e: ast.Expr, target: Type) -> ast.Expr | None:
        t = e.type
        if isinstance(e, ast.DefaultInit):
            return self.default_value(e, target)
        if isinstance(e, ast.ListExpr):
            return self._convert_list(e, target)
        if isinstance(e, ast.StructExpr):
            return self._convert_struct(e, target)
        if isinstance(e, ast.InvalidHeader) and isinstance(t, types.AnonRecord):
            if isinstance(target, (types.Header, types.Union)):
                e.type = target
                return e
            return None
        if isinstance(t, types.InfInt) and isinstance(target, types.Bits):
            return self.sized(e, target)
        if isinstance(t, types.InfInt) and isinstance(target, types.NewType) and isinstance(e, ast.IntLiteral):
            # The specification wants a cast; p4c takes the literal, and programs of the field rely on that.
            bits = isinstance(types.strip_newtype(target), types.Bits)
            return self.fold_cast(ast.Cast(e.pos, None, e, True, type=target)) if bits else None
        if isinstance(e, ast.IntLiteral) and isinstance(t, types.Bits) and isinstance(target, types.InfInt):
            return retyped(e, e.value, target)
        if isinstance(t, types.Enum) and t.underlying is not None and t.underlying == target:
            return self.fold_cast(ast.Cast(e.pos, None, e, True, type=target))
        if isinstance(e, ast.Conditional) and isinstance(t, (types.Tuple, types.AnonRecord, types.InfInt)):
            e.then = self.convert(e.then, target)
            e.otherwise = self.convert(e.otherwise, target)
            e.type = target
            return e
        return e if t == target else None

    def literal_as(self, e: ast.IntLiteral, t: types.Bits) -> ast.IntLiteral:
        """A literal of type `int` as one of type `t`; warns if bits are lost."""
        value = e.value
        if not fits(value, t):
            wrapped = wrap(value, t)
            # Negative numbers for unsigned types, and masks for signed ones, are meant as bit patterns.
            if value >= 1 << t.width or value < -(1 << max(t.width - 1, 0)):
                self.ctx.warn(e, f"{value} does not fit in {t}: it becomes {wrapped}")
            value = wrapped
        return retyped(e, value, t)

    def sized(self, e: ast.Expr, t: types.Bits) -> ast.Expr:
        """An expression of type `int` as one of type `t`, modulo 2**width. What is known at run time only, as in
        `(bit<8>)((int)x + 1)`, is computed in `t` throughout."""
        if isinstance(e, ast.IntLiteral):
            return self.literal_as(e, t)
        if isinstance(e, ast.Cast) and isinstance(e.operand.type, types.Bits):
            given = e.operand.type
            if given == t:
                return e.operand
            if given.signed != t.signed and given.width != t.width:
                middle = types.Bits(t.width, given.signed)
                e = ast.Cast(e.pos, None, e.operand, True, type=middle)
                return ast.Cast(e.pos, None, e, True, type=t)
            return ast.Cast(e.pos, None, e.operand, True, type=t)
        if isinstance(e, ast.Binary) and e.op in ("+", "-", "*", "&", "|", "^"):
            return ast.Binary(e.pos, e.op, self.sized(e.left, t), self.sized(e.right, t), type=t)
        if isinstance(e, ast.Unary):
            return ast.Unary(e.pos, e.op, self.sized(e.operand, t), type=t)
        return ast.Cast(e.pos, None, e, True, type=t)

    def _convert_list(self, e: ast.ListExpr, target: Type) -> ast.Expr | None:
        if isinstance(target, types.NewType):
            return None
        if isinstance(e.type, (types.List, types.Stack)):  # converted before
            return e if e.type == target else None
        if isinstance(target, types.Tuple):
            wanted = list(target.elements)
        elif isinstance(target, types.Stack):
            wanted = [target.element] * target.size
        elif isinstance(target, types.List):
            wanted = [target.element] * len(e.items)
        elif isinstance(target, (types.Struct, types.Header)):
            wanted = [f.type for f in target.fields]
        else:
            return None
        if len(e.items) > len(wanted) or (len(e.items) < len(wanted) and not e.rest):
            self.ctx.error(e, f"{target} needs {len(wanted)} values, not {len(e.items)}")
            e.type = types.UNKNOWN
            return e
        items = [self.convert(item, t) for item, t in zip(e.items, wanted, strict=False)]
        items += [self.default_value(e, t) for t in wanted[len(items) :]]
        if isinstance(target, (types.Struct, types.Header)):
            pairs = zip(target.fields, items, strict=True)
            fields = [ast.NamedExpr(item.pos, f.name, item) for f, item in pairs]
            return ast.StructExpr(e.pos, None, fields, type=target)
        return ast.ListExpr(e.pos, items, type=target)

    def _convert_struct(self, e: ast.StructExpr, target: Type) -> ast.Expr | None:
        if not isinstance(e.type, types.AnonRecord):
            return e if e.type == target else None
        if not isinstance(target, (types.Struct, types.Header)):
            return None
        given = {f.name: f for f in e.fields}
        for f in e.fields:
            if target.find(f.name) is None:
                hint = did_you_mean(f.name, [wanted.name for wanted in target.fields])
                self.ctx.error(f, f"{target} has no field {f.name!r}{hint}")
        fields: list[ast.NamedExpr] = []
        for wanted in target.fields:
            found = given.get(wanted.name)
            if found is not None:
                value = self.convert(found.value, wanted.type, f"field {wanted.name!r}")
                fields.append(ast.NamedExpr(found.pos, wanted.name, value))
            elif e.rest:
                fields.append(ast.NamedExpr(e.pos, wanted.name, self.default_value(e, wanted.type)))
            else:
                self.ctx.error(e, f"field {wanted.name!r} of {target} has no value")
        return ast.StructExpr(e.pos, None, fields, type=target)

    def default_value(self, at: ast.Node, t: Type) -> ast.Expr:
        """The default value of type `t` (specification, section 7.3); reports if it has none."""
        base = types.strip_newtype(t)
        if self.ctx.written_types.parts(base) > MAX_DEFAULTS:
            self.ctx.error(at, f"'...' cannot stand for more than {MAX_DEFAULTS} values")
            return ast.DefaultInit(at.pos, type=types.UNKNOWN)
        if isinstance(base, (types.Bits, types.InfInt)):
            return ast.IntLiteral(at.pos, 0, type=t)
        if isinstance(base, types.Bool):
            return ast.BoolLiteral(at.pos, False, type=t)
        if isinstance(base, types.Error):
            no_error = self.ctx.program.errors.get("NoError")
            if no_error is not None:
                return ast.EnumRef(at.pos, no_error, type=t)
        elif isinstance(base, types.Enum):
            if base.underlying is None:
                return ast.EnumRef(at.pos, base.decl.members[0], type=t)
            zero = next((m for m in base.decl.members if m.value == 0), None)
            if zero is not None:
                return ast.EnumRef(at.pos, zero, type=t)
            return ast.Cast(at.pos, None, ast.IntLiteral(at.pos, 0, type=base.underlying), type=t)
        elif isinstance(base, (types.Header, types.Union)):
            return ast.InvalidHeader(at.pos, type=t)
        elif isinstance(base, types.Struct):
            fields = [ast.NamedExpr(at.pos, f.name, self.default_value(at, f.type)) for f in base.fields]
            return ast.StructExpr(at.pos, None, fields, type=t)
        elif isinstance(base, types.Tuple):
            return ast.ListExpr(at.pos, [self.default_value(at, x) for x in base.elements], type=t)
        elif isinstance(base, types.Stack):
            return ast.ListExpr(at.pos, [self.default_value(at, base.element) for _ in range(base.size)], type=t)
        if not isinstance(base, types.Unknown):
            self.ctx.error(at, f"there is no default value of type {t}")
        return ast.DefaultInit(at.pos, type=types.UNKNOWN)

    def cast(self, node: ast.Cast, target: Type) -> ast.Expr:
        """`(target) operand`, the operand checked."""
        e = node.operand
        t = e.type
        node.type = target
        if isinstance(t, types.Unknown) or isinstance(target, types.Unknown):
            node.type = types.UNKNOWN
            return node
        if isinstance(e, (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)) and isinstance(
            target, (types.Record, types.Tuple, types.Stack, types.List)
        ):
            return self.convert(e, target)
        if t == target:
            return e
        if not self._castable(e, t, target):
            self.ctx.error(node, f"{describe(e)} cannot be cast to {target}")
            node.type = types.UNKNOWN
            return node
        return self.fold_cast(node)

    def _castable(self, e: ast.Expr, t: Type, target: Type) -> bool:
        if t == target:
            return True
        if isinstance(target, types.NewType) or isinstance(t, types.NewType):
            inner, wanted = types.strip_newtype(t), types.strip_newtype(target)
            return inner == wanted or (isinstance(e, ast.IntLiteral) and isinstance(t, types.InfInt))
        if isinstance(t, types.Enum) and t.underlying is not None:
            return self._castable(e, t.underlying, target)
        if isinstance(target, types.Enum) and target.underlying is not None:
            return t == target.underlying or isinstance(t, types.InfInt)
        if isinstance(t, types.Bits):
            if isinstance(target, types.Bits):
                return t.signed == target.signed or t.width == target.width
            if isinstance(target, types.Bool):
                return t == types.Bits(1)
            return isinstance(target, types.InfInt)
        if isinstance(t, types.InfInt):
            if isinstance(target, types.Bool):
                return isinstance(e, ast.IntLiteral) and e.value in (0, 1)
            return isinstance(target, types.Bits)
        if isinstance(t, types.Bool):
            return target == types.Bits(1)
        return False

    def fold_cast(self, node: ast.Cast) -> ast.Expr:
        """The literal that an allowed cast gives, if its operand is one; else the cast."""
        e, target = node.operand, types.strip_newtype(node.type)
        if isinstance(e, ast.EnumRef) and isinstance(target, types.Bits):
            e = ast.IntLiteral(node.pos, e.decl.value, type=node.type)
        if isinstance(e, ast.BoolLiteral):
            if isinstance(target, types.Bool):
                return ast.BoolLiteral(node.pos, e.value, type=node.type)
            return ast.IntLiteral(node.pos, int(e.value), type=node.type)
        if not isinstance(e, ast.IntLiteral):
            if isinstance(e.type, types.InfInt) and isinstance(target, types.Bits):
                node.operand = self.sized(e, target)
            return node
        if isinstance(target, types.Bool):
            return ast.BoolLiteral(node.pos, bool(e.value), type=node.type)
        if isinstance(target, types.Enum):
            assert target.underlying is not None
            if isinstance(e.type, types.InfInt):
                node.operand = e = self.literal_as(e, target.underlying)
            member = next((m for m in target.decl.members if m.value == e.value), None)
            return node if member is None else ast.EnumRef(node.pos, member, type=node.type)
        if isinstance(target, types.Bits):
            literal = self.literal_as(e, target) if isinstance(e.type, types.InfInt) else e
            value = wrap(literal.value, target)
        else:
            value = e.value
        return ast.IntLiteral(node.pos, value, e.base, type=node.type)


def describe(e: ast.Expr) -> str:
    """What `e` is, for a message."""
    if isinstance(e, ast.IntLiteral) and isinstance(e.type, types.InfInt):
        return f"int {e.value}" if e.value.bit_length() < 200 else "int"
    if isinstance(e, ast.ListExpr):
        return "a list of values"
    if isinstance(e, ast.StructExpr) and isinstance(e.type, types.AnonRecord):
        return "a list of named values"
    if isinstance(e, ast.InvalidHeader) and isinstance(e.type, types.AnonRecord):
        return "an invalid header"
    if isinstance(e, ast.DefaultInit):
        return "'...'"
    return str(e.type)
