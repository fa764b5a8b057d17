"""`DirectRegister` and `DirectRegisterAction`: a register with a cell for each entry of its table.

A cell is initialised when its entry is added. The default action, which runs if no entry is hit, has a cell of its own
after those of the entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.register import (
    cell_width,
    initial_of,
    publish_cell,
    read_cell,
    run_on_cell,
    write_cell,
)
from p4switch.architectures.v1model.externs.register import RegisterRead, RegisterWrite
from p4switch.compiler.midend.elaborate import ExternObject

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Lowering, Value, ast


@EXTERNS.register("DirectRegister")
class DirectRegister(ExternType):
    operations = (RegisterRead, RegisterWrite)
    stateful = direct = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read, "write": self._write}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        return read_cell(extern, to.tables.entry(extern, call), call, to)

    def _write(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        (value,) = to.externs.call_arguments(call)
        write_cell(extern, to.tables.entry(extern, call), value, call, to)

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        cells = to.externs.entry_cells(extern)
        if cells is not None:
            initial = initial_of(extern, to)
            to.out.registers.append(ir.Register(extern.path, cells, cell_width(extern, to), extern.node.pos, initial))

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        """Add the cell's numbers to the table's data. Their ids follow those of the actions' parameters."""
        parameters = [each["id"] for action in table.actions or [] for each in action["data"]]
        publish_cell(extern, table, schema, max(parameters, default=0) + 1)
        table.operations.append("SyncRegisters")


@EXTERNS.register("DirectRegisterAction")
class DirectRegisterAction(ExternType):
    operations = (RegisterRead, RegisterWrite)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        register = extern.args["reg"]
        assert isinstance(register, ExternObject)
        entry = to.tables.entry(register, call)
        return run_on_cell(extern, register, entry, to.externs.call_arguments(call), call, to)
