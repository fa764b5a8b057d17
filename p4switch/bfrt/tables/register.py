"""Registers, and the parameters of their actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.keys import width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.cells import Cells
from p4switch.bfrt.tables.entities import P4Update, write_p4
from p4switch.p4runtime import p4data
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import invalid, unimplemented
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("Register")
class RegisterTable(Cells):
    """Registers. A cell read from several pipes has, for each field, one value per pipe."""

    entity = "register_entry"

    def _join(self, into: Message, entry: Message) -> None:
        """Add the values of another pipe."""
        into.data.fields.extend(entry.data.fields)

    def bare(self) -> Message:
        """Return the P4Runtime message that selects all cells."""
        return p4runtime_pb2.RegisterEntry(register_id=self._p4_id("register"))

    def _spec(self, state: State) -> tuple[Message, Message]:
        spec = state.pipeline.registers[self._p4_id("register")].type_spec
        return spec, state.pipeline.p4info.type_info

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set the numbers of a cell; all of them have to be given."""
        missing = [f["name"] for ident, f in self._data.items() if ident not in given]
        if missing:
            invalid(f"{self.name}: {missing[0]} is missing")
        numbers = [(self._number(given[ident], f), size(width_of(f))) for ident, f in self._data.items()]
        whole = b"".join(value.to_bytes(length, "big") for value, length in numbers)
        cell.data.CopyFrom(p4data.encoder(*self._spec(state))(whole))

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put the numbers of a cell into data."""
        whole = p4data.decode(*self._spec(state), cell.data)
        for ident, f in self._data.items():
            length = size(width_of(f))
            self._put(data, ident, int.from_bytes(whole[:length], "big"))
            whole = whole[length:]

    def clear(self, state: State) -> Undo:
        """Set all cells to their initial values."""
        return self._reset(self.bare(), state)

    def _reset(self, cell: Message, state: State) -> Undo:
        """Set one cell, or all cells, to the initial value in the program."""
        registers = state.pipeline.program.registers
        initial = next(each.initial for each in registers if each.name == self.object_name)
        left, whole = sum(width_of(f) for f in self._data.values()), b""
        for f in self._data.values():
            left -= width_of(f)
            whole += (initial >> left & (1 << width_of(f)) - 1).to_bytes(size(width_of(f)), "big")
        cell.data.CopyFrom(p4data.encoder(*self._spec(state))(whole))
        return write_p4(state, P4Update.MODIFY, self.entity, cell)


@TABLE_KINDS.register("RegisterParam")
class ParameterTable(RegisterTable):
    """Parameters of register actions: registers whose only cell is the default entry."""

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the number, or restore that of the program (RESET, DELETE)."""
        if self._restores(kind):
            return self._reset(self._cell(0, state), state)
        return self._write_cell(0, entry, state)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Refuse entries, because there is no key."""
        invalid(f"{self.name}: the table has no key; expected the default entry")

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the parameter's number, which is the default entry."""
        if not entry.is_default_entry:
            return []
        reply = self._encoded(self._cell(0, state), state, None)
        reply.is_default_entry = True
        return [reply]

    def clear(self, state: State) -> Undo:
        """Refuse to clear, because there are no entries."""
        unimplemented(f"{self.name}: DELETE is not supported")
