"""A control plane without a data plane: the contents and the errors of the engine's `Switch`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField, Switch, Target

_TABLE_SIZES = {"EverythingIngress.exact_one": 16}


def as_switch(fake: FakeSwitch) -> Switch:
    """Return a fake switch with the type that a device expects."""
    return cast("Switch", fake)


class FakeSwitch:
    """Keeps the values that it gets. `calls` has the names of the methods called, in order."""

    def __init__(self, program: ir.Program | None = None) -> None:
        self.calls: list[str] = []
        self.program = program
        self.handles = itertools.count(1000)
        self.tables: dict[str, dict[int, tuple[Any, int, Any]]] = {}
        self.defaults: dict[str, Any] = {}
        self.members: dict[tuple[str, int], Any] = {}
        self.groups: dict[tuple[str, int], list[int]] = {}
        self.direct_counters: dict[tuple[str, int], tuple[int, int]] = {}
        self.direct_meters: dict[tuple[str, int | None], Any] = {}
        self.counters: dict[tuple[str, int], tuple[int, int]] = {}
        self.meters: dict[tuple[str, int], Any] = {}
        self.registers: dict[tuple[str, int], bytes] = {}
        self.multicast: dict[int, Any] = {}
        self.sessions: dict[int, Any] = {}
        self.value_sets: dict[str, Any] = {}
        self.pending_digests: list[tuple[int, bytes]] = []
        self.lost_digests = 0
        self.last_hits: dict[tuple[str, int], int] = {}

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if callable(value) and not name.startswith("_") and name != "calls":
            object.__getattribute__(self, "calls").append(name)
        return value

    def table_add(self, table: str, key: Sequence[KeyField], priority: int, target: Target) -> int:
        entries = self.tables.setdefault(table, {})
        if len(entries) >= _TABLE_SIZES.get(table, 1 << 30):
            raise OverflowError(f"{table} is full")
        if any(e[0] == key and e[1] == priority for e in entries.values()):
            raise ValueError("duplicate entry")
        handle = next(self.handles)
        entries[handle] = (key, priority, target)
        return handle

    def table_modify(self, table: str, handle: int, target: Target) -> None:
        entry = self.tables[table][handle]
        self.tables[table][handle] = (entry[0], entry[1], target)

    def table_delete(self, table: str, handle: int) -> None:
        self.tables.get(table, {}).pop(handle, None)  # the program's own entries are not here
        self.direct_counters.pop((table, handle), None)
        self.direct_meters.pop((table, handle), None)

    def table_set_default(self, table: str, target: Target | None) -> None:
        self.defaults[table] = target

    def table_last_hit(self, table: str, handle: int) -> int:
        return self.last_hits.get((table, handle), 0)

    def member_add(self, profile: str, action: str, args: Sequence[bytes]) -> int:
        handle = next(self.handles)
        self.members[profile, handle] = (action, tuple(args))
        return handle

    def member_modify(self, profile: str, member: int, action: str, args: Sequence[bytes]) -> None:
        assert (profile, member) in self.members
        self.members[profile, member] = (action, tuple(args))

    def member_delete(self, profile: str, member: int) -> None:
        assert not any(member in g for (p, _), g in self.groups.items() if p == profile)
        del self.members[profile, member]

    def group_add(self, profile: str) -> int:
        handle = next(self.handles)
        self.groups[profile, handle] = []
        return handle

    def group_set(self, profile: str, group: int, members: Sequence[int]) -> None:
        assert all((profile, m) in self.members for m in members)
        assert (profile, group) in self.groups
        self.groups[profile, group] = list(members)

    def group_delete(self, profile: str, group: int) -> None:
        del self.groups[profile, group]

    def counter_read(self, name: str, index: int) -> tuple[int, int]:
        return self.counters.get((name, index), (0, 0))

    def counter_write(self, name: str, index: int, packets: int, nbytes: int) -> None:
        self.counters[name, index] = (packets, nbytes)

    def direct_counter_read(self, table: str, handle: int) -> tuple[int, int]:
        return self.direct_counters.get((table, handle), (0, 0))

    def direct_counter_write(self, table: str, handle: int, packets: int, nbytes: int) -> None:
        self.direct_counters[table, handle] = (packets, nbytes)

    def meter_set(self, name: str, index: int, config: tuple[int, int, int, int] | None) -> None:
        self.meters[name, index] = config

    def direct_meter_set(self, table: str, handle: int | None, config: tuple[int, int, int, int] | None) -> None:
        self.direct_meters[table, handle] = config

    def register_read(self, name: str, index: int) -> bytes:
        return self.registers.get((name, index), bytes(4 if name.endswith("words") else 2))

    def register_write(self, name: str, index: int, value: bytes) -> None:
        self.registers[name, index] = value

    def multicast_set(self, group: int, replicas: Sequence[tuple[int, int]] | None) -> None:
        self.multicast[group] = None if replicas is None else list(replicas)

    def clone_session_set(
        self, session: int, replicas: Sequence[tuple[int, int]] | None, truncate_bytes: int = 0
    ) -> None:
        self.sessions[session] = None if replicas is None else (list(replicas), truncate_bytes)

    def value_set_set(self, name: str, members: Sequence[Sequence[KeyField]]) -> None:
        self.value_sets[name] = list(members)

    def digests(self) -> list[tuple[int, bytes]]:
        pending, self.pending_digests = self.pending_digests, []
        return pending
