"""`Register` and `RegisterAction`: cells of one number or a pair, and code that runs on one cell atomically.

The engine stores a cell as one number; the first field of a pair is in its higher bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.hash import joined
from p4switch.architectures.v1model.externs.register import RegisterRead, RegisterWrite
from p4switch.bfrt.fields import Id, annotation, data_field, scalar, value_type
from p4switch.compiler import ast, types
from p4switch.compiler.midend import fold
from p4switch.compiler.midend.elaborate import ExternObject
from p4switch.compiler.midend.storage import scalar_type
from p4switch.compiler.midend.values import EXPRS, Frame, Ignored, Value
from p4switch.compiler.walk import walk

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Builder, Lowering

_WIDTHS = (1, 8, 16, 32, 64)  # widths of a cell in bits; the largest is a pair of numbers of 32 bits
_WHOLE = ir.Const(0, ir.Bits(32))


def cell_fields(t: types.Type) -> list[tuple[str, types.Type]]:
    """Return name and type of each number in a cell of type `t`; the only number of a cell has an empty name."""
    t = types.strip_newtype(t)
    if isinstance(t, types.Struct):
        return [(f.name, types.strip_newtype(f.type)) for f in t.fields]
    return [("", t)]


def cell_width(extern: ExternObject, to: Lowering) -> int:
    """Return the width of a register's cells in bits.

    Raises CompileError for a width that a chip does not support.
    """
    t = extern.type_args[0]
    scalars = [scalar_type(field) for _, field in cell_fields(t)]
    widths = [types.width_of(s) if isinstance(s, (types.Bits, types.Bool)) else None for s in scalars]
    total = sum(w or 0 for w in widths)
    if None in widths or len(widths) > 2 or total not in _WIDTHS:
        raise to.error(extern.node, f"a register of {t} is not supported: expected 1, 8, 16 or 32 bits, or a pair")
    return total


def _unpacked(raw: ir.Expr, t: types.Type) -> list[ir.Expr]:
    """Return the numbers in the cell `raw`."""
    numbers, at = [], types.width_of(raw.type) or 1
    for _, field in cell_fields(t):
        scalar = scalar_type(field)
        assert scalar is not None
        width = types.width_of(scalar) or 1
        numbers.append(fold.make("cast", scalar, fold.slice_(raw, at - 1, at - width)))
        at -= width
    return numbers


def read_cell(extern: ExternObject, index: ir.Expr, call: ast.Call, to: Lowering) -> Value:
    """Read a cell into new storage and return it."""
    t = extern.type_args[0]
    raw = to.temp(ir.Bits(cell_width(extern, to)), "cell")
    assert isinstance(raw, ir.FieldRef)
    to.emit(RegisterRead(raw, extern.path, index, call.pos))
    value = to.temp(t, "value")
    for place, part in zip(to.externs.fields_of(value, call), _unpacked(raw, t), strict=True):
        to.copies.assign(place, part, call.pos)
    return value


def write_cell(extern: ExternObject, index: ir.Expr, value: Value, call: ast.Call, to: Lowering) -> None:
    """Emit a write of `value` to a cell."""
    whole = to.copies.saved(joined(to.externs.fields_of(value, call)))
    to.emit(RegisterWrite(extern.path, index, whole, call.pos))


def _index(call: ast.Call, at: int, value: Value, to: Lowering) -> ir.Expr:
    return to.copies.saved(to.externs.scalar_argument(call, at, value))


@EXTERNS.register("Register")
class Register(ExternType):
    operations = (RegisterRead, RegisterWrite)
    stateful = True
    p4info = "REGISTER"
    bfrt = 0x8B

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read, "write": self._write}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        (index,) = to.externs.call_arguments(call)
        return read_cell(extern, _index(call, 0, index, to), call, to)

    def _write(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index, value = to.externs.call_arguments(call)
        write_cell(extern, _index(call, 0, index, to), value, call, to)

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        size, initial = to.externs.size_argument(extern), initial_of(extern, to)
        to.out.registers.append(ir.Register(extern.path, size, cell_width(extern, to), extern.node.pos, initial))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.registers.add()
        builder.indexed(message, extern, type_argument=1)
        message.type_spec.CopyFrom(builder.specs.convert(extern.type_args[0]))

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "Register", extern.number("size"), annotated=False)
        table.key(Id.REGISTER_INDEX, "$REGISTER_INDEX", value_type("uint32"))
        publish_cell(extern, table, schema)
        table.operations.append("Sync")


def publish_cell(extern: ExternObject, table: Table, schema: Schema, first: int = 1) -> None:
    """Add the numbers of a register's cell to the data of a table; their ids begin with `first`."""
    kind = [annotation("$bfrt_field_class", value="register_data")]
    for field in schema.fields(extern.type_args[0], f"{extern.path}.", first, annotations=kind):
        table.singleton(field, mandatory=True)


