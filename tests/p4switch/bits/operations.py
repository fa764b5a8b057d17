"""Operators of expressions, with operands of valid types."""

from __future__ import annotations

from p4switch import ir
from p4switch.bits.domain import fits
from p4switch.bits.operators import COMPARISONS
from p4switch.compiler.types import BOOL, INT, Bits, Type

OPERATORS = [
    "+", "-", "*", "&", "|", "^", "|+|", "|-|", "/", "%", "<<", ">>", *sorted(COMPARISONS),
    "&&", "||", "!", "~", "neg", "?:", "++", "slice", "cast", "truth", "number",
]  # fmt: skip
"""Operators of `ir.Op`, and casts from numbers to bools and back."""


def operation(op: str, t: Bits, other: Bits, amount: Bits, part: tuple[int, int]) -> ir.Op:
    """Return an operator with fields `h.f0`, `h.f1` ... as operands.

    `t` is the type of the first operand, except in conditions. `other` is the type of a second operand
    or of a cast's result that may differ from `t`. `amount` is the type of a shift's second operand.
    `part` are the highest and lowest bit of a slice.
    """
    kinds: list[Type] = [t, t]
    result: Type = t
    constants: list[ir.Expr] = []
    if op in ("/", "%"):
        result, kinds = Bits(t.width), [Bits(t.width)] * 2
    elif op in ("<<", ">>"):
        kinds[1] = amount
    elif op in COMPARISONS:
        result = BOOL
    elif op in ("&&", "||"):
        result, kinds = BOOL, [BOOL, BOOL]
    elif op in ("!", "number"):
        number = t if fits(1, t) else Bits(t.width)
        result, kinds = BOOL if op == "!" else number, [BOOL]
    elif op in ("~", "neg", "truth", "cast", "saturate"):
        result, kinds = {"truth": BOOL, "cast": other, "saturate": other}.get(op, t), [t]
    elif op == "?:":
        kinds = [BOOL, t, t]
    elif op == "++":
        kinds[1] = other
        result = Bits(t.width + other.width, t.signed)
    elif op == "slice":
        high, low = part
        result, kinds, constants = Bits(high - low + 1), [t], [ir.Const(high, INT), ir.Const(low, INT)]
    fields = [ir.FieldRef("h", f"f{i}", kind) for i, kind in enumerate(kinds)]
    return ir.Op({"truth": "cast", "number": "cast"}.get(op, op), (*fields, *constants), result)
