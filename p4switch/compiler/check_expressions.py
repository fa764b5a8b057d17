"""Types and values of expressions (language specification, section 8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping

from p4switch.bits import operators
from p4switch.bits.domain import fits, wrap
from p4switch.bits.integers import INTEGERS
from p4switch.compiler import ast, constants, types
from p4switch.compiler.check_base import Place
from p4switch.compiler.check_convert import describe
from p4switch.compiler.check_types import is_object
from p4switch.compiler.check_values import LITERALS, ValueChecker
from p4switch.compiler.diagnostics import did_you_mean
from p4switch.compiler.superseded import STANDARD_METADATA, instead
from p4switch.compiler.types import Type

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_CALLABLE = (ast.ActionDecl, ast.FunctionDecl, ast.ExternFunctionDecl)
_INITIALISERS = (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)


class ExpressionChecker(ValueChecker):
    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._checks: dict[type[ast.Expr], Callable[..., ast.Expr]] = {
            ast.IntLiteral: self._integer,
            ast.BoolLiteral: lambda e: _typed(e, types.BOOL),
            ast.StringLiteral: lambda e: _typed(e, types.STRING),
            ast.Name: self._name,
            ast.TypeName: self._type_name,
            ast.This: self._this,
            ast.Member: self._member,
            ast.Index: self._index,
            ast.Slice: self._slice,
            ast.Unary: self._unary,
            ast.Binary: self._binary,
            ast.Conditional: self._conditional,
            ast.Cast: self._cast,
            ast.ListExpr: self._list,
            ast.StructExpr: self._struct,
            ast.InvalidHeader: lambda e: _typed(e, types.AnonRecord((), ())),
            ast.DefaultInit: lambda e: _typed(e, types.AnonRecord((), ())),
        }

    def call(self, e: ast.Call, expected: Type | None) -> ast.Expr:
        raise NotImplementedError

    def expr(self, e: ast.Expr, expected: Type | None = None) -> ast.Expr:
        """Check an expression that stands for a value; what it becomes. `expected` helps infer type arguments."""
        e = self.any_expr(e, expected)
        if isinstance(e.type, types.Meta):
            self.error(e, f"{e.type} is not a value")
            e.type = types.UNKNOWN
        elif isinstance(e.type, types.Callable):
            self.error(e, f"{e.type.decl.name!r} must be called")
            e.type = types.UNKNOWN
        return e

    def any_expr(self, e: ast.Expr, expected: Type | None = None) -> ast.Expr:
        """Check an expression that may also be a type's name, or something to call."""
        if isinstance(e, ast.Call):
            return self.call(e, expected)
        check = self._checks.get(type(e))
        if check is None:
            self.error(e, "this cannot be part of an expression")
            return e
        return check(e)

    def boolean(self, e: ast.Expr, what: str) -> ast.Expr:
        e = self.expr(e)
        if isinstance(e, ast.DefaultInit):
            self.error(e, f"'...' cannot be used for {what}")
            e.type = types.UNKNOWN
        return self.convert(e, types.BOOL, what)

    # Leaves

    def _integer(self, e: ast.IntLiteral) -> ast.Expr:
        if isinstance(e.type, types.Unknown):
            e.type = types.INT
        elif isinstance(e.type, types.Bits):
            if e.type.width == 0 and e.value == 0 and not e.type.signed:
                return e
            if not 0 < e.type.width <= 2048:
                self.error(e, f"the width of a number must be 1 to 2048, not {e.type.width}")
                e.type = types.UNKNOWN
            elif not fits(e.value, e.type):
                wrapped = wrap(e.value, e.type)
                self.warn(e, f"{e.value} does not fit in {e.type}: it becomes {wrapped}")
                e.value = wrapped
        return e

    def _name(self, e: ast.Name) -> ast.Expr:
        found = self.lookup(e.name, e.absolute)
        if not found:
            kind = self.program.match_kinds.get(e.name)
            if kind is None:
                self.unknown_name(e, e.name)
                return e
            e.decl = kind
            return _typed(e, types.MATCH_KIND)
        decl = e.decl = found[0]
        if isinstance(decl, ast.EnumMember):
            assert decl.decl is not None
            return ast.EnumRef(e.pos, decl, type=decl.decl.type)
        if isinstance(decl, (ast.TypeDeclaration, ast.TypeParam)):
            t = decl.type if isinstance(decl, ast.TypeDeclaration) else types.TypeVar(decl)
            written = ast.NamedTypeExpr(e.pos, e.name, [], e.absolute, type=t)
            return ast.TypeName(e.pos, written, type=types.Meta(t))
        if isinstance(decl, ast.ConstDecl):
            e.type = decl.type
            return self._copy_literal(decl.init, e)
        if isinstance(decl, (ast.VarDecl, ast.Parameter, ast.Instantiation)):
            e.type = decl.type
        elif isinstance(decl, ast.TableDecl):
            e.type = types.Table(decl)
        elif isinstance(decl, ast.ValueSetDecl):
            e.type = types.Set(decl.element)
        elif isinstance(decl, _CALLABLE):
            e.type = types.Callable(decl)
        return e

    def _copy_literal(self, value: ast.Expr, at: ast.Expr) -> ast.Expr:
        """A copy of the literal `value` in the place of `at`; `at` itself if `value` is none."""
        if not isinstance(value, LITERALS):
            return at
        result = copy.copy(value)
        result.pos = at.pos
        return result

    def _type_name(self, e: ast.TypeName) -> ast.Expr:
        e.type = types.Meta(self.resolve(e.type_expr, infer=True))
        return e

    def _this(self, e: ast.This) -> ast.Expr:
        found = self.lookup("this")
        if found and isinstance(found[0], ast.Instantiation):
            e.decl = found[0]
            e.type = e.decl.type
        else:
            self.error(e, "'this' can only be used in the methods of an instance")
        return e

    def _list(self, e: ast.ListExpr) -> ast.Expr:
        e.items = [self.expr(i) for i in e.items]
        if any(isinstance(i.type, types.Unknown) for i in e.items):
            return e
        for item in e.items:
            if isinstance(item.type, (types.Table, types.Void, types.ApplyResult)):
                self.error(item, f"{item.type} cannot be in a list")
        e.type = types.Tuple(tuple(i.type for i in e.items))
        return e

    def _struct(self, e: ast.StructExpr) -> ast.Expr:
        seen: set[str] = set()
        for f in e.fields:
            f.value = self.expr(f.value)
            if f.name in seen:
                self.error(f, f"field {f.name!r} has two values")
            seen.add(f.name)
        if any(isinstance(f.value.type, types.Unknown) for f in e.fields):
            return e
        e.type = types.AnonRecord(tuple(f.name for f in e.fields), tuple(f.value.type for f in e.fields))
        return e

    # Members, indexes, slices

    def _member(self, e: ast.Member) -> ast.Expr:
        e.base = self.any_expr(e.base)
        t = e.base.type
        if isinstance(t, types.Meta):
            return self._static_member(e, t.type)
        if isinstance(t, types.Record):
            e.field = t.find(e.name)
            if e.field is not None:
                e.type = e.field.type
                return self._fold_member(e)
        elif isinstance(t, types.Stack):
            return self._stack_member(e, t)
        elif isinstance(t, types.ApplyResult):
            if e.name in ("hit", "miss"):
                return _typed(e, types.BOOL)
            if e.name == "action_run":
                return _typed(e, types.ActionRun(t.decl))
        elif isinstance(t, types.AnonRecord) and e.name in t.names:
            e.type = t.types[t.names.index(e.name)]
            return e
        if not isinstance(t, types.Unknown):
            callable_base = isinstance(t, types.Callable)
            shown = f"{t.decl.name!r}" if isinstance(t, types.Callable) else str(t)
            standard = isinstance(t, types.Record) and t.name == "standard_metadata_t"
            hint = instead(STANDARD_METADATA.get(e.name)) if standard else ""
            hint = hint or did_you_mean(e.name, _members(t))
            self.error(e, f"{shown} has no {'members' if callable_base else f'member {e.name!r}{hint}'}")
        return e

    def _static_member(self, e: ast.Member, t: Type) -> ast.Expr:
        members: Mapping[str, ast.EnumMember] = {}
        if isinstance(t, types.Enum):
            members = {m.name: m for m in t.decl.members}
        elif isinstance(t, types.Error):
            members = self.program.errors
        member = members.get(e.name)
        if member is not None:
            return ast.EnumRef(e.pos, member, type=t)
        if not isinstance(t, types.Unknown):
            self.error(e, f"{t} has no member {e.name!r}{did_you_mean(e.name, members)}")
        return e

    def _fold_member(self, e: ast.Member) -> ast.Expr:
        """A field of a constant."""
        base = e.base
        if isinstance(base, ast.Name) and isinstance(base.decl, ast.ConstDecl):
            base = base.decl.init
        if isinstance(base, ast.StructExpr):
            value = next((f.value for f in base.fields if f.name == e.name), None)
            if isinstance(value, LITERALS):
                return self._copy_literal(value, e)
        return e

    def _stack_member(self, e: ast.Member, t: types.Stack) -> ast.Expr:
        headers = isinstance(t.element, (types.Header, types.Union, types.TypeVar))
        if e.name == "size":
            return ast.IntLiteral(e.pos, t.size, type=types.Bits(32))
        if headers and e.name in ("next", "last", "lastIndex"):
            if self.place != Place.PARSER:
                self.error(e, f"{e.name!r} of a header stack can only be used in a parser, not in {self.place.value}")
            return _typed(e, types.Bits(32) if e.name == "lastIndex" else t.element)
        self.error(e, f"{t} has no member {e.name!r}")
        return e

    def _index(self, e: ast.Index) -> ast.Expr:
        e.base = self.expr(e.base)
        e.index = self.expr(e.index)
        t = e.base.type
        if isinstance(t, types.Tuple):
            return self._tuple_index(e, t)
        if isinstance(t, types.Stack):
            index = self.as_bits(e.index)
            e.index = index
            if not isinstance(index.type, (types.Bits, types.InfInt, types.Unknown)):
                self.error(index, f"the index of a stack must be a number, not {describe(index)}")
            elif isinstance(index, ast.IntLiteral) and not 0 <= index.value < t.size:
                self.error(index, f"index {index.value} is out of range: the size is {t.size}")
            return _typed(e, t.element)
        if not isinstance(t, types.Unknown):
            self.error(e, f"{describe(e.base)} cannot be indexed")
        return e

    def _tuple_index(self, e: ast.Index, t: types.Tuple) -> ast.Expr:
        if not isinstance(e.index, ast.IntLiteral):
            self.error(e.index, "the index of a tuple must be an integer known at compile time")
            return e
        if not 0 <= e.index.value < len(t.elements):
            self.error(e.index, f"index {e.index.value} is out of range: {t} has {len(t.elements)} elements")
            return e
        e.type = t.elements[e.index.value]
        base = e.base
        if isinstance(base, ast.Name) and isinstance(base.decl, ast.ConstDecl):
            base = base.decl.init
        if isinstance(base, ast.ListExpr) and e.index.value < len(base.items):  # else it has a '...' there
            return self._copy_literal(base.items[e.index.value], e)
        return e

    def _slice(self, e: ast.Slice) -> ast.Expr:
        e.base = self.as_bits(self.expr(e.base))
        t = e.base.type
        if e.width is not None:
            return self._slice_by_width(e)
        e.high, high = self.constant_int(e.high, "the bounds of a slice")
        e.low, low = self.constant_int(e.low, "the bounds of a slice")
        if isinstance(t, types.Unknown) or high is None or low is None:
            return e
        if not isinstance(t, types.Bits):
            self.error(e, f"{describe(e.base)} cannot be sliced: only bit<> and int<> can")
            return e
        if not 0 <= low <= high < t.width:
            self.error(e, f"slice [{high}:{low}] is out of order or range: {t} has bits [{t.width - 1}:0]")
            return e
        e.type = types.Bits(high - low + 1)
        if isinstance(e.base, ast.IntLiteral):
            return ast.IntLiteral(e.pos, INTEGERS.extract(e.base.value, high, low), type=e.type)
        return e

    def _slice_by_width(self, e: ast.Slice) -> ast.Expr:
        """`base[low+:width]`; with a `low` known only at run time it becomes a shift."""
        assert e.width is not None
        e.width, width = self.constant_int(e.width, "the width of a slice")
        low = self.as_bits(self.expr(e.low))
        t = e.base.type
        if isinstance(t, types.Unknown) or isinstance(low.type, types.Unknown) or width is None:
            return e
        if not isinstance(t, types.Bits):
            self.error(e, f"{describe(e.base)} cannot be sliced: only bit<> and int<> can")
            return e
        if isinstance(low, ast.IntLiteral):
            high = ast.IntLiteral(low.pos, low.value + width - 1, type=types.INT)
            return self._slice(ast.Slice(e.pos, e.base, high, low))
        if not isinstance(low.type, types.Bits) or low.type.signed:
            self.error(low, f"the start of a slice must be a bit<>, not {describe(low)}")
            return e
        if not 0 < width <= t.width:
            self.error(e.width, f"the width of a slice of {t} must be 1 to {t.width}, not {width}")
            return e
        unsigned = types.Bits(t.width)
        base = ast.Cast(e.pos, None, e.base, True, type=unsigned) if t.signed else e.base
        shifted = ast.Binary(e.pos, ">>", base, low, type=unsigned)
        return ast.Cast(e.pos, None, shifted, True, type=types.Bits(width))

    # Operators

    def as_bits(self, e: ast.Expr) -> ast.Expr:
        """Serializable enums as their representation; other expressions as they are."""
        t = e.type
        return self.convert(e, t.underlying) if isinstance(t, types.Enum) and t.underlying is not None else e

    def _unary(self, e: ast.Unary) -> ast.Expr:
        if e.op == "!":
            operand = self.boolean(e.operand, "'!'")
            if isinstance(operand, ast.BoolLiteral):
                return ast.BoolLiteral(e.pos, not operand.value, type=types.BOOL)
            e.operand = operand
            return _typed(e, types.BOOL if operand.type == types.BOOL else types.UNKNOWN)
        operand = self.as_bits(self.expr(e.operand))
        t = operand.type
        if isinstance(t, types.Unknown):
            return e
        if not isinstance(t, types.Bits) and (e.op == "~" or not isinstance(t, types.InfInt)):
            self.error(e, f"{e.op!r} is not defined for {describe(operand)}")
            return e
        if isinstance(operand, ast.IntLiteral):
            value = operand.value
            if e.op != "+":
                value = operators.unary(INTEGERS, "neg" if e.op == "-" else e.op, t, value)
            return ast.IntLiteral(e.pos, value, operand.base, type=t)
        if e.op == "+":
            return operand
        e.operand = operand
        return _typed(e, t)

    def _binary(self, e: ast.Binary) -> ast.Expr:
        if e.op in ("&&", "||"):
            return self._logical(e)
        e.left, e.right = self.expr(e.left), self.expr(e.right)
        if isinstance(e.left.type, types.Unknown) or isinstance(e.right.type, types.Unknown):
            return e
        if e.op in ("<<", ">>"):
            return self._shift(e)
        if e.op == "++":
            return self._concatenation(e)
        if e.op in _COMPARISONS:
            return self._comparison(e)
        return self._arithmetic(e)

    def _logical(self, e: ast.Binary) -> ast.Expr:
        left = self.boolean(e.left, f"{e.op!r}")
        right = self.boolean(e.right, f"{e.op!r}")
        e.left, e.right = left, right
        if isinstance(left, ast.BoolLiteral):
            decided = left.value == (e.op == "||")
            return ast.BoolLiteral(e.pos, left.value, type=types.BOOL) if decided else right
        return _typed(e, types.BOOL)

    def _balance(self, e: ast.Binary | ast.Conditional, left: ast.Expr, right: ast.Expr) -> tuple[ast.Expr, ast.Expr]:
        """Both operands with one type, where an implicit conversion of one can do it."""
        a, b = left.type, right.type
        if a == b and not isinstance(left, _INITIALISERS) and not isinstance(right, _INITIALISERS):
            return left, right
        open_left, open_right = _is_open(left), _is_open(right)
        if open_left and not open_right:
            return self.convert(left, b), right
        if open_right and not open_left:
            return left, self.convert(right, a)
        if a != b:
            left, right = self.as_bits(left), self.as_bits(right)
            a, b = left.type, right.type
        if isinstance(a, types.InfInt) and isinstance(b, types.Bits):
            left = self.convert(left, b)
        elif isinstance(b, types.InfInt) and isinstance(a, types.Bits):
            right = self.convert(right, a)
        return left, right

    def _arithmetic(self, e: ast.Binary) -> ast.Expr:
        op = e.op
        if op in ("/", "%") and any(isinstance(x, ast.IntLiteral) and x.value < 0 for x in (e.left, e.right)):
            self.error(e, f"{op!r} is not defined for negative numbers")
            return e
        left, right = self._balance(e, self.as_bits(e.left), self.as_bits(e.right))
        t = left.type
        e.left, e.right = left, right
        if isinstance(t, types.Unknown) or isinstance(right.type, types.Unknown):
            return e
        if t != right.type:
            self.error(e, f"{op!r} needs operands of one type, not {describe(left)} and {describe(right)}")
            return e
        if not isinstance(t, types.Bits) and (op in ("|+|", "|-|") or not isinstance(t, types.InfInt)):
            self.error(e, f"{op!r} is not defined for {describe(left)}")
            return e
        if op in ("/", "%"):
            if isinstance(t, types.Bits) and t.signed:
                self.error(e, f"{op!r} is not defined for signed values ({t})")
                return e
            if isinstance(right, ast.IntLiteral) and right.value == 0:
                self.error(e, "division by zero")
                return e
        e.type = t
        if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
            try:
                value = constants.arithmetic(op, left.value, right.value, t)
            except constants.ConstantError as error:
                self.error(e, str(error))
                return _typed(e, types.UNKNOWN)
            return ast.IntLiteral(e.pos, value, left.base, type=t)
        return self._division(e, left, right) if op in ("/", "%") else e

    def _division(self, e: ast.Binary, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        """`/` and `%` are for compile-time values; by a power of two they are a shift and a mask."""
        t = e.type
        if isinstance(right, ast.IntLiteral) and right.value & (right.value - 1) == 0 and isinstance(t, types.Bits):
            if e.op == "%":
                mask = ast.IntLiteral(right.pos, right.value - 1, type=t)
                return ast.Binary(e.pos, "&", left, mask, type=t)
            amount = ast.IntLiteral(right.pos, right.value.bit_length() - 1, type=types.INT)
            return ast.Binary(e.pos, ">>", left, amount, type=t)
        if isinstance(left, ast.IntLiteral) and left.value == 0 and isinstance(t, types.Bits):
            return ast.Binary(e.pos, "&", right, left, type=t)  # 0, but the divisor is still evaluated
        if not (self.is_constant(left) and self.is_constant(right)):
            self.error(e, f"{e.op!r} needs values known at compile time, or a power of two as divisor")
        return e

    def _shift(self, e: ast.Binary) -> ast.Expr:
        left, right = self.as_bits(e.left), self.as_bits(e.right)
        e.left, e.right = left, right
        t = left.type
        if not isinstance(t, (types.Bits, types.InfInt)):
            self.error(e, f"{e.op!r} is not defined for {describe(left)}")
            return e
        if not isinstance(right.type, (types.Bits, types.InfInt)):
            self.error(e, f"the amount of a shift must be a number, not {describe(right)}")
            return e
        if isinstance(right.type, types.Bits) and right.type.signed and not isinstance(right, ast.IntLiteral):
            self.error(e, f"the amount of a shift must be unsigned, not {right.type}")
            return e
        if isinstance(right, ast.IntLiteral):
            if right.value < 0:
                self.error(e, f"the amount of a shift must not be negative, but is {right.value}")
                return e
            if isinstance(t, types.Bits) and right.value >= t.width:
                self.warn(e, f"shift of {t} by {right.value} loses all bits")
            if isinstance(left, ast.IntLiteral):
                try:
                    value = constants.arithmetic(e.op, left.value, right.value, t)
                except constants.ConstantError as error:
                    self.error(e, str(error))
                    return e
                return ast.IntLiteral(e.pos, value, left.base, type=t)
        elif isinstance(t, types.InfInt):
            self.error(e, "the left operand of this shift needs a width (as in 8w1): the right one is not known")
            return e
        return _typed(e, t)

    def _concatenation(self, e: ast.Binary) -> ast.Expr:
        left, right = self.as_bits(e.left), self.as_bits(e.right)
        e.left, e.right = left, right
        if isinstance(left, ast.StringLiteral) and isinstance(right, ast.StringLiteral):
            return ast.StringLiteral(e.pos, left.value + right.value, type=types.STRING)
        a, b = left.type, right.type
        if not isinstance(a, types.Bits) or not isinstance(b, types.Bits):
            bad = right if isinstance(a, types.Bits) else left
            self.error(e, f"'++' needs operands with a width, not {describe(bad)}")
            return e
        t = types.Bits(a.width + b.width, a.signed)
        if t.width > 2048:
            self.error(e, f"{t} is wider than 2048 bits")
            return e
        if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
            value = operators.concatenate(INTEGERS, t, a, b, left.value, right.value)
            return ast.IntLiteral(e.pos, value, left.base, type=t)
        return _typed(e, t)

    def _comparison(self, e: ast.Binary) -> ast.Expr:
        left, right = self._balance(e, e.left, e.right)
        if e.op not in ("==", "!="):
            left, right = self.as_bits(left), self.as_bits(right)
        e.left, e.right = left, right
        a, b = left.type, right.type
        if isinstance(a, types.Unknown) or isinstance(b, types.Unknown):
            return _typed(e, types.BOOL)
        if a != b:
            self.error(e, f"{describe(left)} and {describe(right)} cannot be compared")
            return e
        if e.op in ("==", "!="):
            if not self._has_equality(a):
                self.error(e, f"{describe(left)} cannot be compared")
                return e
        elif not isinstance(a, (types.Bits, types.InfInt)):
            self.error(e, f"{e.op!r} is not defined for {describe(left)}")
            return e
        e.type = types.BOOL
        values = _literal_values(left, right)
        if values is not None:
            return ast.BoolLiteral(e.pos, bool(INTEGERS.compare(e.op, *values, a)), type=types.BOOL)
        return e

    def _has_equality(self, t: Type) -> bool:
        if isinstance(t, (types.Struct, types.Header, types.Union)):
            return all(self._has_equality(f.type) for f in t.fields)
        if isinstance(t, types.Tuple):
            return all(self._has_equality(x) for x in t.elements)
        if isinstance(t, types.NewType):
            return self._has_equality(t.underlying)
        if isinstance(t, types.Stack):
            return self._has_equality(t.element)
        bad: tuple[type[Type], ...] = (types.Void, types.Set, types.Table, types.ApplyResult, types.ActionRun)
        bad += (types.AnonRecord, types.List, types.TypeVar)
        return not isinstance(t, bad) and not is_object(t)

    def _conditional(self, e: ast.Conditional) -> ast.Expr:
        e.condition = self.boolean(e.condition, "the condition")
        then, otherwise = self._balance(e, self.expr(e.then), self.expr(e.otherwise))
        e.then, e.otherwise = then, otherwise
        if isinstance(then.type, types.Unknown) or isinstance(otherwise.type, types.Unknown):
            return e
        if then.type != otherwise.type:
            self.error(e, f"'?:' needs alternatives of one type, not {describe(then)} and {describe(otherwise)}")
            return e
        if isinstance(e.condition, ast.BoolLiteral):
            return then if e.condition.value else otherwise
        if isinstance(then.type, types.InfInt):
            self.error(e, "one alternative of '?:' needs a width (as in 8w1), because the condition is not known")
            return e
        if isinstance(then.type, (types.Void, types.String, types.Set, types.Table)) or is_object(then.type):
            self.error(e, f"'?:' cannot give {then.type}")
            return e
        return _typed(e, then.type)

    def _cast(self, e: ast.Cast) -> ast.Expr:
        assert e.type_expr is not None
        target = self.resolve(e.type_expr, infer=True)
        operand = self.expr(e.operand, target)
        if isinstance(target, types.Record) and target.args and isinstance(e.type_expr, ast.NamedTypeExpr):
            target = self._infer_cast(e.type_expr, target, operand)
        e.operand = operand
        return self.cast(e, target)

    def _infer_cast(self, written: ast.NamedTypeExpr, target: types.Record, operand: ast.Expr) -> Type:
        """`(S){...}` for a generic S without type arguments."""
        from p4switch.compiler.inference import Inference

        if written.args:
            return target
        inference = Inference(target.decl.type_params)
        if inference.unify(target, operand.type) and not inference.missing():
            return inference.apply(target)
        self.error(written, f"the type arguments of {target.decl.name!r} cannot be inferred here: write them")
        return types.UNKNOWN


def _members(t: Type) -> Iterable[str]:
    """What can stand after the dot of a value of this type."""
    if isinstance(t, types.Record):
        return [f.name for f in t.fields]
    if isinstance(t, types.AnonRecord):
        return t.names
    return ("hit", "miss", "action_run") if isinstance(t, types.ApplyResult) else ()


def _is_open(e: ast.Expr) -> bool:
    """Whether `e` is an initialiser that takes its type from the context."""
    return isinstance(e, _INITIALISERS) and not isinstance(e.type, types.Record)


def _typed(e: ast.Expr, t: Type) -> ast.Expr:
    e.type = t
    return e


def _literal_values(left: ast.Expr, right: ast.Expr) -> tuple[int, int] | None:
    """The values of two literals, as numbers that compare alike."""
    if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
        return left.value, right.value
    if isinstance(left, ast.BoolLiteral) and isinstance(right, ast.BoolLiteral):
        return left.value, right.value
    if isinstance(left, ast.EnumRef) and isinstance(right, ast.EnumRef):
        return int(left.decl is right.decl or left.decl.value == right.decl.value), 1
    return None
