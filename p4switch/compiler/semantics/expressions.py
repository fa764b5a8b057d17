"""Types and values of expressions (language specification, section 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from p4switch.bits.domain import wrap
from p4switch.bits.integers import INTEGERS
from p4switch.compiler import ast, types
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.semantics.calls import Calls
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.inference import Inference
from p4switch.compiler.semantics.operators import Operators
from p4switch.compiler.semantics.places import Place
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import WrittenTypes
from p4switch.compiler.superseded import instead
from p4switch.compiler.types import Type

_CALLABLE = (ast.ActionDecl, ast.FunctionDecl, ast.ExternFunctionDecl)


class Expressions:
    def __init__(
        self,
        ctx: Checking,
        calls: Calls,
        conversions: Conversions,
        operators: Operators,
        values: Values,
        written_types: WrittenTypes,
    ) -> None:
        self.ctx = ctx
        self.calls = calls
        self.conversions = conversions
        self.operators = operators
        self.values = values
        self.written_types = written_types
        self.facts = ctx.facts
        self.types = ctx.facts.types
        self.decls = ctx.facts.decls
        self._checks: dict[type[ast.Expr], Callable[..., Type]] = {
            ast.IntLiteral: self._integer,
            ast.BoolLiteral: lambda e: self.facts.constant(e, e.value, types.BOOL),
            ast.StringLiteral: lambda e: self.facts.constant(e, e.value, types.STRING),
            ast.Name: self._name,
            ast.TypeName: self._type_name,
            ast.This: self._this,
            ast.Member: self._member,
            ast.Index: self._index,
            ast.Slice: self._slice,
            ast.WidthSlice: self._width_slice,
            ast.Unary: self.operators.unary,
            ast.Binary: self.operators.binary,
            ast.Conditional: self.operators.conditional,
            ast.Cast: self._cast,
            ast.ListExpr: self._list,
            ast.StructExpr: self._struct,
            ast.InvalidHeader: lambda e: self.facts.type(e, types.AnonRecord((), ())),
            ast.DefaultInit: lambda e: self.facts.type(e, types.AnonRecord((), ())),
        }

    def expr(self, e: ast.Expr, expected: Type | None = None) -> Type:
        """Check an expression that has a value, and return its type.

        `expected` helps to infer type arguments.
        """
        t = self.any_expr(e, expected)
        if isinstance(t, types.Meta):
            self.ctx.error(e, f"{t} is not a value")
        elif isinstance(t, types.Callable):
            self.ctx.error(e, f"{t.decl.name!r} must be called")
        else:
            return t
        return self.facts.type(e, types.UNKNOWN)

    def any_expr(self, e: ast.Expr, expected: Type | None = None) -> Type:
        """Check an expression that may also be the name of a type or something to call."""
        if isinstance(e, ast.Call):
            return self.calls.call(e, expected)
        check = self._checks.get(type(e))
        if check is None:
            self.ctx.error(e, "this cannot be part of an expression")
            return types.UNKNOWN
        return check(e)

    def boolean(self, e: ast.Expr, what: str) -> Type:
        self.expr(e)
        if isinstance(e, ast.DefaultInit):
            self.ctx.error(e, f"'...' cannot be used for {what}")
            self.types[e] = types.UNKNOWN
        return self.conversions.convert(e, types.BOOL, what)

    def _integer(self, e: ast.IntLiteral) -> Type:
        t = e.prefix
        if t is None:
            return self.facts.constant(e, e.value, types.INT)
        if t.width == 0 and e.value == 0 and not t.signed:
            return self.facts.constant(e, 0, t)
        if not 0 < t.width <= 2048:
            self.ctx.error(e, f"the width of a number must be 1 to 2048, not {t.width}")
            return types.UNKNOWN
        value = wrap(e.value, t)
        if value != e.value:
            self.ctx.warn(e, f"{e.value} does not fit in {t}: it becomes {value}")
        return self.facts.constant(e, value, t)

    def _name(self, e: ast.Name) -> Type:
        declarations = self.ctx.names.decls[e]
        if not declarations:
            self.ctx.unknown_name(e, e.name)
            return types.UNKNOWN
        decl = self.decls[e] = declarations[0]
        if isinstance(decl, ast.MatchKindMember):
            return self.facts.type(e, types.MATCH_KIND)
        if isinstance(decl, ast.EnumMember):
            assert decl.decl is not None
            return self.facts.constant(e, decl, self.types[decl.decl])
        if isinstance(decl, ast.TypeDeclaration):
            return self.facts.type(e, types.Meta(self.types[decl]))
        if isinstance(decl, ast.TypeParam):
            return self.facts.type(e, types.Meta(types.TypeVar(decl)))
        if isinstance(decl, ast.ConstDecl):
            known = decl.init in self.facts.constants
            return self.facts.same(e, decl.init) if known else self.facts.type(e, self.types[decl])
        if isinstance(decl, (ast.VarDecl, ast.Parameter, ast.Instantiation)):
            return self.facts.type(e, self.types[decl])
        if isinstance(decl, ast.TableDecl):
            return self.facts.type(e, types.Table(decl))
        if isinstance(decl, ast.ValueSetDecl):
            return self.facts.type(e, types.Set(self.types[decl]))
        if isinstance(decl, _CALLABLE):
            return self.facts.type(e, types.Callable(decl))
        return types.UNKNOWN

    def _type_name(self, e: ast.TypeName) -> Type:
        return self.facts.type(e, types.Meta(self.written_types.resolve(e.type_expr, infer=True)))

    def _this(self, e: ast.This) -> Type:
        for instance in self.ctx.names.decls[e]:
            self.decls[e] = instance
            return self.facts.type(e, self.types[instance])
        self.ctx.error(e, "'this' can only be used in the methods of an instance")
        return types.UNKNOWN

    def _list(self, e: ast.ListExpr) -> Type:
        items = tuple(self.expr(item) for item in e.items)
        if any(isinstance(t, types.Unknown) for t in items):
            return types.UNKNOWN
        for item, t in zip(e.items, items, strict=True):
            if isinstance(t, (types.Table, types.Void, types.ApplyResult)):
                self.ctx.error(item, f"{t} cannot be in a list")
        return self.facts.type(e, types.Tuple(items))

    def _struct(self, e: ast.StructExpr) -> Type:
        seen: set[str] = set()
        for f in e.fields:
            self.expr(f.value)
            if f.name in seen:
                self.ctx.error(f, f"field {f.name!r} has two values")
            seen.add(f.name)
        values = tuple(self.types[f.value] for f in e.fields)
        if any(isinstance(t, types.Unknown) for t in values):
            return types.UNKNOWN
        return self.facts.type(e, types.AnonRecord(tuple(f.name for f in e.fields), values))

    def _member(self, e: ast.Member) -> Type:
        t = self.any_expr(e.base)
        if isinstance(t, types.Meta):
            return self._static_member(e, t.type)
        if isinstance(t, types.Record):
            field = t.find(e.name)
            if field is not None:
                self.facts.fields[e] = field
                return self._part(e, e.name, field.type)
        elif isinstance(t, types.Stack):
            return self._stack_member(e, t)
        elif isinstance(t, types.ApplyResult):
            if e.name in ("hit", "miss"):
                return self.facts.type(e, types.BOOL)
            if e.name == "action_run":
                return self.facts.type(e, types.ActionRun(t.decl))
        elif isinstance(t, types.AnonRecord) and e.name in t.names:
            return self.facts.type(e, t.types[t.names.index(e.name)])
        if not isinstance(t, types.Unknown):
            callable_base = isinstance(t, types.Callable)
            shown = f"{t.decl.name!r}" if isinstance(t, types.Callable) else str(t)
            hint = instead(f"{t}.{e.name}", self.ctx.program.architecture) or did_you_mean(e.name, _members(t))
            self.ctx.error(e, f"{shown} has no {'members' if callable_base else f'member {e.name!r}{hint}'}")
        return types.UNKNOWN

    def _static_member(self, e: ast.Member, t: Type) -> Type:
        members: Mapping[str, ast.EnumMember] = {}
        if isinstance(t, types.Enum):
            members = {m.name: m for m in t.decl.members}
        elif isinstance(t, types.Error):
            members = self.ctx.program.errors
        member = members.get(e.name)
        if member is not None:
            return self.facts.constant(e, member, t)
        if not isinstance(t, types.Unknown):
            self.ctx.error(e, f"{t} has no member {e.name!r}{did_you_mean(e.name, members)}")
        return types.UNKNOWN

    def _part(self, e: ast.Member | ast.Index, part: str | int, t: Type) -> Type:
        """Record the type `t` of a field (by name) or an element (by index), and its value if it is constant."""
        value = self.values.part(e.base, part, t)
        return self.facts.type(e, t) if value is None else self.facts.constant(e, value, t)

    def _stack_member(self, e: ast.Member, t: types.Stack) -> Type:
        headers = isinstance(t.element, (types.Header, types.Union, types.TypeVar))
        if e.name == "size":
            return self.facts.constant(e, t.size, types.Bits(32))
        if headers and e.name in ("next", "last", "lastIndex"):
            if self.ctx.place != Place.PARSER:
                self.ctx.error(
                    e, f"{e.name!r} of a header stack can only be used in a parser, not in {self.ctx.place.value}"
                )
            return self.facts.type(e, types.Bits(32) if e.name == "lastIndex" else t.element)
        self.ctx.error(e, f"{t} has no member {e.name!r}")
        return types.UNKNOWN

    def _index(self, e: ast.Index) -> Type:
        t = self.expr(e.base)
        self.expr(e.index)
        if isinstance(t, types.Tuple):
            return self._tuple_index(e, t)
        if isinstance(t, types.Stack):
            given = self.conversions.as_bits(e.index)
            index = self.facts.integer(e.index)
            if not isinstance(given, (types.Bits, types.InfInt, types.Unknown)):
                self.ctx.error(e.index, f"the index of a stack must be a number, not {self.ctx.describe(e.index)}")
            elif index is not None and not 0 <= index < t.size:
                self.ctx.error(e.index, f"index {index} is out of range: the size is {t.size}")
            return self.facts.type(e, t.element)
        if not isinstance(t, types.Unknown):
            self.ctx.error(e, f"{self.ctx.describe(e.base)} cannot be indexed")
        return types.UNKNOWN

    def _tuple_index(self, e: ast.Index, t: types.Tuple) -> Type:
        index = self.facts.integer(e.index)
        if index is None:
            self.ctx.error(e.index, "the index of a tuple must be an integer known at compile time")
            return types.UNKNOWN
        if not 0 <= index < len(t.elements):
            self.ctx.error(e.index, f"index {index} is out of range: {t} has {len(t.elements)} elements")
            return types.UNKNOWN
        return self._part(e, index, t.elements[index])

    def _slice(self, e: ast.Slice) -> Type:
        self.expr(e.base)
        t = self.conversions.as_bits(e.base)
        high = self.written_types.constant_int(e.high, "the bounds of a slice")
        low = self.written_types.constant_int(e.low, "the bounds of a slice")
        return types.UNKNOWN if high is None or low is None else self._bits(e, t, high, low)

    def _bits(self, e: ast.Slice | ast.WidthSlice, t: Type, high: int, low: int) -> Type:
        """Check bits `high` to `low` of a value of type `t`."""
        if isinstance(t, types.Unknown):
            return types.UNKNOWN
        if not isinstance(t, types.Bits):
            self.ctx.error(e, f"{self.ctx.describe(e.base)} cannot be sliced: only bit<> and int<> can")
            return types.UNKNOWN
        if not 0 <= low <= high < t.width:
            self.ctx.error(e, f"slice [{high}:{low}] is out of order or range: {t} has bits [{t.width - 1}:0]")
            return types.UNKNOWN
        base, result = self.facts.integer(e.base), types.Bits(high - low + 1)
        if base is None:
            return self.facts.type(e, result)
        return self.facts.constant(e, INTEGERS.extract(base, high, low), result)

    def _width_slice(self, e: ast.WidthSlice) -> Type:
        """Check `base[low+:width]`, whose `low` may be known only at run time."""
        self.expr(e.base)
        t = self.conversions.as_bits(e.base)
        width = self.written_types.constant_int(e.width, "the width of a slice")
        self.expr(e.low)
        amount = self.conversions.as_bits(e.low)
        if isinstance(t, types.Unknown) or isinstance(amount, types.Unknown) or width is None:
            return types.UNKNOWN
        low = self.facts.integer(e.low)
        if low is not None or not isinstance(t, types.Bits):
            return self._bits(e, t, (low or 0) + width - 1, low or 0)
        if not isinstance(amount, types.Bits) or amount.signed:
            self.ctx.error(e.low, f"the start of a slice must be a bit<>, not {self.ctx.describe(e.low)}")
            return types.UNKNOWN
        if not 0 < width <= t.width:
            self.ctx.error(e.width, f"the width of a slice of {t} must be 1 to {t.width}, not {width}")
            return types.UNKNOWN
        return self.facts.type(e, types.Bits(width))

    def _cast(self, e: ast.Cast) -> Type:
        assert e.type_expr is not None
        target = self.written_types.resolve(e.type_expr, infer=True)
        given = self.expr(e.operand, target)
        if isinstance(target, types.Record) and target.args and isinstance(e.type_expr, ast.NamedTypeExpr):
            target = self._infer_cast(e.type_expr, target, given)
        return self.conversions.cast(e, target)

    def _infer_cast(self, written: ast.NamedTypeExpr, target: types.Record, given: Type) -> Type:
        """Infer the type of `(S){...}` for a generic S without type arguments."""
        if written.args:
            return target
        inference = Inference(target.decl.type_params, self.types)
        if inference.unify(target, given) and not inference.missing():
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
