"""`register`: an array of cells that keep the values written to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.v1model import EXTERNS
from p4switch.compiler.midend.storage import scalar_type

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject, Lowering, Machine, Pipeline, Statements, Value, ast


def _cell(machine: Machine, name: str, index: ir.Expr) -> tuple[str, int]:
    size = machine.registers[name].size
    return name, machine.inside(index, size, f"an index outside of register '{name}'")


@dataclass(slots=True, eq=False)
class RegisterRead(ir.ExternOperation):
    target: ir.Place = field(metadata=ir.WRITTEN)
    register: str = field(metadata=ir.named("register_array"))
    index: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "register_read"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        register = to.program.register(self.register)
        at = to.index("uint32_t", self.index)
        with to.within(at, register.size):
            cell = to.x.cell(register, at)
            to.touch("register", register.name, at, 0, cell.memory)
            place = to.x.place(self.target)
            place.store(to.em, cell.low(to.em, place.width))

    def run(self, machine: Machine) -> None:
        cell = _cell(machine, self.register, self.index)
        if cell not in machine.cells:
            register = machine.registers[self.register]
            if self.register in machine.direct:  # a cell is initialised when its entry is added
                cell_value = machine.number(register.initial)
            else:
                cell_value = machine.input(f"register {cell[0]} {cell[1]}", register.width)
                machine.out.registers[cell] = cell_value.number
            machine.cells[cell] = cell_value
        machine.assign(self.target, machine.cells[cell])

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.access(self, self.register, "read", self.index)


@dataclass(slots=True, eq=False)
class RegisterWrite(ir.ExternOperation):
    register: str = field(metadata=ir.named("register_array"))
    index: ir.Expr = field(metadata=ir.READ)
    value: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "register_write"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        register = to.program.register(self.register)
        at = to.index("uint32_t", self.index)
        with to.within(at, register.size):
            cell = to.x.cell(register, at)
            cell.store(to.em, to.x.low(self.value, register.width))
            to.touch("register", register.name, at, 1, cell.memory)

    def run(self, machine: Machine) -> None:
        cell = _cell(machine, self.register, self.index)
        machine.cells[cell] = machine.resized(self.value, ir.Bits(machine.registers[self.register].width))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.access(self, self.register, "write", self.index, self.value)


@EXTERNS.register("register")
class Register(ExternType):
    operations = (RegisterRead, RegisterWrite)
    stateful = True
    p4info = "REGISTER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read, "write": self._write}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        result, index_value = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 1, index_value)
        to.externs.into(call, 0, result, lambda place: RegisterRead(place, extern.path, index, call.pos))
        return None

    def _write(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index_value, value = to.externs.call_arguments(call)
        index = to.externs.scalar_argument(call, 0, index_value)
        to.emit(RegisterWrite(extern.path, index, to.externs.scalar_argument(call, 1, value), call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        t = scalar_type(extern.type_args[0])
        if not isinstance(t, ir.Bits):
            what = f"a register of {extern.type_args[0]}"
            raise to.error(extern.node, f"{what} is not supported: expected bit<> or int<>")
        size, initial = to.externs.size_argument(extern), self.initial(extern, t.width, to)
        to.out.registers.append(ir.Register(extern.path, size, t.width, extern.node.pos, initial))

    def initial(self, extern: ExternObject, width: int, to: Lowering) -> int:
        """Return the initial value of the cells, which have `width` bits."""
        return 0

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.registers.add()
        builder.indexed(message, extern, type_argument=1)
        message.type_spec.CopyFrom(builder.specs.convert(extern.type_args[0]))
