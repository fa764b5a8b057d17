"""Idle time-outs of BfRuntime: clients poll which entries of a table packets hit, or are notified of it.

A table ages in sweeps, as on a chip. Each sweep subtracts its interval from an entry's remaining time, or resets the
remaining time if a packet hit the entry since the previous sweep. The initial value is P4Runtime's `idle_timeout_ns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from p4switch.bfrt.attributes import Attribute, Client, Notice, Owner
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.p4runtime.errors import invalid

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo
    from p4switch.p4runtime.tables import Entry, Key

NS_A_MS = 1_000_000
_IdleTable = bfruntime_pb2.IdleTable
_POLL, _NOTIFY = _IdleTable.IDLE_TABLE_POLL_MODE, _IdleTable.IDLE_TABLE_NOTIFY_MODE
_Notification = bfruntime_pb2.IdleTimeoutNotification
_IDLE_FLAG, _ACTIVE_FLAG = "enable_idletimeout_notifications", "enable_entry_active_notifications"
IDLE, ACTIVE = 0, 1
"""Indices of the two values of `$ENTRY_HIT_STATE`."""


@dataclass
class _Age:
    """Age of an entry.

    `seen_ns` is the time of the last hit that was noticed, and `left_ns` the time until the entry
    is idle.
    """

    inserted_ns: int
    seen_ns: int
    left_ns: int
    idle: bool = False
    was_hit: bool = False  # True if packets had hit it at a client's last update of hit states


class AgingTable(Owner, Protocol):
    """A table whose entries age."""

    @property
    def table_id(self) -> int:
        """The table's number in P4Runtime."""

    def key_alone(self, entry: Message) -> Message:
        """Return a BfRuntime TableEntry that has only the key of a P4Runtime entry."""


class IdleTimeout(Attribute):
    """Aging of a table, if it is enabled."""

    kind = "idle_table"

    def __init__(self, table: AgingTable) -> None:
        super().__init__(table)
        self._table: AgingTable = table
        self._settings = _IdleTable()
        self._client_id = 0
        self._next_ns = 0
        self._ages: dict[Key, _Age] = {}

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Enable aging, with notifications for a client, or disable it."""
        if given.idle_table_mode not in (_POLL, _NOTIFY):
            invalid(f"{self._table.name}: mode {given.idle_table_mode}; expected {_POLL} or {_NOTIFY}")
        message = _IdleTable(idle_table_mode=given.idle_table_mode, enable=given.enable)
        if given.idle_table_mode == _NOTIFY:
            if not client.wants.enable_idletimeout_notifications:
                invalid(f"{self._table.name}: client {client.id} has not subscribed to idle time-outs")
            if given.enable and not given.ttl_query_interval:
                invalid(f"{self._table.name}: ttl_query_interval 0; expected 1 or more")
            message.CopyFrom(given)
        old = self._settings, self._client_id, self._next_ns
        self._settings, self._client_id = message, client.id
        self._next_ns = state.tables.now_ns() + self._interval_ns

        def undo() -> None:
            self._settings, self._client_id, self._next_ns = old

        return undo

    def read(self, into: Message) -> None:
        """Put the aging settings of the table into a message."""
        into.CopyFrom(self._settings)

    @property
    def _interval_ns(self) -> int:
        return int(self._settings.ttl_query_interval) * NS_A_MS

    @property
    def _sweeps(self) -> bool:
        return bool(self._settings.enable and self._settings.idle_table_mode == _NOTIFY)

    def _age(self, key: Key, entry: Entry) -> _Age:
        age = self._ages.get(key)
        if age is None or age.inserted_ns != entry.inserted_ns:
            age = self._ages[key] = _Age(entry.inserted_ns, 0, entry.idle_timeout_ns)
        return age

    # Data of entries

    def left_ms(self, key: Key, entry: Entry) -> int:
        """Return the time in milliseconds until an entry is idle."""
        return self._age(key, entry).left_ns // NS_A_MS

    def hit_state(self, key: Key, entry: Entry, hit_ns: int, *, from_hw: bool) -> int:
        """Return the hit state of an entry, IDLE or ACTIVE.

        If the table notifies clients, the state is that of the last sweep. Otherwise it says whether
        packets had hit the entry at the last update of hit states; `from_hw` updates it first.
        """
        age = self._age(key, entry)
        if self._sweeps:
            return IDLE if age.idle else ACTIVE
        if from_hw:
            self._look(age, hit_ns)
        return ACTIVE if age.was_hit else IDLE

    @staticmethod
    def _look(age: _Age, hit_ns: int) -> None:
        age.was_hit = hit_ns > age.seen_ns
        age.seen_ns = hit_ns

    def update_hit_states(self, state: State) -> None:
        """Update which entries packets have hit since the last update."""
        for key, entry, hit_ns in state.tables.hits(self._table.table_id):
            self._look(self._age(key, entry), hit_ns)

    def set_entry(self, key: Key, entry: Entry, *, begins: bool, hit_state: int | None, hit_ns: int) -> Undo:
        """Restart the time-out of an entry, or set its hit state; return how to undo it."""
        age = self._age(key, entry)
        old = replace(age)
        if begins:
            age.left_ns, age.idle = entry.idle_timeout_ns, False
        if hit_state is not None:
            age.was_hit = hit_state == ACTIVE
            age.seen_ns = hit_ns - 1 if hit_state == ACTIVE else hit_ns

        def undo() -> None:
            self._ages[key] = old

        return undo

    # Notifications

    def notices(self, state: State) -> Iterator[Notice | None]:
        """Sweep the table if it is time to, and yield notifications of entries that became idle or active.

        None stands for an entry without a change.
        """
        now_ns = state.tables.now_ns()
        if not self._sweeps or now_ns < self._next_ns:
            return
        self._next_ns += self._interval_ns
        if self._next_ns <= now_ns:
            self._next_ns = now_ns + self._interval_ns
        swept: dict[Key, _Age] = {}
        for key, entry, hit_ns in state.tables.hits(self._table.table_id):
            age = swept[key] = self._age(key, entry)
            was_idle = age.idle
            self._sweep(age, entry, hit_ns, now_ns)
            if age.idle == was_idle:
                yield None
                continue
            message = bfruntime_pb2.StreamMessageResponse()
            note = message.idle_timeout_notification
            note.table_entry.CopyFrom(self._table.key_alone(state.tables.key_message(self._table.table_id, key, entry)))
            note.type = _Notification.ENTRY_IDLE if age.idle else _Notification.ENTRY_ACTIVE
            yield Notice(self._client_id, _IDLE_FLAG if age.idle else _ACTIVE_FLAG, message)
        self._ages = swept

    def _sweep(self, age: _Age, entry: Entry, hit_ns: int, now_ns: int) -> None:
        """Subtract an interval from an entry's remaining time, or reset that time after a hit.

        An entry that is younger than the interval is left alone.
        """
        if hit_ns > age.seen_ns:
            age.seen_ns, age.left_ns, age.idle = hit_ns, entry.idle_timeout_ns, False
        elif age.left_ns and now_ns - entry.inserted_ns >= self._interval_ns:
            age.left_ns = max(0, age.left_ns - self._interval_ns)
            age.idle = not age.left_ns
