"""Functions that create `ir` expressions and fold constants."""

from __future__ import annotations

from collections.abc import Callable

from p4switch import ir
from p4switch.bits.domain import wrap
from p4switch.bits.integers import INTEGERS
from p4switch.bits.operators import evaluate
from p4switch.compiler import types

TRUE = ir.Const(1, types.BOOL)
FALSE = ir.Const(0, types.BOOL)


def const(value: int, t: types.Type) -> ir.Const:
    return ir.Const(wrap(value, t), t)


def boolean(value: bool) -> ir.Const:
    return TRUE if value else FALSE


def make(op: str, t: types.Type, *args: ir.Expr) -> ir.Expr:
    """Return `op` applied to `args`, with result type `t`, simplified to a constant or an operand if possible."""
    first = args[0]
    if op == "cast" and (first.type == t or (isinstance(first, ir.Const) and isinstance(first.type, types.InfInt))):
        return const(first.value, t) if isinstance(first, ir.Const) else first
    if op == "?:":
        if isinstance(first, ir.Const):
            return args[1] if first.value else args[2]
        return ir.Op(op, args, t)
    constants = [a for a in args if isinstance(a, ir.Const)]
    if len(constants) == len(args):
        result = ir.Op(op, args, t)
        try:
            return const(evaluate(INTEGERS, result, [c.value for c in constants]), t)
        except ZeroDivisionError:
            return result
    if op in ("&&", "||") and isinstance(first, ir.Const):
        return args[1] if bool(first.value) == (op == "&&") else first
    if op in ("&&", "||") and isinstance(args[1], ir.Const):
        # Operands have no side effects, so they can be dropped.
        return first if bool(args[1].value) == (op == "&&") else args[1]
    if op == "!" and isinstance(first, ir.Op) and first.op == "!":
        return first.args[0]
    if op == "slice":
        low = args[2]
        assert isinstance(low, ir.Const)
        if low.value == 0 and first.type == t:
            return first
    return ir.Op(op, args, t)


def is_long_shift(op: str, amount: ir.Expr) -> bool:
    """Return whether `amount` has more than 8 bits, so that BMv2 might compute a number of billions of bits."""
    return op in ("<<", ">>") and not isinstance(amount, ir.Const) and (types.width_of(amount.type) or 0) > 8


def long_shift(op: str, t: types.Type, value: ir.Expr, amount: ir.Expr, hold: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Return the shift in a form that BMv2 can execute.

    The result shifts by at most 255 bits. Larger shifts give 0 or copies of the sign.

    `hold` is called for an expression that is used more than once, and returns its replacement.
    """
    amount = hold(amount)
    most = const(0xFF, amount.type)
    nothing: ir.Expr = const(0, t)
    if op == ">>" and isinstance(t, types.Bits) and t.signed:
        value = hold(value)
        nothing = make(">>", t, value, most)
    shifted = make(op, t, value, make("&", amount.type, amount, most))
    return make("?:", t, make(">", types.BOOL, amount, most), nothing, shifted)


def cast(expr: ir.Expr, t: types.Type) -> ir.Expr:
    return make("cast", t, expr)


def slice_(expr: ir.Expr, high: int, low: int) -> ir.Expr:
    return make("slice", types.Bits(high - low + 1), expr, ir.Const(high, types.INT), ir.Const(low, types.INT))


def with_slice(whole: ir.Expr, high: int, low: int, src: ir.Expr) -> ir.Expr:
    """Return the number `whole` with bits `high` to `low` replaced by `src`."""
    assert isinstance(whole.type, types.Bits)
    t = types.Bits(whole.type.width)
    mask = ((1 << (high - low + 1)) - 1) << low
    shifted = make("<<", t, cast(src, t), ir.Const(low, types.INT)) if low else cast(src, t)
    kept = make("&", t, cast(whole, t), const(~mask, t))
    return cast(make("|", t, kept, make("&", t, shifted, const(mask, t))), whole.type)


def conjunction(conditions: list[ir.Expr]) -> ir.Expr:
    result: ir.Expr = TRUE
    for c in conditions:
        result = make("&&", types.BOOL, result, c)
    return result