def initial_of(extern: ExternObject, to: Lowering) -> int:
    """Return the initial value of a register's cells."""
    given = extern.args.get("initial_value", Ignored())
    if isinstance(given, Ignored):
        return 0
    whole = joined(to.externs.fields_of(given, extern.node)) if not isinstance(given, EXPRS) else given
    if not isinstance(whole, ir.Const):
        raise to.error(extern.node, "the initial value of a register has to be a compile-time constant")
    return whole.value & (1 << cell_width(extern, to)) - 1


@EXTERNS.register("RegisterParam")
class RegisterParam(ExternType):
    """Parameter of register actions that the control plane may change: a register with one cell."""

    operations = (RegisterRead,)
    p4info = "REGISTER"
    bfrt = 0x8D

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": lambda call, extern, to: read_cell(extern, _WHOLE, call, to)}

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        width, initial = cell_width(extern, to), initial_of(extern, to)
        to.out.registers.append(ir.Register(extern.path, 1, width, extern.node.pos, initial))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.registers.add()
        builder.object(message, extern)
        message.size = 1
        message.type_spec.CopyFrom(builder.specs.convert(extern.type_args[0]))

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "RegisterParam", 1)
        value = scalar(extern.type_args[0])
        if value["type"] == "bytes":
            table.singleton(
                data_field(1, "value", value | {"default_value": extern.number("initial_value")}), mandatory=True
            )
        register = _register_of(extern, schema)
        if register is not None:
            table.depends(schema.id(Register.bfrt, register.path))


def _register_of(param: ExternObject, schema: Schema) -> ExternObject | None:
    """Return the register used by the last action in the source that reads a parameter."""
    last = None
    for action in schema.lowered.externs:
        register = action.args.get("reg")
        if isinstance(register, ExternObject) and isinstance(action.node, ast.Instantiation):
            code = (node for method in action.node.methods for node in walk(method.body, schema.facts))
            if any(isinstance(node, ast.Name) and schema.facts.decls.get(node) is param.node for node in code):
                last = register
    return last


@EXTERNS.register("RegisterAction")
class RegisterAction(ExternType):
    operations = (RegisterRead, RegisterWrite)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        register = extern.args["reg"]
        assert isinstance(register, ExternObject)
        index, *more = to.externs.call_arguments(call)
        at = _WHOLE if isinstance(index, Ignored) else _index(call, 0, index, to)
        return run_on_cell(extern, register, at, more, call, to)


def run_on_cell(
    action: ExternObject, register: ExternObject, index: ir.Expr, more: list[Value], call: ast.Call, to: Lowering
) -> Value | None:
    """Read a cell, run the action's `apply` on it and write it back; return the action's first result.

    Results that `apply` does not assign are 0. Its other results are stored in `more`.
    """
    assert isinstance(action.node, ast.Instantiation)
    apply = next(method for method in action.node.methods if method.name == "apply")
    value = read_cell(register, index, call, to)
    frame = Frame(action.block.frame if action.block is not None else to.globals)
    results: list[Value] = []
    for param in apply.params[1:]:
        place = to.temp(to.type_of(param), param.name)
        for field in to.externs.fields_of(place, call):
            to.copies.assign(field, fold.make("cast", field.type, fold.const(0, ir.Bits(1))), call.pos)
        frame.values[param] = place
        results.append(place)
    frame.values[apply.params[0]] = value
    with to.activation(frame):
        to.calls.body(apply.body, None, [])
    write_cell(register, index, value, call, to)
    for target, result in zip(more, results[1:], strict=False):
        if not isinstance(target, Ignored):
            to.copies.assign(target, result, call.pos)
    if results:
        return results[0]
    t = to.type_of(call)
    nothing = to.temp(t)
    for field in to.externs.fields_of(nothing, call):
        to.copies.assign(field, fold.make("cast", field.type, fold.const(0, ir.Bits(1))), call.pos)
    return nothing
