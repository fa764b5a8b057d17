"""Values of expressions in the execution of a program by a `Machine`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.testgen.values import Scalar, constant, operate, typed

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine


class Evaluation(ir.ExpressionVisitor[Scalar]):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def const(self, expr: ir.Const) -> Scalar:
        return constant(expr.value, expr.type)

    def field(self, expr: ir.FieldRef) -> Scalar:
        return self._machine.load(expr.header, expr.name, expr.type)

    def last_field(self, expr: ir.LastField) -> Scalar:
        header = self._machine.element(expr.stack, expr.member, None, last=True)
        return self._machine.load(header, expr.name, expr.type)

    def elem_field(self, expr: ir.ElemField) -> Scalar:
        header = self._machine.element(expr.stack, expr.member, expr.index, last=False)
        return self._machine.load(header, expr.name, expr.type)

    def param(self, expr: ir.Param) -> Scalar:
        return self._machine.params[expr.index]

    def op(self, expr: ir.Op) -> Scalar:
        if expr.op in ("&&", "||"):  # evaluate the second operand only if the first does not decide
            left = expr.args[0].accept(self)
            if left.formula is None and bool(left.number) == (expr.op == "||"):
                return left
            return operate(expr, [left, expr.args[1].accept(self)])
        if expr.op == "?:":
            condition = expr.args[0].accept(self)
            if condition.formula is None:
                return expr.args[1 if condition.number else 2].accept(self)
        return operate(expr, [arg.accept(self) for arg in expr.args])

    def valid(self, expr: ir.Valid) -> Scalar:
        return Scalar(int(self._machine.resolve(expr.header) in self._machine.valid))

    def lookahead(self, expr: ir.Lookahead) -> Scalar:
        m = self._machine
        m.need(expr.offset + expr.width)
        return typed(m.bits(m.packet.position + expr.offset, expr.width), expr.type)

    def last_index(self, expr: ir.LastIndex) -> Scalar:
        return Scalar((self._machine.next.get(expr.stack, 0) - 1) & 0xFFFFFFFF)
