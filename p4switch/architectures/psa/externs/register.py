"""`Register`: like v1model's register, but `read` returns a value, and cells may have an initial value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs import register
from p4switch.compiler.midend.values import Ignored

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast


@EXTERNS.register("Register")
class Register(register.Register):
    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        (index_value,) = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, index_value)
        return to.externs.result(call, lambda place: register.RegisterRead(place, extern.path, index, call.pos))

    def initial(self, extern: ExternObject, width: int, to: Lowering) -> int:
        given = extern.args.get("initial_value", Ignored())
        if isinstance(given, Ignored):
            return 0
        if not isinstance(given, ir.Const):
            raise to.error(extern.node, "the initial value of a register has to be a compile-time constant")
        return given.value & (1 << width) - 1
