"""Port metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.keys import width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.entities import P4Update, write_p4

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("PortMetadata")
class PortMetadataTable(Table):
    """Port metadata in front of each packet: the fields of a struct, or one number. Every port has an entry."""

    takes = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY, _Update.DELETE})
    _STATE, _MEMBER = "$port", "metadata"

    def _fields(self, state: State) -> dict[int, int]:
        """Return, by field id, the position of the field's lowest bit in the port metadata."""
        _, known = state.path.find(self._STATE)
        left = dict(known.kind.cell)[self._MEMBER]
        places = {}
        for ident, info in self._data.items():
            left -= width_of(info)
            places[ident] = left
        return places

    def _value(self, port: int, state: State) -> int:
        return state.path.members(self._STATE, port)[self._MEMBER]

    def _store(self, values: Mapping[int, int], state: State) -> Undo:
        """Write the metadata of each port."""
        cells = []
        for port, value in values.items():
            members = {**state.path.members(self._STATE, port), self._MEMBER: value}
            cells.append(state.path.entry(self._STATE, port, members))
        return write_p4(state, P4Update.MODIFY, "extern_entry", *cells)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the fields of a port; fields that are not given keep their values. DELETE sets them to 0."""
        port, value = self._index(entry), 0
        if kind != _Update.DELETE:
            value = self._value(port, state)
            for ident, field in self._given(entry.data, self._data).items():
                info, shift = self._data[ident], self._fields(state)[ident]
                mask = (1 << width_of(info)) - 1
                value = value & ~(mask << shift) | self._number(field, info) << shift
        return self._store({port: value}, state)

    def clear(self, state: State) -> Undo:
        """Set the fields of all ports to 0."""
        return self._store(dict.fromkeys(self._set_ports(state), 0), state)

    def _set_ports(self, state: State) -> list[int]:
        _, known = state.path.find(self._STATE)
        return [port for port in range(known.size) if self._value(port, state)]

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested port, or the ports whose fields are not 0."""
        if entry.is_default_entry:
            self._refuse_default()
        keyed = entry.WhichOneof("value") == "key"
        entries = []
        for port in [self._index(entry)] if keyed else self._set_ports(state):
            value, reply = self._value(port, state), self._entry(port)
            for ident, shift in self._fields(state).items():
                self._put(reply.data, ident, value >> shift & (1 << width_of(self._data[ident])) - 1)
            entries.append(reply)
        return entries
