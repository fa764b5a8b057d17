"""Scalars with a number and, if inputs determine them, a formula, for concolic execution of expressions.

The number is the value in one concrete run. The formula (of z3) describes how the value depends on the inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import z3

from p4switch import ir
from p4switch.bits.domain import unsigned, width, wrap
from p4switch.bits.formulas import FORMULAS
from p4switch.bits.integers import INTEGERS
from p4switch.bits.operators import evaluate
from p4switch.compiler import types
from p4switch.compiler.midend.storage import flat_fields


class Scalar(NamedTuple):
    """Scalar value.

    `number` is unsigned; signed types are in two's complement. `formula` is None for a value that does
    not depend on inputs.
    """

    number: int
    formula: Any = None  # z3.BitVecRef, or z3.BoolRef for bools


ZERO = Scalar(0)


def formula(value: Scalar, t: types.Type) -> Any:
    """Return the formula of `value`, or a constant if it has none."""
    if value.formula is not None:
        return value.formula
    if isinstance(t, types.Bool):
        return z3.BoolVal(bool(value.number))
    plain = types.width_of(t) is None and not isinstance(t, types.Varbit)  # a literal shift amount
    return z3.BitVecVal(value.number, max(1, value.number.bit_length()) if plain else width(t))


def constant(number: int, t: types.Type) -> Scalar:
    """Return the value of a literal of type `t`."""
    bits = types.width_of(t)
    return Scalar(number if bits is None else number & (1 << bits) - 1)


def constants(call: ir.ActionCall) -> list[Scalar]:
    """Return the constant arguments in a call of an action."""
    return [Scalar(a & (1 << width(t)) - 1) for a, (_, t) in zip(call.args, call.action.params, strict=True)]


def joined(parts: list[Any]) -> Any:
    """Return the concatenation of at least one bit vector."""
    return z3.Concat(*parts) if len(parts) > 1 else parts[0]


def typed(value: Scalar, t: types.Type) -> Scalar:
    """Return `value`, the bits of a packet or an input, as a value of type `t`. The formula of a bool is a bool."""
    if isinstance(t, types.Bool) and z3.is_bv(value.formula):
        return Scalar(value.number, value.formula == 1)
    return value


def as_bits(z: Any) -> Any:
    """Return a bit vector, of one bit if `z` is a bool."""
    return z3.If(z, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)) if isinstance(z, z3.BoolRef) else z


def packet_fields(header: types.Type) -> list[tuple[str, types.Type]]:
    """Return the fields of a header as in a packet, with padding if they are not whole bytes."""
    fields = list(flat_fields(header))
    varies = any(isinstance(t, types.Varbit) for _, t in fields)
    padding = 0 if varies else -sum(width(t) for _, t in fields) % 8
    return [*fields, ("_padding", types.Bits(padding))] if padding else fields


def operate(expr: ir.Op, args: list[Scalar]) -> Scalar:
    """Return the value of `expr` with the operands `args`. Division by zero, which P4 does not define, gives 0."""
    kinds = [a.type for a in expr.args]
    try:
        number = evaluate(INTEGERS, expr, [wrap(a.number, k) for a, k in zip(args, kinds, strict=True)])
    except ZeroDivisionError:
        number = 0
    if all(a.formula is None for a in args):
        return Scalar(unsigned(number, expr.type))
    return Scalar(
        unsigned(number, expr.type),
        evaluate(FORMULAS, expr, [formula(a, k) for a, k in zip(args, kinds, strict=True)]),
    )


class Variables:
    """Names of variables in formulas. Formulas share parts, so each part is visited once."""

    def __init__(self) -> None:
        # The key is z3's number of a part. The part is kept, because z3 would otherwise reuse the number.
        self._known: dict[int, tuple[Any, frozenset[str]]] = {}

    def of(self, whole: Any) -> frozenset[str]:
        waiting = [whole]
        while waiting:
            part = waiting[-1]
            if part.get_id() in self._known:
                waiting.pop()
                continue
            parts = part.children()
            missing = [p for p in parts if p.get_id() not in self._known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if parts:
                names = frozenset().union(*(self._known[p.get_id()][1] for p in parts))
            else:
                names = frozenset([part.decl().name()] if part.decl().kind() == z3.Z3_OP_UNINTERPRETED else [])
            self._known[part.get_id()] = part, names
        return self._known[whole.get_id()][1]
