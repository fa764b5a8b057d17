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
"""Maximum number of fields and elements that `...` may stand for."""


class Conversions:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types
        self.typed = ctx.facts.typed
        self.values = ctx.facts.values

    def convert(self, e: ast.Expr, target: Type, what: str = "") -> ast.Expr:
        """Return `e`, checked and implicitly converted to type `target`; report it if that is impossible.

        `what` names in the message what requires the type.
        """
        if self.types[e] == target and not isinstance(e, (ast.ListExpr, ast.StructExpr)):
            return e
        if isinstance(self.types[e], types.Unknown) or isinstance(target, types.Unknown):
            return e
        result = self._converted(e, target)
        if result is not None:
            return result
        self.ctx.error(e, f"expected {target}{' for ' + what if what else ''}, not {self.ctx.describe(e)}")
        self.types[e] = types.UNKNOWN
        return e

    def _converted(self, e: ast.Expr, target: Type) -> ast.Expr | None:
        t = self.types[e]
        if isinstance(e, ast.DefaultInit):
            return self.default_value(e, target)
        if isinstance(e, ast.ListExpr):
            return self._convert_list(e, target)
        if isinstance(e, ast.StructExpr):
            return self._convert_struct(e, target)
        if isinstance(e, ast.InvalidHeader) and isinstance(t, types.AnonRecord):
            if isinstance(target, (types.Header, types.Union)):
                self.types[e] = target
                return e
            return None
        if isinstance(t, types.InfInt) and isinstance(target, types.Bits):
            return self.sized(e, target)
        if isinstance(t, types.InfInt) and isinstance(target, types.NewType) and isinstance(e, ast.IntLiteral):
            # The specification requires a cast; p4c accepts the literal, and programs in the field rely on that.
            bits = isinstance(types.strip_newtype(target), types.Bits)
            return self.fold_cast(self.typed(ast.Cast(e.pos, None, e, True), target)) if bits else None
        if isinstance(e, ast.IntLiteral) and isinstance(t, types.Bits) and isinstance(target, types.InfInt):
            return self._retyped(e, e.value, target)
        if isinstance(t, types.Enum) and t.underlying is not None and t.underlying == target:
            return self.fold_cast(self.typed(ast.Cast(e.pos, None, e, True), target))
        if isinstance(e, ast.Conditional) and isinstance(t, (types.Tuple, types.AnonRecord, types.InfInt)):
            e.then = self.convert(e.then, target)
            e.otherwise = self.convert(e.otherwise, target)
            self.types[e] = target
            return e
        return e if t == target else None

    def literal_as(self, e: ast.IntLiteral, t: types.Bits) -> ast.IntLiteral:
        """Return a literal of type `int` as one of type `t`; warn if bits are lost."""
        value = e.value
        if not fits(value, t):
            wrapped = wrap(value, t)
            # Negative numbers for unsigned types, and masks for signed ones, are meant as bit patterns.
            if value >= 1 << t.width or value < -(1 << max(t.width - 1, 0)):
                self.ctx.warn(e, f"{value} does not fit in {t}: it becomes {wrapped}")
            value = wrapped
        return self._retyped(e, value, t)

    def _retyped(self, e: ast.IntLiteral, value: int, t: Type) -> ast.IntLiteral:
        return self.typed(ast.IntLiteral(e.pos, value, e.base), t)

    def sized(self, e: ast.Expr, t: types.Bits) -> ast.Expr:
        """Return an expression of type `int` as one of type `t`, modulo 2**width.

        A value that is known only at run time, as in `(bit<8>)((int)x + 1)`, is computed in `t` throughout.
        """
        if isinstance(e, ast.IntLiteral):
            return self.literal_as(e, t)
        given = self.types[e.operand] if isinstance(e, ast.Cast) else types.UNKNOWN
        if isinstance(e, ast.Cast) and isinstance(given, types.Bits):
            if given == t:
                return e.operand
            if given.signed != t.signed and given.width != t.width:
                middle = types.Bits(t.width, given.signed)
                e = self.typed(ast.Cast(e.pos, None, e.operand, True), middle)
                return self.typed(ast.Cast(e.pos, None, e, True), t)
            return self.typed(ast.Cast(e.pos, None, e.operand, True), t)
        if isinstance(e, ast.Binary) and e.op in ("+", "-", "*", "&", "|", "^"):
            return self.typed(ast.Binary(e.pos, e.op, self.sized(e.left, t), self.sized(e.right, t)), t)
        if isinstance(e, ast.Unary):
            return self.typed(ast.Unary(e.pos, e.op, self.sized(e.operand, t)), t)
        return self.typed(ast.Cast(e.pos, None, e, True), t)

    def _convert_list(self, e: ast.ListExpr, target: Type) -> ast.Expr | None:
        if isinstance(target, types.NewType):
            return None
        if isinstance(self.types[e], (types.List, types.Stack)):  # converted before
            return e if self.types[e] == target else None
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
            self.types[e] = types.UNKNOWN
            return e
        items = [self.convert(item, t) for item, t in zip(e.items, wanted, strict=False)]
        items += [self.default_value(e, t) for t in wanted[len(items) :]]
        if isinstance(target, (types.Struct, types.Header)):
            pairs = zip(target.fields, items, strict=True)
            fields = [ast.NamedExpr(item.pos, f.name, item) for f, item in pairs]
            return self.typed(ast.StructExpr(e.pos, None, fields), target)
        return self.typed(ast.ListExpr(e.pos, items), target)

    def _convert_struct(self, e: ast.StructExpr, target: Type) -> ast.Expr | None:
        if not isinstance(self.types[e], types.AnonRecord):
            return e if self.types[e] == target else None
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
        return self.typed(ast.StructExpr(e.pos, None, fields), target)

    def default_value(self, at: ast.Node, t: Type) -> ast.Expr:
        """Return the default value of type `t` (specification, section 7.3); report if it has none."""
        base = types.strip_newtype(t)
        if self.ctx.written_types.parts(base) > MAX_DEFAULTS:
            self.ctx.error(at, f"'...' cannot stand for more than {MAX_DEFAULTS} values")
            return self.typed(ast.DefaultInit(at.pos), types.UNKNOWN)
        if isinstance(base, (types.Bits, types.InfInt)):
            return self.typed(ast.IntLiteral(at.pos, 0), t)
        if isinstance(base, types.Bool):
            return self.typed(ast.BoolLiteral(at.pos, False), t)
        if isinstance(base, types.Error):
            no_error = self.ctx.program.errors.get("NoError")
            if no_error is not None:
                return self.typed(ast.EnumRef(at.pos, no_error), t)
        elif isinstance(base, types.Enum):
            if base.underlying is None:
                return self.typed(ast.EnumRef(at.pos, base.decl.members[0]), t)
            zero = next((m for m in base.decl.members if self.values[m] == 0), None)
            if zero is not None:
                return self.typed(ast.EnumRef(at.pos, zero), t)
            return self.typed(ast.Cast(at.pos, None, self.typed(ast.IntLiteral(at.pos, 0), base.underlying)), t)
        elif isinstance(base, (types.Header, types.Union)):
            return self.typed(ast.InvalidHeader(at.pos), t)
        elif isinstance(base, types.Struct):
            fields = [ast.NamedExpr(at.pos, f.name, self.default_value(at, f.type)) for f in base.fields]
            return self.typed(ast.StructExpr(at.pos, None, fields), t)
        elif isinstance(base, types.Tuple):
            return self.typed(ast.ListExpr(at.pos, [self.default_value(at, x) for x in base.elements]), t)
        elif isinstance(base, types.Stack):
            return self.typed(ast.ListExpr(at.pos, [self.default_value(at, base.element) for _ in range(base.size)]), t)
        if not isinstance(base, types.Unknown):
            self.ctx.error(at, f"there is no default value of type {t}")
        return self.typed(ast.DefaultInit(at.pos), types.UNKNOWN)

    def cast(self, node: ast.Cast, target: Type) -> ast.Expr:
        """Return `(target) operand`, where the operand is already checked."""
        e = node.operand
        t = self.types[e]
        self.types[node] = target
        if isinstance(t, types.Unknown) or isinstance(target, types.Unknown):
            self.types[node] = types.UNKNOWN
            return node
        if isinstance(e, (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)) and isinstance(
            target, (types.Record, types.Tuple, types.Stack, types.List)
        ):
            return self.convert(e, target)
        if t == target:
            return e
        if not self._castable(e, t, target):
            self.ctx.error(node, f"{self.ctx.describe(e)} cannot be cast to {target}")
            self.types[node] = types.UNKNOWN
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
        """Return the literal result of an allowed cast if its operand is a literal; else the cast."""
        e, target = node.operand, types.strip_newtype(self.types[node])
        if isinstance(e, ast.EnumRef) and isinstance(target, types.Bits):
            e = self.typed(ast.IntLiteral(node.pos, self.values[e.decl]), self.types[node])
        if isinstance(e, ast.BoolLiteral):
            if isinstance(target, types.Bool):
                return self.typed(ast.BoolLiteral(node.pos, e.value), self.types[node])
            return self.typed(ast.IntLiteral(node.pos, int(e.value)), self.types[node])
        if not isinstance(e, ast.IntLiteral):
            if isinstance(self.types[e], types.InfInt) and isinstance(target, types.Bits):
                node.operand = self.sized(e, target)
            return node
        if isinstance(target, types.Bool):
            return self.typed(ast.BoolLiteral(node.pos, bool(e.value)), self.types[node])
        if isinstance(target, types.Enum):
            assert target.underlying is not None
            if isinstance(self.types[e], types.InfInt):
                node.operand = e = self.literal_as(e, target.underlying)
            member = next((m for m in target.decl.members if self.values[m] == e.value), None)
            return node if member is None else self.typed(ast.EnumRef(node.pos, member), self.types[node])
        if isinstance(target, types.Bits):
            literal = self.literal_as(e, target) if isinstance(self.types[e], types.InfInt) else e
            value = wrap(literal.value, target)
        else:
            value = e.value
        return self.typed(ast.IntLiteral(node.pos, value, e.base), self.types[node])
