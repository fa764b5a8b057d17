"""Adjustment of the bytes that meters count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from p4switch.bfrt.attributes import Attribute, Client, Owner
from p4switch.bfrt.messages import Message

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo


class MeteredTable(Owner, Protocol):
    """Table of meters, or table with a direct meter."""

    def meter_name(self, state: State) -> str:
        """Return the meter's name in the program."""


class MeterByteCountAdjust(Attribute):
    """Number of bytes that a table's meters add to the length of each packet; it may be negative."""

    kind = "byte_count_adj"

    def __init__(self, table: MeteredTable) -> None:
        super().__init__(table)
        self._table: MeteredTable = table
        self._bytes = 0

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Set the adjustment."""
        old = self._bytes
        self._set(given.byte_count_adjust, state)
        return lambda: self._set(old, state)

    def _set(self, nbytes: int, state: State) -> None:
        state.switch.meter_adjust(self._table.meter_name(state), nbytes)
        self._bytes = nbytes

    def read(self, into: Message) -> None:
        """Put the adjustment into a message."""
        into.byte_count_adjust = self._bytes
