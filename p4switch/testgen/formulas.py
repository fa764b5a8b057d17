"""Values of expressions in a proof, as formulas over all paths to a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import z3

from p4switch import ir
from p4switch.testgen.conditions import NEVER
from p4switch.testgen.values import Scalar, constant, operate

if TYPE_CHECKING:
    from p4switch.testgen.proof import Prover, State


class Formulas(ir.ExpressionVisitor[Scalar]):
    """Evaluator of expressions in `state`. A value that this module does not follow is a free variable."""

    def __init__(self, prover: Prover, state: State) -> None:
        self._prover, self._state = prover, state

    def const(self, expr: ir.Const) -> Scalar:
        return constant(expr.value, expr.type)

    def field(self, expr: ir.FieldRef) -> Scalar:
        return self._prover.load((expr.header, expr.name), expr.type, self._state)

    def param(self, expr: ir.Param) -> Scalar:
        return self._prover.params[expr.index]

    def op(self, expr: ir.Op) -> Scalar:
        first = expr.args[0].accept(self)
        known = first.formula is None
        if known and expr.op in ("&&", "||") and bool(first.number) == (expr.op == "||"):
            return first
        if known and expr.op == "?:":
            return expr.args[1 if first.number else 2].accept(self)
        rest = [arg.accept(self) for arg in expr.args[1:]]
        return rest[0] if known and expr.op in ("&&", "||") else operate(expr, [first, *rest])

    def valid(self, expr: ir.Valid) -> Scalar:
        if expr.header.stack:
            return self._free(expr)
        valid = self._state.valid.get(expr.header.name, NEVER)
        known = z3.is_true(valid) or z3.is_false(valid)
        return Scalar(int(z3.is_true(valid)), None if known else valid)

    def _free(self, expr: ir.Expr) -> Scalar:
        return self._prover.free(expr.type)

    last_field = elem_field = lookahead = last_index = _free
