"""The operators of P4 over any domain."""

from __future__ import annotations

from collections.abc import Sequence

from p4switch import ir
from p4switch.bits.domain import Domain, Value, limits
from p4switch.compiler.types import INT, Bits, Bool, Type

ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "&", "|", "^"})
SATURATING = frozenset({"|+|", "|-|"})
SHIFTS = frozenset({"<<", ">>"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def unary(domain: Domain[Value], op: str, t: Type, a: Value) -> Value:
    """Return `op a`: `neg`, `~` or `!`."""
    if op == "!":
        return domain.negation(a)
    return domain.negate(a, t) if op == "neg" else domain.invert(a, t)


def binary(domain: Domain[Value], op: str, t: Type, operands: Type, a: Value, b: Value) -> Value:
    """Return `a op b` as a value of type `t`; `operands` is the type of `a` and, except for shifts, of `b`."""
    if op in ARITHMETIC:
        return domain.arithmetic(op, a, b, t)
    if op in SHIFTS:
        return domain.shift(op, a, b, t)
    if op in COMPARISONS:
        return domain.compare(op, a, b, operands)
    if op in SATURATING:
        assert isinstance(t, Bits)
        return saturating(domain, op[1], t, a, b)
    return domain.both(a, b) if op == "&&" else domain.either(a, b)


def saturating(domain: Domain[Value], op: str, t: Bits, a: Value, b: Value) -> Value:
    """Return `a + b` or `a - b`, limited to the range of `t`."""
    wide = Bits(t.width + 2, True)
    exact = domain.arithmetic(op, domain.resize(a, t, wide), domain.resize(b, t, wide), wide)
    return saturated(domain, wide, t, exact)


def saturated(domain: Domain[Value], source: Type, t: Bits, a: Value) -> Value:
    """Return `a`, of type `source`, limited to the range of `t`. That range is part of the range of `source`."""
    return domain.resize(domain.clamp(a, *limits(t), source), source, t)


def cast(domain: Domain[Value], source: Type, target: Type, a: Value) -> Value:
    if isinstance(source, Bool):
        return a if isinstance(target, Bool) else domain.number(a, target)
    return domain.truth(a) if isinstance(target, Bool) else domain.resize(a, source, target)


def concatenate(domain: Domain[Value], t: Type, of_a: Type, of_b: Type, a: Value, b: Value) -> Value:
    """Return `a ++ b`, which is signed if `a` is signed."""
    joined = domain.join(a, of_a, b, of_b)
    return domain.resize(joined, Bits(t.width), t) if isinstance(t, Bits) else joined


def evaluate(domain: Domain[Value], expr: ir.Op, args: Sequence[Value]) -> Value:
    """Return the value of `expr`, whose operands have the values `args`."""
    op, t = expr.op, expr.type
    kinds = [a.type for a in expr.args]
    if op == "cast":
        return cast(domain, kinds[0], t, args[0])
    if op == "saturate":
        assert isinstance(t, Bits)
        return saturated(domain, INT, t, args[0])
    if op == "slice":
        high, low = expr.args[1:]
        assert isinstance(high, ir.Const)
        assert isinstance(low, ir.Const)
        return domain.extract(args[0], high.value, low.value)
    if op == "?:":
        return domain.choose(args[0], args[1], args[2])
    if op == "++":
        return concatenate(domain, t, kinds[0], kinds[1], args[0], args[1])
    if len(args) == 1:
        return unary(domain, op, t, args[0])
    return binary(domain, op, t, kinds[0], args[0], args[1])
