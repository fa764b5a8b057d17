"""Building `ir` operations, constants folded."""

from __future__ import annotations

from collections.abc import Callable

from p4switch import ir
from p4switch.compiler import types

TRUE = ir.Const(1, types.BOOL)
FALSE = ir.Const(0, types.BOOL)


def wrap(value: int, t: types.Type) -> int:
    """`value` brought into the range of `t`."""
    if isinstance(t, types.Bits):
        value &= (1 << t.width) - 1
        if t.signed and t.width and value >> (t.width - 1):
            value -= 1 << t.width
    elif isinstance(t, types.Bool):
        value = int(value != 0)
    return value


def const(value: int, t: types.Type) -> ir.Const:
    return ir.Const(wrap(value, t), t)


def boolean(value: bool) -> ir.Const:
    return TRUE if value else FALSE


def _clamp(value: int, t: types.Type) -> int:
    assert isinstance(t, types.Bits)
    low, high = (-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1) if t.signed else (0, (1 << t.width) - 1)
    return min(max(value, low), high)


def _unsigned(c: ir.Const) -> int:
    return c.value & ((1 << c.type.width) - 1) if isinstance(c.type, types.Bits) else c.value


def _evaluate(op: str, args: list[ir.Const], t: types.Type) -> int | None:
    a = args[0].value
    if op == "cast":
        return _unsigned(args[0]) if isinstance(t, types.Bits) and not t.signed else a
    if op == "neg":
        return -a
    if op == "~":
        return ~a
    if op == "!":
        return int(not a)
    if op == "slice":
        return (a >> args[2].value) & ((1 << (args[1].value - args[2].value + 1)) - 1)
    b = args[1].value
    if op == "++":
        width = args[1].type.width if isinstance(args[1].type, types.Bits) else 0
        return (_unsigned(args[0]) << width) | _unsigned(args[1])
    if op == "|+|":
        return _clamp(a + b, t)
    if op == "|-|":
        return _clamp(a - b, t)
    if op == "<<":
        return a << b if b < 1 << 16 else 0
    if op == ">>":
        return a >> b if b < 1 << 16 else (-1 if a < 0 else 0)
    if op in ("/", "%"):
        if b == 0:
            return None
        return a // b if op == "/" else a % b
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if op == "&":
        return a & b
    if op == "|":
        return a | b
    if op == "^":
        return a ^ b
    if op == "==":
        return int(a == b)
    if op == "!=":
        return int(a != b)
    if op == "<":
        return int(a < b)
    if op == "<=":
        return int(a <= b)
    if op == ">":
        return int(a > b)
    if op == ">=":
        return int(a >= b)
    if op == "&&":
        return int(bool(a and b))
    if op == "||":
        return int(bool(a or b))
    return None


def make(op: str, t: types.Type, *args: ir.Expr) -> ir.Expr:
    """`op` applied to `args`, with result type `t`; a constant, or one of the operands, where that is the same."""
    first = args[0]
    if op == "cast" and (first.type == t or (isinstance(first, ir.Const) and isinstance(first.type, types.InfInt))):
        return const(first.value, t) if isinstance(first, ir.Const) else first
    if op == "?:":
        if isinstance(first, ir.Const):
            return args[1] if first.value else args[2]
        return ir.Op(op, args, t)
    constants = [a for a in args if isinstance(a, ir.Const)]
    if len(constants) == len(args):
        value = _evaluate(op, constants, t)
        if value is not None:
            return const(value, t)
    if op in ("&&", "||") and isinstance(first, ir.Const):
        return args[1] if bool(first.value) == (op == "&&") else first
    if op in ("&&", "||") and isinstance(args[1], ir.Const):
        # Operands are free of side effects.
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
    """Return whether BMv2 would make a number of billions of bits from a shift: `amount` has more than 8 bits."""
    return op in ("<<", ">>") and not isinstance(amount, ir.Const) and (types.width_of(amount.type) or 0) > 8


def long_shift(
    op: str, t: types.Type, value: ir.Expr, amount: ir.Expr, hold: Callable[[ir.Expr], ir.Expr]
) -> ir.Expr:
    """Return the shift as BMv2 can do it: by at most 255 bits, else to nothing but the sign.

    `hold` is given what is used more than once, and returns what to use in its place.
    """
    most = ir.Const(0xFF, types.INT)
    nothing: ir.Expr = ir.Const(0, types.INT)
    amount = hold(amount)
    if op == ">>" and isinstance(t, types.Bits) and t.signed:
        value = hold(value)
        nothing = make(">>", t, value, most)
    shifted = make(op, t, value, make("&", types.Bits(8), amount, most))
    return make("?:", t, make(">", types.BOOL, amount, most), nothing, shifted)


def cast(expr: ir.Expr, t: types.Type) -> ir.Expr:
    return make("cast", t, expr)


def slice_(expr: ir.Expr, high: int, low: int) -> ir.Expr:
    return make("slice", types.Bits(high - low + 1), expr, ir.Const(high, types.INT), ir.Const(low, types.INT))


def conjunction(conditions: list[ir.Expr]) -> ir.Expr:
    result: ir.Expr = TRUE
    for c in conditions:
        result = make("&&", types.BOOL, result, c)
    return result
