"""Types and values of expressions (language specification, section 8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from p4switch.bits.domain import wrap
from p4switch.bits.integers import INTEGERS
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.semantics.inference import Inference
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.values import LITERALS
from p4switch.compiler.superseded import instead
from p4switch.compiler.types import Type

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

_CALLABLE = (ast.ActionDecl, ast.FunctionDecl, ast.ExternFunctionDecl)


class Expressions:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types
        self.typed = ctx.facts.typed
        self.decls = ctx.facts.decls
        self.fields = ctx.facts.fields
        self._checks: dict[type[ast.Expr], Callable[..., ast.Expr]] = {
            ast.IntLiteral: self._integer,
            ast.BoolLiteral: lambda e: self.typed(e, types.BOOL),
            ast.StringLiteral: lambda e: self.typed(e, types.STRING),
            ast.Name: self._name,
            ast.TypeName: self._type_name,
            ast.This: self._this,
            ast.Member: self._member,
            ast.Index: self._index,
            ast.Slice: self._slice,
            ast.Unary: self.ctx.operators.unary,
            ast.Binary: self.ctx.operators.binary,
            ast.Conditional: self.ctx.operators.conditional,
            ast.Cast: self._cast,
            ast.ListExpr: self._list,
            ast.StructExpr: self._struct,
            ast.InvalidHeader: lambda e: self.typed(e, types.AnonRecord((), ())),
            ast.DefaultInit: lambda e: self.typed(e, types.AnonRecord((), ())),
        }

    def expr(self, e: ast.Expr, expected: Type | None = None) -> ast.Expr:
        """Check an expression that has a value, and return its checked form.

        `expected` helps to infer type arguments.
        """
        e = self.any_expr(e, expected)
        t = self.types[e]
        if isinstance(t, types.Meta):
            self.ctx.error(e, f"{t} is not a value")
            self.types[e] = types.UNKNOWN
        elif isinstance(t, types.Callable):
            self.ctx.error(e, f"{t.decl.name!r} must be called")
            self.types[e] = types.UNKNOWN
        return e

    def any_expr(self, e: ast.Expr, expected: Type | None = None) -> ast.Expr:
        """Check an expression that may also be the name of a type or something to call."""
        if isinstance(e, ast.Call):
            return self.ctx.calls.call(e, expected)
        check = self._checks.get(type(e))
        if check is None:
            self.ctx.error(e, "this cannot be part of an expression")
            return e
        return check(e)

    def boolean(self, e: ast.Expr, what: str) -> ast.Expr:
        e = self.expr(e)
        if isinstance(e, ast.DefaultInit):
            self.ctx.error(e, f"'...' cannot be used for {what}")
            self.types[e] = types.UNKNOWN
        return self.ctx.conversions.convert(e, types.BOOL, what)

    def _integer(self, e: ast.IntLiteral) -> ast.Expr:
        t = e.prefix
        if t is None:
            return e if e in self.types else self.typed(e, types.INT)
        if t.width == 0 and e.value == 0 and not t.signed:
            return self.typed(e, t)
        if not 0 < t.width <= 2048:
            self.ctx.error(e, f"the width of a number must be 1 to 2048, not {t.width}")
            return self.typed(e, types.UNKNOWN)
        value = wrap(e.value, t)
        if value != e.value:
            self.ctx.warn(e, f"{e.value} does not fit in {t}: it becomes {value}")
        return self.typed(ast.IntLiteral(e.pos, value, e.base), t)

    def _name(self, e: ast.Name) -> ast.Expr:
        found = self.ctx.names.decls[e]
        if not found:
            self.ctx.unknown_name(e, e.name)
            return e
        decl = self.decls[e] = found[0]
        if isinstance(decl, ast.MatchKindMember):
            return self.typed(e, types.MATCH_KIND)
        if isinstance(decl, ast.EnumMember):
            assert decl.decl is not None
            return self.typed(ast.EnumRef(e.pos, decl), self.types[decl.decl])
        if isinstance(decl, (ast.TypeDeclaration, ast.TypeParam)):
            t = self.types[decl] if isinstance(decl, ast.TypeDeclaration) else types.TypeVar(decl)
            written = self.ctx.names.share(e, self.typed(ast.NamedTypeExpr(e.pos, e.name, [], e.absolute), t))
            return self.typed(ast.TypeName(e.pos, written), types.Meta(t))
        if isinstance(decl, ast.ConstDecl):
            self.types[e] = self.types[decl]
            return self._copy_literal(decl.init, e)
        if isinstance(decl, (ast.VarDecl, ast.Parameter, ast.Instantiation)):
            self.types[e] = self.types[decl]
        elif isinstance(decl, ast.TableDecl):
            self.types[e] = types.Table(decl)
        elif isinstance(decl, ast.ValueSetDecl):
            self.types[e] = types.Set(self.types[decl])
        elif isinstance(decl, _CALLABLE):
            self.types[e] = types.Callable(decl)
        return e

    def _copy_literal(self, value: ast.Expr, at: ast.Expr) -> ast.Expr:
        """Return a copy of the literal `value` at the position of `at`, or `at` itself if `value` is not a literal."""
        if not isinstance(value, LITERALS):
            return at
        result = copy.copy(value)
        result.pos = at.pos
        return self.typed(result, self.types[value])

    def _constant(self, e: ast.Expr) -> ast.Expr:
        """Return the value of the constant that `e` names, or `e` itself if it does not name one."""
        decl = self.decls[e] if isinstance(e, ast.Name) else None
        return decl.init if isinstance(decl, ast.ConstDecl) else e

    def _type_name(self, e: ast.TypeName) -> ast.Expr:
        self.types[e] = types.Meta(self.ctx.written_types.resolve(e.type_expr, infer=True))
        return e

    def _this(self, e: ast.This) -> ast.Expr:
        for instance in self.ctx.names.decls[e]:
            self.decls[e] = instance
            return self.typed(e, self.types[instance])
        self.ctx.error(e, "'this' can only be used in the methods of an instance")
        return e

    def _list(self, e: ast.ListExpr) -> ast.Expr:
        e.items = [self.expr(i) for i in e.items]
        if any(isinstance(self.types[i], types.Unknown) for i in e.items):
            return e
        for item in e.items:
            if isinstance(self.types[item], (types.Table, types.Void, types.ApplyResult)):
                self.ctx.error(item, f"{self.types[item]} cannot be in a list")
        self.types[e] = types.Tuple(tuple(self.types[i] for i in e.items))
        return e

    def _struct(self, e: ast.StructExpr) -> ast.Expr:
        seen: set[str] = set()
        for f in e.fields:
            f.value = self.expr(f.value)
            if f.name in seen:
                self.ctx.error(f, f"field {f.name!r} has two values")
            seen.add(f.name)
        if any(isinstance(self.types[f.value], types.Unknown) for f in e.fields):
            return e
        self.types[e] = types.AnonRecord(tuple(f.name for f in e.fields), tuple(self.types[f.value] for f in e.fields))
        return e

    def _member(self, e: ast.Member) -> ast.Expr:
        e.base = self.any_expr(e.base)
        t = self.types[e.base]
        if isinstance(t, types.Meta):
            return self._static_member(e, t.type)
        if isinstance(t, types.Record):
            field = t.find(e.name)
            if field is not None:
                self.fields[e], self.types[e] = field, field.type
                return self._fold_member(e)
        elif isinstance(t, types.Stack):
            return self._stack_member(e, t)
        elif isinstance(t, types.ApplyResult):
            if e.name in ("hit", "miss"):
                return self.typed(e, types.BOOL)
            if e.name == "action_run":
                return self.typed(e, types.ActionRun(t.decl))
        elif isinstance(t, types.AnonRecord) and e.name in t.names:
            self.types[e] = t.types[t.names.index(e.name)]
            return e
        if not isinstance(t, types.Unknown):
            callable_base = isinstance(t, types.Callable)
            shown = f"{t.decl.name!r}" if isinstance(t, types.Callable) else str(t)
            hint = instead(f"{t}.{e.name}", self.ctx.program.architecture) or did_you_mean(e.name, _members(t))
            self.ctx.error(e, f"{shown} has no {'members' if callable_base else f'member {e.name!r}{hint}'}")
        return e

    def _static_member(self, e: ast.Member, t: Type) -> ast.Expr:
        members: Mapping[str, ast.EnumMember] = {}
        if isinstance(t, types.Enum):
            members = {m.name: m for m in t.decl.members}
        elif isinstance(t, types.Error):
            members = self.ctx.program.errors
        member = members.get(e.name)
        if member is not None:
            return self.typed(ast.EnumRef(e.pos, member), t)
        if not isinstance(t, types.Unknown):
            self.ctx.error(e, f"{t} has no member {e.name!r}{did_you_mean(e.name, members)}")
        return e

    def _fold_member(self, e: ast.Member) -> ast.Expr:
        """Return a field of a constant."""
        base = self._constant(e.base)
        if isinstance(base, ast.StructExpr):
            value = next((f.value for f in base.fields if f.name == e.name), None)
            if isinstance(value, LITERALS):
                return self._copy_literal(value, e)
        return e

    def _stack_member(self, e: ast.Member, t: types.Stack) -> ast.Expr:
        headers = isinstance(t.element, (types.Header, types.Union, types.TypeVar))
        if e.name == "size":
            return self.typed(ast.IntLiteral(e.pos, t.size), types.Bits(32))
        if headers and e.name in ("next", "last", "lastIndex"):
            if self.ctx.place != Place.PARSER:
                self.ctx.error(
                    e, f"{e.name!r} of a header stack can only be used in a parser, not in {self.ctx.place.value}"
                )
            return self.typed(e, types.Bits(32) if e.name == "lastIndex" else t.element)
        self.ctx.error(e, f"{t} has no member {e.name!r}")
        return e

    def _index(self, e: ast.Index) -> ast.Expr:
        e.base = self.expr(e.base)
        e.index = self.expr(e.index)
        t = self.types[e.base]
        if isinstance(t, types.Tuple):
            return self._tuple_index(e, t)
        if isinstance(t, types.Stack):
            index = self.ctx.operators.as_bits(e.index)
            e.index = index
            if not isinstance(self.types[index], (types.Bits, types.InfInt, types.Unknown)):
                self.ctx.error(index, f"the index of a stack must be a number, not {self.ctx.describe(index)}")
            elif isinstance(index, ast.IntLiteral) and not 0 <= index.value < t.size:
                self.ctx.error(index, f"index {index.value} is out of range: the size is {t.size}")
            return self.typed(e, t.element)
        if not isinstance(t, types.Unknown):
            self.ctx.error(e, f"{self.ctx.describe(e.base)} cannot be indexed")
        return e

    def _tuple_index(self, e: ast.Index, t: types.Tuple) -> ast.Expr:
        if not isinstance(e.index, ast.IntLiteral):
            self.ctx.error(e.index, "the index of a tuple must be an integer known at compile time")
            return e
        if not 0 <= e.index.value < len(t.elements):
            self.ctx.error(e.index, f"index {e.index.value} is out of range: {t} has {len(t.elements)} elements")
            return e
        self.types[e] = t.elements[e.index.value]
        base = self._constant(e.base)
        if isinstance(base, ast.ListExpr) and e.index.value < len(base.items):  # else it has a '...' there
            return self._copy_literal(base.items[e.index.value], e)
        return e

    def _slice(self, e: ast.Slice) -> ast.Expr:
        e.base = self.ctx.operators.as_bits(self.expr(e.base))
        return self._slice_by_bounds(e) if e.width is None else self._slice_by_width(e)

    def _slice_by_bounds(self, e: ast.Slice) -> ast.Expr:
        t = self.types[e.base]
        e.high, high = self.ctx.written_types.constant_int(e.high, "the bounds of a slice")
        e.low, low = self.ctx.written_types.constant_int(e.low, "the bounds of a slice")
        if isinstance(t, types.Unknown) or high is None or low is None:
            return e
        if not isinstance(t, types.Bits):
            self.ctx.error(e, f"{self.ctx.describe(e.base)} cannot be sliced: only bit<> and int<> can")
            return e
        if not 0 <= low <= high < t.width:
            self.ctx.error(e, f"slice [{high}:{low}] is out of order or range: {t} has bits [{t.width - 1}:0]")
            return e
        self.types[e] = types.Bits(high - low + 1)
        if isinstance(e.base, ast.IntLiteral):
            return self.typed(ast.IntLiteral(e.pos, INTEGERS.extract(e.base.value, high, low)), self.types[e])
        return e

    def _slice_by_width(self, e: ast.Slice) -> ast.Expr:
        """Return `base[low+:width]`; with a `low` known only at run time it becomes a shift."""
        assert e.width is not None
        e.width, width = self.ctx.written_types.constant_int(e.width, "the width of a slice")
        low = self.ctx.operators.as_bits(self.expr(e.low))
        t = self.types[e.base]
        if isinstance(t, types.Unknown) or isinstance(self.types[low], types.Unknown) or width is None:
            return e
        if not isinstance(t, types.Bits):
            self.ctx.error(e, f"{self.ctx.describe(e.base)} cannot be sliced: only bit<> and int<> can")
            return e
        if isinstance(low, ast.IntLiteral):
            high = self.typed(ast.IntLiteral(low.pos, low.value + width - 1), types.INT)
            return self._slice_by_bounds(ast.Slice(e.pos, e.base, high, low))
        amount = self.types[low]
        if not isinstance(amount, types.Bits) or amount.signed:
            self.ctx.error(low, f"the start of a slice must be a bit<>, not {self.ctx.describe(low)}")
            return e
        if not 0 < width <= t.width:
            self.ctx.error(e.width, f"the width of a slice of {t} must be 1 to {t.width}, not {width}")
            return e
        unsigned = types.Bits(t.width)
        base = self.typed(ast.Cast(e.pos, None, e.base, True), unsigned) if t.signed else e.base
        shifted = self.typed(ast.Binary(e.pos, ">>", base, low), unsigned)
        return self.typed(ast.Cast(e.pos, None, shifted, True), types.Bits(width))

    def _cast(self, e: ast.Cast) -> ast.Expr:
        assert e.type_expr is not None
        target = self.ctx.written_types.resolve(e.type_expr, infer=True)
        operand = self.expr(e.operand, target)
        if isinstance(target, types.Record) and target.args and isinstance(e.type_expr, ast.NamedTypeExpr):
            target = self._infer_cast(e.type_expr, target, operand)
        e.operand = operand
        return self.ctx.conversions.cast(e, target)

    def _infer_cast(self, written: ast.NamedTypeExpr, target: types.Record, operand: ast.Expr) -> Type:
        """Infer the type of `(S){...}` for a generic S without type arguments."""
        if written.args:
            return target
        inference = Inference(target.decl.type_params, self.types)
        if inference.unify(target, self.types[operand]) and not inference.missing():
            return inference.apply(target)
        self.ctx.error(written, f"the type arguments of {target.decl.name!r} cannot be inferred here: write them")
        return types.UNKNOWN


def _members(t: Type) -> Iterable[str]:
    """Return the names that can follow the dot of a value of this type."""
    if isinstance(t, types.Record):
        return [f.name for f in t.fields]
    if isinstance(t, types.AnonRecord):
        return t.names
    return ("hit", "miss", "action_run") if isinstance(t, types.ApplyResult) else ()
