"""Domain of z3 terms: bit vectors as wide as their type, and bools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from p4switch.bits.domain import Domain, is_signed, width, wrap
from p4switch.compiler.types import Bool, Type

Term = Any
"""z3.BitVecRef or z3.BoolRef."""

_ARITHMETIC: dict[str, Callable[[Term, Term], Term]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": z3.UDiv, "%": z3.URem,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip
_SIGNED: dict[str, Callable[[Term, Term], Term]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_UNSIGNED: dict[str, Callable[[Term, Term], Term]] = {"<": z3.ULT, "<=": z3.ULE, ">": z3.UGT, ">=": z3.UGE}


def resize(z: Term, bits: int, signed: bool = False) -> Term:
    """Return a bit vector truncated or extended to `bits` bits."""
    if z.size() > bits:
        return z3.Extract(bits - 1, 0, z)
    if z.size() < bits:
        return (z3.SignExt if signed else z3.ZeroExt)(bits - z.size(), z)
    return z


class Formulas(Domain[Term]):
    def constant(self, value: int, t: Type) -> Term:
        return z3.BoolVal(bool(value)) if isinstance(t, Bool) else z3.BitVecVal(wrap(value, t), width(t))

    def negate(self, a: Term, t: Type) -> Term:
        return -a

    def invert(self, a: Term, t: Type) -> Term:
        return ~a

    def arithmetic(self, op: str, a: Term, b: Term, t: Type) -> Term:
        return _ARITHMETIC[op](a, b)

    def shift(self, op: str, a: Term, amount: Term, t: Type) -> Term:
        bits, signed = width(t), is_signed(t)
        wide = max(bits, amount.size())
        value, amount = resize(a, wide, signed), resize(amount, wide)
        if op == "<<":
            shifted = value << amount
        else:
            shifted = value >> amount if signed else z3.LShR(value, amount)
        return resize(shifted, bits)

    def compare(self, op: str, a: Term, b: Term, t: Type) -> Term:
        if op in ("==", "!="):
            return a == b if op == "==" else z3.Not(a == b)  # z3's solver for bit vectors has no "distinct"
        return (_SIGNED if is_signed(t) else _UNSIGNED)[op](a, b)

    def both(self, a: Term, b: Term) -> Term:
        return z3.And(a, b)

    def either(self, a: Term, b: Term) -> Term:
        return z3.Or(a, b)

    def negation(self, a: Term) -> Term:
        return z3.Not(a)

    def choose(self, condition: Term, yes: Term, no: Term) -> Term:
        return z3.If(condition, yes, no)

    def extract(self, a: Term, high: int, low: int) -> Term:
        return z3.Extract(high, low, a)

    def join(self, a: Term, of_a: Type, b: Term, of_b: Type) -> Term:
        return z3.Concat(a, b)

    def resize(self, a: Term, source: Type, target: Type) -> Term:
        return resize(a, width(target), is_signed(source))

    def truth(self, a: Term) -> Term:
        return z3.Not(a == 0)

    def number(self, a: Term, target: Type) -> Term:
        return z3.If(a, z3.BitVecVal(1, width(target)), z3.BitVecVal(0, width(target)))


FORMULAS = Formulas()
