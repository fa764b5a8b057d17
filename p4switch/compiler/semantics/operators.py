"""Operators: the types of operands and results, and results for literal operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.bits import operators
from p4switch.bits.integers import INTEGERS
from p4switch.compiler import ast, types
from p4switch.compiler.semantics import constants
from p4switch.compiler.semantics.written_types import is_object
from p4switch.compiler.types import Type

if TYPE_CHECKING:
    from p4switch.compiler.semantics.context import Checking

_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_INITIALISERS = (ast.ListExpr, ast.StructExpr, ast.DefaultInit, ast.InvalidHeader)


class Operators:
    def __init__(self, ctx: Checking) -> None:
        self.ctx = ctx
        self.types = ctx.facts.types
        self.typed = ctx.facts.typed
        self.values = ctx.facts.values

    def as_bits(self, e: ast.Expr) -> ast.Expr:
        """Return serializable enums as their representation, and other expressions unchanged."""
        t = self.types[e]
        return (
            self.ctx.conversions.convert(e, t.underlying)
            if isinstance(t, types.Enum) and t.underlying is not None
            else e
        )

    def unary(self, e: ast.Unary) -> ast.Expr:
        if e.op == "!":
            operand = self.ctx.expressions.boolean(e.operand, "'!'")
            if isinstance(operand, ast.BoolLiteral):
                return self.typed(ast.BoolLiteral(e.pos, not operand.value), types.BOOL)
            e.operand = operand
            return self.typed(e, types.BOOL if self.types[operand] == types.BOOL else types.UNKNOWN)
        operand = self.as_bits(self.ctx.expressions.expr(e.operand))
        t = self.types[operand]
        if isinstance(t, types.Unknown):
            return e
        if not isinstance(t, types.Bits) and (e.op == "~" or not isinstance(t, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(operand)}")
            return e
        if isinstance(operand, ast.IntLiteral):
            value = operand.value
            if e.op != "+":
                value = operators.unary(INTEGERS, "neg" if e.op == "-" else e.op, t, value)
            return self.typed(ast.IntLiteral(e.pos, value, operand.base), t)
        if e.op == "+":
            return operand
        e.operand = operand
        return self.typed(e, t)

    def binary(self, e: ast.Binary) -> ast.Expr:
        if e.op in ("&&", "||"):
            return self._logical(e)
        e.left, e.right = self.ctx.expressions.expr(e.left), self.ctx.expressions.expr(e.right)
        if isinstance(self.types[e.left], types.Unknown) or isinstance(self.types[e.right], types.Unknown):
            return e
        if e.op in ("<<", ">>"):
            return self._shift(e)
        if e.op == "++":
            return self._concatenation(e)
        if e.op in _COMPARISONS:
            return self._comparison(e)
        return self._arithmetic(e)

    def _logical(self, e: ast.Binary) -> ast.Expr:
        left = self.ctx.expressions.boolean(e.left, f"{e.op!r}")
        right = self.ctx.expressions.boolean(e.right, f"{e.op!r}")
        e.left, e.right = left, right
        if isinstance(left, ast.BoolLiteral):
            decided = left.value == (e.op == "||")
            return self.typed(ast.BoolLiteral(e.pos, left.value), types.BOOL) if decided else right
        return self.typed(e, types.BOOL)

    def _balance(self, e: ast.Binary | ast.Conditional, left: ast.Expr, right: ast.Expr) -> tuple[ast.Expr, ast.Expr]:
        """Return both operands with the same type, if an implicit conversion of one achieves it."""
        a, b = self.types[left], self.types[right]
        if a == b and not isinstance(left, _INITIALISERS) and not isinstance(right, _INITIALISERS):
            return left, right
        open_left, open_right = self._is_open(left), self._is_open(right)
        if open_left and not open_right:
            return self.ctx.conversions.convert(left, b), right
        if open_right and not open_left:
            return left, self.ctx.conversions.convert(right, a)
        if a != b:
            left, right = self.as_bits(left), self.as_bits(right)
            a, b = self.types[left], self.types[right]
        if isinstance(a, types.InfInt) and isinstance(b, types.Bits):
            left = self.ctx.conversions.convert(left, b)
        elif isinstance(b, types.InfInt) and isinstance(a, types.Bits):
            right = self.ctx.conversions.convert(right, a)
        return left, right

    def _arithmetic(self, e: ast.Binary) -> ast.Expr:
        op = e.op
        if op in ("/", "%") and any(isinstance(x, ast.IntLiteral) and x.value < 0 for x in (e.left, e.right)):
            self.ctx.error(e, f"{op!r} is not defined for negative numbers")
            return e
        left, right = self._balance(e, self.as_bits(e.left), self.as_bits(e.right))
        t = self.types[left]
        e.left, e.right = left, right
        if isinstance(t, types.Unknown) or isinstance(self.types[right], types.Unknown):
            return e
        if t != self.types[right]:
            self.ctx.error(
                e,
                f"{op!r} needs operands of one type, not {self.ctx.describe(left)} and {self.ctx.describe(right)}",
            )
            return e
        if not isinstance(t, types.Bits) and (op in ("|+|", "|-|") or not isinstance(t, types.InfInt)):
            self.ctx.error(e, f"{op!r} is not defined for {self.ctx.describe(left)}")
            return e
        if op in ("/", "%"):
            if isinstance(t, types.Bits) and t.signed:
                self.ctx.error(e, f"{op!r} is not defined for signed values ({t})")
                return e
            if isinstance(right, ast.IntLiteral) and right.value == 0:
                self.ctx.error(e, "division by zero")
                return e
        self.types[e] = t
        if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
            try:
                value = constants.arithmetic(op, left.value, right.value, t)
            except constants.ConstantError as error:
                self.ctx.error(e, str(error))
                return self.typed(e, types.UNKNOWN)
            return self.typed(ast.IntLiteral(e.pos, value, left.base), t)
        return self._division(e, left, right) if op in ("/", "%") else e

    def _division(self, e: ast.Binary, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        """Check `/` and `%`, which need compile-time values; division by a power of two becomes a shift or a mask."""
        t = self.types[e]
        if isinstance(right, ast.IntLiteral) and right.value & (right.value - 1) == 0 and isinstance(t, types.Bits):
            if e.op == "%":
                mask = self.typed(ast.IntLiteral(right.pos, right.value - 1), t)
                return self.typed(ast.Binary(e.pos, "&", left, mask), t)
            amount = self.typed(ast.IntLiteral(right.pos, right.value.bit_length() - 1), types.INT)
            return self.typed(ast.Binary(e.pos, ">>", left, amount), t)
        if isinstance(left, ast.IntLiteral) and left.value == 0 and isinstance(t, types.Bits):
            return self.typed(ast.Binary(e.pos, "&", right, left), t)  # 0, but the divisor is still evaluated
        if not (self.ctx.values.is_constant(left) and self.ctx.values.is_constant(right)):
            self.ctx.error(e, f"{e.op!r} needs values known at compile time, or a power of two as divisor")
        return e

    def _shift(self, e: ast.Binary) -> ast.Expr:
        left, right = self.as_bits(e.left), self.as_bits(e.right)
        e.left, e.right = left, right
        t = self.types[left]
        if not isinstance(t, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(left)}")
            return e
        amount = self.types[right]
        if not isinstance(amount, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"the amount of a shift must be a number, not {self.ctx.describe(right)}")
            return e
        if isinstance(amount, types.Bits) and amount.signed and not isinstance(right, ast.IntLiteral):
            self.ctx.error(e, f"the amount of a shift must be unsigned, not {amount}")
            return e
        if isinstance(right, ast.IntLiteral):
            if right.value < 0:
                self.ctx.error(e, f"the amount of a shift must not be negative, but is {right.value}")
                return e
            if isinstance(t, types.Bits) and right.value >= t.width:
                self.ctx.warn(e, f"shift of {t} by {right.value} loses all bits")
            if isinstance(left, ast.IntLiteral):
                try:
                    value = constants.arithmetic(e.op, left.value, right.value, t)
                except constants.ConstantError as error:
                    self.ctx.error(e, str(error))
                    return e
                return self.typed(ast.IntLiteral(e.pos, value, left.base), t)
        elif isinstance(t, types.InfInt):
            self.ctx.error(e, "the left operand of this shift needs a width (as in 8w1): the right one is not known")
            return e
        return self.typed(e, t)

    def _concatenation(self, e: ast.Binary) -> ast.Expr:
        left, right = self.as_bits(e.left), self.as_bits(e.right)
        e.left, e.right = left, right
        if isinstance(left, ast.StringLiteral) and isinstance(right, ast.StringLiteral):
            return self.typed(ast.StringLiteral(e.pos, left.value + right.value), types.STRING)
        a, b = self.types[left], self.types[right]
        if not isinstance(a, types.Bits) or not isinstance(b, types.Bits):
            bad = right if isinstance(a, types.Bits) else left
            self.ctx.error(e, f"'++' needs operands with a width, not {self.ctx.describe(bad)}")
            return e
        t = types.Bits(a.width + b.width, a.signed)
        if t.width > 2048:
            self.ctx.error(e, f"{t} is wider than 2048 bits")
            return e
        if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
            value = operators.concatenate(INTEGERS, t, a, b, left.value, right.value)
            return self.typed(ast.IntLiteral(e.pos, value, left.base), t)
        return self.typed(e, t)

    def _comparison(self, e: ast.Binary) -> ast.Expr:
        left, right = self._balance(e, e.left, e.right)
        if e.op not in ("==", "!="):
            left, right = self.as_bits(left), self.as_bits(right)
        e.left, e.right = left, right
        a, b = self.types[left], self.types[right]
        if isinstance(a, types.Unknown) or isinstance(b, types.Unknown):
            return self.typed(e, types.BOOL)
        if a != b:
            self.ctx.error(
                e,
                f"{self.ctx.describe(left)} and {self.ctx.describe(right)} cannot be compared",
            )
            return e
        if e.op in ("==", "!="):
            if not self._has_equality(a):
                self.ctx.error(e, f"{self.ctx.describe(left)} cannot be compared")
                return e
        elif not isinstance(a, (types.Bits, types.InfInt)):
            self.ctx.error(e, f"{e.op!r} is not defined for {self.ctx.describe(left)}")
            return e
        self.types[e] = types.BOOL
        values = self._literal_values(left, right)
        if values is not None:
            return self.typed(ast.BoolLiteral(e.pos, bool(INTEGERS.compare(e.op, *values, a))), types.BOOL)
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

    def conditional(self, e: ast.Conditional) -> ast.Expr:
        e.condition = self.ctx.expressions.boolean(e.condition, "the condition")
        then, otherwise = self._balance(e, self.ctx.expressions.expr(e.then), self.ctx.expressions.expr(e.otherwise))
        e.then, e.otherwise = then, otherwise
        if isinstance(self.types[then], types.Unknown) or isinstance(self.types[otherwise], types.Unknown):
            return e
        if self.types[then] != self.types[otherwise]:
            given = f"{self.ctx.describe(then)} and {self.ctx.describe(otherwise)}"
            self.ctx.error(e, f"'?:' needs alternatives of one type, not {given}")
            return e
        if isinstance(e.condition, ast.BoolLiteral):
            return then if e.condition.value else otherwise
        if isinstance(self.types[then], types.InfInt):
            self.ctx.error(e, "one alternative of '?:' needs a width (as in 8w1), because the condition is not known")
            return e
        if isinstance(self.types[then], (types.Void, types.String, types.Set, types.Table)) or is_object(
            self.types[then]
        ):
            self.ctx.error(e, f"'?:' cannot give {self.types[then]}")
            return e
        return self.typed(e, self.types[then])

    def _is_open(self, e: ast.Expr) -> bool:
        """Return whether `e` is an initialiser whose type comes from the context."""
        return isinstance(e, _INITIALISERS) and not isinstance(self.types[e], types.Record)

    def _literal_values(self, left: ast.Expr, right: ast.Expr) -> tuple[int, int] | None:
        """Return the values of two literals as numbers that can be compared."""
        if isinstance(left, ast.IntLiteral) and isinstance(right, ast.IntLiteral):
            return left.value, right.value
        if isinstance(left, ast.BoolLiteral) and isinstance(right, ast.BoolLiteral):
            return left.value, right.value
        if isinstance(left, ast.EnumRef) and isinstance(right, ast.EnumRef):
            return int(left.decl is right.decl or self.values[left.decl] == self.values[right.decl]), 1
        return None
