"""Arrays of cells. Cells always exist."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.base import Table
from p4switch.bfrt.tables.entities import P4Update, read_p4, write_p4

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo


class AnyPipe(Table):
    """Base of tables that accept requests for one pipe as well as for all pipes."""

    always = ("EntryScope",)

    def check_target(self, target: Message) -> None:
        """Accept writes for one pipe and for all pipes."""

    def check_read(self, entry: Message, pipe: int) -> None:
        """Accept reads from one pipe and from all pipes."""


class Cells(AnyPipe):
    """Base of arrays of cells. INSERT and MODIFY are the same, and DELETE without a key clears all cells."""

    entity: ClassVar[str]
    """Name of P4Runtime's entity."""

    @abstractmethod
    def bare(self) -> Message:
        """Return the P4Runtime message that selects all cells."""

    @abstractmethod
    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set the given fields of a cell."""

    @abstractmethod
    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put a cell into the data of an entry."""

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a cell; fields that are not given keep their values."""
        return self._write_cell(self._index(entry), entry, state)

    def _write_cell(self, index: int, entry: Message, state: State) -> Undo:
        cell = self._cell(index, state)
        self.take(self._given(entry.data, self._data), cell, state)
        return write_p4(state, P4Update.MODIFY, self.entity, cell)

    def _cell(self, index: int, state: State) -> Message:
        query = self.bare()
        query.index.index = index
        (cell,) = read_p4(state, self.entity, query)
        return cell

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the cell that the key of `entry` selects, or all cells if it has no key."""
        if entry.is_default_entry:
            self._refuse_default()
        keyed = entry.WhichOneof("value") == "key"
        cells = [self._cell(self._index(entry), state)] if keyed else read_p4(state, self.entity, self.bare())
        return [self._encoded(cell, state, cell.index.index) for cell in cells]

    def _encoded(self, cell: Message, state: State, index: int | None) -> Message:
        entry = self._entry(index)
        self.put(cell, entry.data, state)
        return entry

    def usage(self, state: State) -> int:
        """Return the size, because cells always exist."""
        return int(self._info["size"])
