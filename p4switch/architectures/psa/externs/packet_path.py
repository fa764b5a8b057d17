"""`psa_clone_i2e` and similar functions, which decide what happens to a packet at the end of ingress or egress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.psa import EXTERNS
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.values import EXPRS, StructValue

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Value, ast

RECIRCULATE_PORT = 0xFFFFFFFA  # PSA_PORT_RECIRCULATE


def _field(value: Value, name: str) -> ir.Expr:
    assert isinstance(value, StructValue)
    field = value.fields[name]
    assert isinstance(field, EXPRS)
    return field


def _not(expr: ir.Expr) -> ir.Expr:
    return fold.make("!", ir.BOOL, expr)


@EXTERNS.register("psa_clone_i2e")
@EXTERNS.register("psa_clone_e2e")
class IsCloned(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        (output,) = to.externs.call_arguments(call)
        return _field(output, "clone")


@EXTERNS.register("psa_resubmit")
class IsResubmitted(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        (output,) = to.externs.call_arguments(call)
        return fold.conjunction([_not(_field(output, "drop")), _field(output, "resubmit")])


@EXTERNS.register("psa_normal")
class IsNormal(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        (output,) = to.externs.call_arguments(call)
        return fold.conjunction([_not(_field(output, "drop")), _not(_field(output, "resubmit"))])


@EXTERNS.register("psa_recirculate")
class IsRecirculated(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        output, given = to.externs.call_arguments(call)
        port = _field(given, "egress_port")
        there = fold.make("==", ir.BOOL, port, fold.const(RECIRCULATE_PORT, port.type))
        return fold.conjunction([_not(_field(output, "drop")), there])
