"""`Register`: an array of cells that keep the values written to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs.register import RegisterRead, RegisterWrite
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import Ignored

if TYPE_CHECKING:
    from p4switch.compiler import ast
    from p4switch.compiler.midend.elaborate import ExternObject
    from p4switch.compiler.midend.lowering import Lowering
    from p4switch.compiler.midend.values import Value
    from p4switch.compiler.p4info.build import Builder


@EXTERNS.register("Register")
class Register(ExternType):
    operations = (RegisterRead, RegisterWrite)
    stateful = True
    p4info = "REGISTER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read, "write": self._write}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        (index_value,) = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, index_value)
        return to.externs.result(call, lambda place: RegisterRead(place, extern.path, index, call.pos))

    def _write(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index_value, value = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, index_value)
        to.emit(RegisterWrite(extern.path, index, to.externs.scalar_argument(call, 1, value), call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        t = scalar_type(extern.type_args[0])
        if not isinstance(t, ir.Bits):
            what = f"a register of {extern.type_args[0]}"
            raise to.error(extern.node, f"{what} is not supported: expected bit<> or int<>")
        size, initial = to.externs.size_argument(extern), _initial(extern, t.width, to)
        to.out.registers.append(ir.Register(extern.path, size, t.width, extern.node.pos, initial))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.registers.add()
        builder.indexed(message, extern, type_argument=1)
        message.type_spec.CopyFrom(builder.specs.convert(extern.type_args[0]))


def _initial(extern: ExternObject, width: int, to: Lowering) -> int:
    """Return the initial value of a register's cells."""
    given = extern.args.get("initial_value", Ignored())
    if isinstance(given, Ignored):
        return 0
    if not isinstance(given, ir.Const):
        raise to.error(extern.node, "the initial value of a register has to be a compile-time constant")
    return given.value & (1 << width) - 1
