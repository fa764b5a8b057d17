"""Conditions on the inputs of a program, as formulas in which constants are folded."""

from __future__ import annotations

from typing import Any

import z3

from p4switch import ir
from p4switch.bits.domain import width
from p4switch.testgen.values import Scalar

ALWAYS = z3.BoolVal(True)
NEVER = z3.BoolVal(False)


def conjunction(a: Any, b: Any) -> Any:
    if z3.is_false(a) or z3.is_true(b):
        return a
    return b if z3.is_false(b) or z3.is_true(a) else z3.And(a, b)


def disjunction(*options: Any) -> Any:
    some = [o for o in options if not z3.is_false(o)]
    if any(z3.is_true(o) for o in some):
        return ALWAYS
    return z3.Or(*some) if len(some) > 1 else some[0] if some else NEVER


def negation(a: Any) -> Any:
    return NEVER if z3.is_true(a) else ALWAYS if z3.is_false(a) else z3.Not(a)


def truth(value: Scalar) -> Any:
    """Return the condition that `value`, a bool, is true."""
    if value.formula is None:
        return ALWAYS if value.number else NEVER
    return value.formula


def same(a: Scalar | None, b: Scalar | None) -> bool:
    """Return whether two values are known to be the same, comparing only the form of their formulas."""
    if a is None or b is None or a is b:
        return a is b
    if a.formula is None or b.formula is None:
        return a.formula is b.formula and a.number == b.number
    return bool(a.formula.eq(b.formula))


def matching(keys: list[Scalar], case: list[tuple[int, int | None]], exprs: list[ir.Expr]) -> Any:
    """Return whether the keys match a case of a select."""
    result = ALWAYS
    for value, (k, m), e in zip(keys, case, exprs, strict=True):
        full = (1 << width(e.type)) - 1
        mask = full if m is None else m & full
        if value.formula is None:
            result = conjunction(result, ALWAYS if value.number & mask == k & mask else NEVER)
        elif isinstance(value.formula, z3.BoolRef):
            result = conjunction(result, value.formula == bool(k & 1)) if mask else result
        elif mask:
            result = conjunction(result, (value.formula if mask == full else value.formula & mask) == (k & mask))
    return result
