"""Tables of ports, and of their counters. Most settings of ports are stored and returned, but have no effect.

Link rates are not configured here. Settings that would change forwarding (loopback, pauses, a direction) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from p4switch.architectures.ports import WIDTH_BITS
from p4switch.bfrt.attributes import Attribute, Client, Notice
from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.entities import in_turn
from p4switch.bfrt.tables.fixed import FixedTable
from p4switch.p4runtime.errors import already_exists, invalid, not_found, unimplemented
from p4switch.p4runtime.ports import PortCounts

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_MAX_PORT = (1 << WIDTH_BITS) - 1
_NEEDED = ("SPEED", "FEC")
_COUNTED = {
    "FramesReceivedOK": "frames_received",
    "FramesReceivedAll": "frames_received",
    "OctetsReceivedinGoodFrames": "octets_received",
    "OctetsReceived": "octets_received",
    "PriorityPauseFrames": "pfc_received",
    "FramesTransmittedOK": "frames_sent",
    "FramesTransmittedAll": "frames_sent",
    "OctetsTransmittedwithouterror": "octets_sent",
    "OctetsTransmittedTotal": "octets_sent",
    "FramesTransmittedPriPause": "pfc_sent",
}
"""Member of `PortCounts` for each field. Other fields are 0, because no frame has an error."""
_KEPT = ("SPEED", "FEC", "N_LANES", "PORT_ENABLE", "AUTO_NEGOTIATION")


class PortStatus(Attribute):
    """Attribute by which clients are notified when ports go up or down."""

    kind = "port_status_notify"

    def __init__(self, table: PortTable) -> None:
        super().__init__(table)
        self._ports = table
        self._told: dict[int, dict[int, int]] = {}
        """Port states that were last sent to each subscribed client."""

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Enable or disable notifications for a client."""
        if given.enable and not client.wants.enable_port_status_change_notifications:
            invalid(f"{self._table.name}: client {client.id} has not subscribed to changes of ports")
        old = dict(self._told)
        self._told.pop(client.id, None)
        if given.enable:
            self._told[client.id] = self._ports.states(state)

        def undo() -> None:
            self._told = old

        return undo

    def read(self, into: Message) -> None:
        """Put into a message whether notifications are enabled."""
        into.enable = bool(self._told)

    def notices(self, state: State) -> Iterator[Notice | None]:
        """Yield the changes since the last call."""
        now = self._ports.states(state)
        for client_id, known in self._told.items():
            for port, up in now.items():
                if known.get(port, 0) != up:
                    message = bfruntime_pb2.StreamMessageResponse()
                    message.port_status_change_notification.table_entry.CopyFrom(self._ports.key(port))
                    message.port_status_change_notification.port_up = bool(up)
                    yield Notice(client_id, "enable_port_status_change_notifications", message)
            self._told[client_id] = now


@TABLE_KINDS.register("PortConfigure")
class PortTable(FixedTable):
    """Ports that clients have added."""

    offers: ClassVar[Mapping[str, type[Attribute]]] = {"port_status_notif_cb": PortStatus}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._added: dict[int, dict[str, int]] = {}

    def forget(self) -> None:
        """Remove all ports."""
        super().forget()
        self._added = {}

    def _default(self, name: str) -> int:
        return int(self._field(name)["type"].get("default_value", 0))

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Add or change a port; fields that are not given keep their value or initial value.

        DELETE of a missing port has no effect.
        """
        port = self._index(entry)
        if port > _MAX_PORT:
            invalid(f"{self.name}: port {port}; expected at most {_MAX_PORT}")
        old = self._added.get(port)
        if kind == _Update.DELETE:
            return self._set(port, None)
        if old is not None and kind == _Update.INSERT:
            already_exists(f"{self.name}: port {port} is there")
        if old is None and kind == _Update.MODIFY:
            not_found(f"{self.name}: port {port} does not exist")
        given = self._names(entry.data)
        for name in _NEEDED:
            if old is None and name not in given:
                invalid(f"{self.name}: ${name} is missing")
        fields = dict(old or {name: self._default(name) for name in _KEPT})
        for name in given:
            value = self._value(given, name, 0)
            if name in _KEPT:
                fields[name] = value
            elif value != self._default(name):
                unimplemented(f"{self.name}: ${name}: only the value that it begins with is supported")
        return self._set(port, fields)

    def _set(self, port: int, fields: dict[str, int] | None) -> Undo:
        old = self._added.pop(port, None)
        if fields is not None:
            self._added[port] = fields
        return lambda: None if fields is old else self._set(port, old)

    def _indices(self, state: State) -> list[int]:
        return sorted(self._added)

    def _remove(self, index: int, state: State) -> Undo:
        return self._set(index, None)

    def _found(self, index: int, state: State) -> Message:
        fields = {info["name"][1:]: self._default(info["name"][1:]) for info in self._data.values()}
        fields |= {**self._added[index], "IS_VALID": 1, "PORT_UP": self.up(index, state)}
        return self._entry_of(index, **fields)

    def up(self, port: int, state: State) -> int:
        """Return 1 if a port was added and is enabled, and its link is up."""
        return int(self._added[port]["PORT_ENABLE"] and state.ports.is_up(port))

    def states(self, state: State) -> dict[int, int]:
        """Return the state of each port that was added: 1 if it is up, else 0."""
        return {port: self.up(port, state) for port in self._indices(state)}

    def key(self, port: int) -> Message:
        """Return an entry that has only the key of a port."""
        entry = self._entry(port)
        entry.ClearField("data")
        return entry


@TABLE_KINDS.register("PortStat")
class PortStatTable(FixedTable):
    """Counters of the ports that the switch has. DELETE sets them to 0."""

    takes = frozenset({_Update.DELETE})

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._before: dict[int, PortCounts] = {}
        """Counts of ports when they were last set to 0."""

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the counts of a port to 0."""
        index = self._index(entry)
        self._check_exists(kind, index in state.ports.counts())
        return self._remove(index, state)

    def _indices(self, state: State) -> list[int]:
        return sorted(state.ports.counts())

    def _remove(self, index: int, state: State) -> Undo:
        return self._set(index, state.ports.counts()[index])

    def clear(self, state: State) -> Undo:
        """Set the counts of all ports to 0."""
        return in_turn(self._set(index, counts) for index, counts in state.ports.counts().items())

    def _set(self, index: int, counts: PortCounts) -> Undo:
        old = self._before.get(index, PortCounts())
        self._before[index] = counts
        return lambda: self._set(index, old)

    def _found(self, index: int, state: State) -> Message:
        return self._of(index, state.ports.counts()[index])

    def _all_found(self, indices: Sequence[int], state: State) -> list[Message]:
        """Return entries with counts of the same time, because all ports are read at once."""
        counts = state.ports.counts()
        return [self._of(index, counts[index]) for index in indices]

    def _of(self, index: int, now: PortCounts) -> Message:
        before = self._before.get(index, PortCounts())
        fields = dict.fromkeys((info["name"][1:] for info in self._data.values()), 0)
        for name, member in _COUNTED.items():
            fields[name] = getattr(now, member) - getattr(before, member)
        return self._entry_of(index, **fields)
