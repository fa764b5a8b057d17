"""Checks of operators: the types of operands and results, and results for known operands."""

from __future__ import annotations

from p4switch.bits import operators
from p4switch.bits.integers import INTEGERS
from p4switch.compiler import ast, types
from p4switch.compiler.semantics import constants
from p4switch.compiler.semantics.context import Checking
from p4switch.compiler.semantics.conversions import Conversions
from p4switch.compiler.semantics.values import Values
from p4switch.compiler.semantics.written_types import is_object
from p4switch.compiler.types import Type

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_INITIALISERS = (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)


class Operators:
    def __init__(self, ctx: Checking, conversions: Conversions, values: Values) -> None:
        self.ctx = ctx
        self.conversions = conversions
        self.values = values
        self.facts = ctx.facts
        self.types = ctx.facts.types

    def unary(self, e: ast.Unary) -> Type:
        if e.op == "!":
            t = self.ctx.expressions.boolean(e.operand, "'!'")
            known = self.facts.boolean(e.operand)
            if known is not None:
                return self.facts.constant(e, not known, types.BOOL)
            return self.facts.type(e, t)
        self.ctx.expressions.expr(e.operand)
        t = self.conversions.as_bits(e.operand)
        if isinstance(t, types.Unknown):
            return t
        if not isinstance(t, types.Bits) and (e.op == "~" or not isinstance(t, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(e.operand)}")
            return types.UNKNOWN
        value = self.facts.integer(e.operand)
        if value is None:
            return self.facts.type(e, t)
        if e.op != "+":
            value = operators.unary(INTEGERS, "neg" if e.op == "-" else e.op, t, value)
        return self.facts.constant(e, value, t)

    def binary(self, e: ast.Binary) -> Type:
        if e.op in ("&&", "||"):
            return self._logical(e)
        left, right = self.ctx.expressions.expr(e.left), self.ctx.expressions.expr(e.right)
        if isinstance(left, types.Unknown) or isinstance(right, types.Unknown):
            return types.UNKNOWN
        if e.op in ("<<", ">>"):
            return self._shift(e)
        if e.op == "++":
            return self._concatenation(e)
        if e.op in _COMPARISONS:
            return self._comparison(e)
        return self._arithmetic(e)

    def _logical(self, e: ast.Binary) -> Type:
        self.ctx.expressions.boolean(e.left, f"{e.op!r}")
        self.ctx.expressions.boolean(e.right, f"{e.op!r}")
        left = self.facts.boolean(e.left)
        if left is None:
            return self.facts.type(e, types.BOOL)
        return self.facts.same(e, e.left if left == (e.op == "||") else e.right)

    def _balance(self, left: ast.Expr, right: ast.Expr) -> None:
        """Convert one operand implicitly if both operands then have the same type."""
        a, b = self.types[left], self.types[right]
        if a == b and not isinstance(left, _INITIALISERS) and not isinstance(right, _INITIALISERS):
            return
        open_left, open_right = self._is_open(left), self._is_open(right)
        if open_left and not open_right:
            self.conversions.convert(left, b)
            return
        if open_right and not open_left:
            self.conversions.convert(right, a)
            return
        if a != b:
            a, b = self.conversions.as_bits(left), self.conversions.as_bits(right)
        if isinstance(a, types.InfInt) and isinstance(b, types.Bits):
            self.conversions.convert(left, b)
        elif isinstance(b, types.InfInt) and isinstance(a, types.Bits):
            self.conversions.convert(right, a)

    def _arithmetic(self, e: ast.Binary) -> Type:
        op, left, right = e.op, e.left, e.right
        if op in ("/", "%") and any((self.facts.integer(x) or 0) < 0 for x in (left, right)):
            self.ctx.error(e, f"{op!r} is not defined for negative numbers")
            return types.UNKNOWN
        self.conversions.as_bits(left)
        self.conversions.as_bits(right)
        self._balance(left, right)
        t = self.types[left]
        if isinstance(t, types.Unknown) or isinstance(self.types[right], types.Unknown):
            return types.UNKNOWN
        if t != self.types[right]:
            self.ctx.error(
                e,
                f"{op!r} needs operands of one type, not {self.ctx.describe(left)} and {self.ctx.describe(right)}",
            )
            return types.UNKNOWN
        if not isinstance(t, types.Bits) and (op in ("|+|", "|-|") or not isinstance(t, types.InfInt)):
            self.ctx.error(e, f"{op!r} is not defined for {self.ctx.describe(left)}")
            return types.UNKNOWN
        known = self.facts.integer(left), self.facts.integer(right)
        if op in ("/", "%"):
            if isinstance(t, types.Bits) and t.signed:
                self.ctx.error(e, f"{op!r} is not defined for signed values ({t})")
                return types.UNKNOWN
            if known[1] == 0:
                self.ctx.error(e, "division by zero")
                return types.UNKNOWN
        if known[0] is not None and known[1] is not None:
            return self._known(e, known[0], known[1], t)
        if op in ("/", "%"):
            self._check_division(e, t)
        return self.facts.type(e, t)

    def _known(self, e: ast.Binary, left: int, right: int, t: Type) -> Type:
        """Record the result for operands that are known at compile time."""
        try:
            return self.facts.constant(e, constants.arithmetic(e.op, left, right, t), t)
        except constants.ConstantError as error:
            self.ctx.error(e, str(error))
            return types.UNKNOWN

    def _check_division(self, e: ast.Binary, t: Type) -> None:
        """Check that `/` or `%` can be compiled.

        The operands have to be known, the divisor has to be a power of two, or the dividend has to be 0.
        """
        left, right = self.facts.integer(e.left), self.facts.integer(e.right)
        simple = left == 0 or (right is not None and right & (right - 1) == 0)
        known = self.values.is_constant(e.left) and self.values.is_constant(e.right)
        if not (known or (simple and isinstance(t, types.Bits))):
            self.ctx.error(e, f"{e.op!r} needs values known at compile time, or a power of two as divisor")

    def _shift(self, e: ast.Binary) -> Type:
        t, amount = self.conversions.as_bits(e.left), self.conversions.as_bits(e.right)
        left, right = self.facts.integer(e.left), self.facts.integer(e.right)
        if not isinstance(t, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(e.left)}")
        elif not isinstance(amount, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"the amount of a shift must be a number, not {self.ctx.describe(e.right)}")
        elif isinstance(amount, types.Bits) and amount.signed and right is None:
            self.ctx.error(e, f"the amount of a shift must be unsigned, not {amount}")
        elif right is None and isinstance(t, types.InfInt):
            self.ctx.error(e, "the left operand of this shift needs a width (as in 8w1): the right one is not known")
        elif right is None:
            return self.facts.type(e, t)
        elif right < 0:
            self.ctx.error(e, f"the amount of a shift must not be negative, but is {right}")
        else:
            if isinstance(t, types.Bits) and right >= t.width:
                self.ctx.warn(e, f"shift of {t} by {right} loses all bits")
            return self.facts.type(e, t) if left is None else self._known(e, left, right, t)
        return types.UNKNOWN

    def _concatenation(self, e: ast.Binary) -> Type:
        a, b = self.conversions.as_bits(e.left), self.conversions.as_bits(e.right)
        left, right = self.facts.constants.get(e.left), self.facts.constants.get(e.right)
        if isinstance(left, str) and isinstance(right, str):
            return self.facts.constant(e, left + right, types.STRING)
        if not isinstance(a, types.Bits) or not isinstance(b, types.Bits):
            bad = e.right if isinstance(a, types.Bits) else e.left
            self.ctx.error(e, f"'++' needs operands with a width, not {self.ctx.describe(bad)}")
            return types.UNKNOWN
        t = types.Bits(a.width + b.width, a.signed)
        if t.width > 2048:
            self.ctx.error(e, f"{t} is wider than 2048 bits")
            return types.UNKNOWN
        if isinstance(left, int) and isinstance(right, int):
            return self.facts.constant(e, operators.concatenate(INTEGERS, t, a, b, left, right), t)
        return self.facts.type(e, t)

    def _comparison(self, e: ast.Binary) -> Type:
        left, right = e.left, e.right
        self._balance(left, right)
        if e.op not in ("==", "!="):
            self.conversions.as_bits(left)
            self.conversions.as_bits(right)
        a, b = self.types[left], self.types[right]
        if isinstance(a, types.Unknown) or isinstance(b, types.Unknown):
            return self.facts.type(e, types.BOOL)
        if a != b:
            self.ctx.error(
                e,
                f"{self.ctx.describe(left)} and {self.ctx.describe(right)} cannot be compared",
            )
            return types.UNKNOWN
        if e.op in ("==", "!="):
            if not self._has_equality(a):
                self.ctx.error(e, f"{self.ctx.describe(left)} cannot be compared")
                return types.UNKNOWN
        elif not isinstance(a, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(left)}")
            return types.UNKNOWN
        values = self._comparable(left, right)
        if values is None:
            return self.facts.type(e, types.BOOL)
        return self.facts.constant(e, bool(INTEGERS.compare(e.op, *values, a)), types.BOOL)

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

    def conditional(self, e: ast.Conditional) -> Type:
        self.ctx.expressions.boolean(e.condition, "the condition")
        self.ctx.expressions.expr(e.then)
        self.ctx.expressions.expr(e.otherwise)
        self._balance(e.then, e.otherwise)
        t, other = self.types[e.then], self.types[e.otherwise]
        if isinstance(t, types.Unknown) or isinstance(other, types.Unknown):
            return types.UNKNOWN
        if t != other:
            given = f"{self.ctx.describe(e.then)} and {self.ctx.describe(e.otherwise)}"
            self.ctx.error(e, f"'?:' needs alternatives of one type, not {given}")
            return types.UNKNOWN
        condition = self.facts.boolean(e.condition)
        if condition is not None:
            return self.facts.same(e, e.then if condition else e.otherwise)
        if isinstance(t, types.InfInt):
            self.ctx.error(e, "one alternative of '?:' needs a width (as in 8w1), because the condition is not known")
            return types.UNKNOWN
        if isinstance(t, (types.Void, types.String, types.Set, types.Table)) or is_object(t):
            self.ctx.error(e, f"'?:' cannot give {t}")
            return types.UNKNOWN
        return self.facts.type(e, t)

    def _is_open(self, e: ast.Expr) -> bool:
        """Return whether `e` is an initialiser whose type depends on the context."""
        return isinstance(e, _INITIALISERS) and not isinstance(self.types[e], types.Record)

    def _comparable(self, left: ast.Expr, right: ast.Expr) -> tuple[int, int] | None:
        """Return the values of two constants of one type as numbers that can be compared."""
        a, b = self.facts.constants.get(left), self.facts.constants.get(right)
        if isinstance(a, int) and isinstance(b, int):
            return a, b
        if isinstance(a, ast.EnumMember) and isinstance(b, ast.EnumMember):
            return int(a is b or self.facts.values[a] == self.facts.values[b]), 1
        return None
