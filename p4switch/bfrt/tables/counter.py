"""Counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.cells import Cells
from p4switch.bfrt.tables.entities import P4Update, write_p4
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo


@TABLE_KINDS.register("Counter")
class CounterTable(Cells):
    """Counters."""

    entity = "counter_entry"

    def bare(self) -> Message:
        """Return the P4Runtime message that selects all counters."""
        return p4runtime_pb2.CounterEntry(counter_id=self._p4_id("counter"))

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set counts."""
        self._take_counts(given, cell.data)

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put counts into data."""
        self._put_counts(data, cell.data)

    def clear(self, state: State) -> Undo:
        """Set all counts to 0."""
        zero = self.bare()
        zero.data.SetInParent()
        return write_p4(state, P4Update.MODIFY, self.entity, zero)
