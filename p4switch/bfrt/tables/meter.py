"""Meters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.bfrt.attributes import Attribute
from p4switch.bfrt.byte_counts import MeterByteCountAdjust
from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.base import TABLE_KINDS, no_limits
from p4switch.bfrt.tables.cells import Cells
from p4switch.bfrt.tables.entities import P4Update, write_p4
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo


@TABLE_KINDS.register("Meter")
class MeterTable(Cells):
    """Meters."""

    entity = "meter_entry"
    offers: ClassVar[Mapping[str, type[Attribute]]] = {**Cells.offers, "MeterByteCountAdjust": MeterByteCountAdjust}

    def meter_name(self, state: State) -> str:
        """Return the meter's name in the program."""
        return self.object_name

    def bare(self) -> Message:
        """Return the P4Runtime message that selects all meters."""
        return p4runtime_pb2.MeterEntry(meter_id=self._p4_id("meter"))

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set rates and bursts."""
        if not cell.HasField("config"):
            cell.config.CopyFrom(no_limits())
        self._take_rates(given, cell.config)

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put rates and bursts into data."""
        self._put_rates(data, cell.config if cell.HasField("config") else None, state)

    def clear(self, state: State) -> Undo:
        """Make all meters green for every packet."""
        return write_p4(state, P4Update.MODIFY, self.entity, self.bare())
