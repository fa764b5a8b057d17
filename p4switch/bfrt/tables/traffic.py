"""Tables of the traffic manager: the queues of each port, their scheduling, and counters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import PIPE_PORT_BITS, PortGroups
from p4switch.architectures.tna.state import ScheduleState
from p4switch.bfrt.attributes import ALL_PIPES
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, ReadOnlyTable
from p4switch.bfrt.tables.data import encode
from p4switch.bfrt.tables.entities import in_turn
from p4switch.bfrt.tables.fixed import MAX_PORT, FixedTable, PathTable
from p4switch.p4runtime.errors import invalid, unimplemented
from p4switch.p4runtime.ports import PortCounts, QueueCounts

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_KEY_BITS = 8
_HIGHEST_PRIORITY = 7


def _groups(state: State) -> PortGroups:
    groups = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).port_groups
    assert groups is not None  # every architecture with these tables has groups
    return groups


def _ports(state: State) -> list[int]:
    """Return the numbers of the ports that have queues."""
    groups = _groups(state)
    return [port for port in range(MAX_PORT + 1) if port % (1 << PIPE_PORT_BITS) < groups.count * groups.ports]


class _ReadOnly(ReadOnlyTable, FixedTable):
    """Base of fixed tables that clients only read."""

    def _remove(self, index: int, state: State) -> NoReturn:
        self._refuse_write()


class _Queues(FixedTable):
    """Base of tables of a pipe's queues, all of which always exist.

    The key is a group and the number of a queue in the group. An index combines both numbers.
    """

    def check_read(self, entry: Message, pipe: int) -> None:
        """Refuse to read the entries of all pipes, because each pipe has its own queues."""
        super().check_read(entry, pipe)
        if pipe == ALL_PIPES and len(self.pipes) > 1:
            invalid(f"{self.name}: expected a pipe, as each has queues of its own")

    def _index(self, entry: Message) -> int:
        given = {field.field_id: field for field in entry.key.fields}
        if len(entry.key.fields) != len(given) or given.keys() != {info["id"] for info in self._info["key"]}:
            invalid(f"{self.name}: expected pg_id and pg_queue as the key, and nothing else")
        index = 0
        for info in self._info["key"]:
            where = f"{self.name}: {info['name']}"
            index = index << _KEY_BITS | number(given[info["id"]].exact.value, width_of(info), where)
        return index

    def _entry(self, index: int | None = None) -> Message:
        entry = bfruntime_pb2.TableEntry(table_id=self.id)
        entry.data.SetInParent()
        if index is not None:
            for info, value in zip(self._info["key"], divmod(index, 1 << _KEY_BITS), strict=True):
                entry.key.fields.add(field_id=info["id"]).exact.value = value.to_bytes(1, "big")
        return entry

    def _indices(self, state: State) -> list[int]:
        groups = _groups(state)
        return [group << _KEY_BITS | queue for group in range(groups.count) for queue in range(groups.group_queues)]

    def _place(self, index: int, state: State) -> tuple[int, int]:
        """Return the local port, and the number of the queue at that port.

        Raises P4RuntimeError (INVALID_ARGUMENT) if the pipe does not have them.
        """
        groups, (group, queue) = _groups(state), divmod(index, 1 << _KEY_BITS)
        for name, value, count in (("pg_id", group, groups.count), ("pg_queue", queue, groups.group_queues)):
            if value >= count:
                invalid(f"{self.name}: {name} {value}; expected less than {count}")
        place, own = divmod(queue, groups.queues)
        return group * groups.ports + place, own


@TABLE_KINDS.register("TmPortCfg")
class PortQueuesTable(_ReadOnly):
    """Group of each port, and the numbers in the group of the port's queues."""

    def _indices(self, state: State) -> list[int]:
        return _ports(state)

    def _found(self, index: int, state: State) -> Message:
        groups = _groups(state)
        group, place = divmod(index % (1 << PIPE_PORT_BITS), groups.ports)
        first = place * groups.queues
        values = {"pg_id": group, "pg_port_nr": place, "port_queues_count": groups.queues}
        entry = self._entry(index)
        for ident, info in self._data.items():
            if info["repeated"]:
                entry.data.fields.add(field_id=ident).int_arr_val.val.extend(range(first, first + groups.queues))
            else:
                self._put(entry.data, ident, values[info["name"]])
        return entry


@TABLE_KINDS.register("TmQueueMap")
class QueuePlacesTable(_ReadOnly, _Queues):
    """Port of each queue, and the queue's number at that port."""

    def _found(self, index: int, state: State) -> Message:
        port, queue = self._place(index, state)
        entry = self._entry(index)
        for ident, value in zip(self._data, (self.pipe << PIPE_PORT_BITS | port, queue), strict=True):
            self._put(entry.data, ident, value)
        return entry


class _Shapers(PathTable):
    """Base of tables with the token buckets of queues or ports."""

    takes = frozenset({bfruntime_pb2.Update.MODIFY, bfruntime_pb2.Update.INSERT_OR_MODIFY})
    _MEMBERS: ClassVar[Mapping[str, str]] = {
        "unit": "packets", "provisioning": "provisioning", "min_rate": "min_rate", "min_burst_size": "min_burst",
        "max_rate": "max_rate", "max_burst_size": "max_burst", "min_rate_enable": "guaranteed",
        "max_rate_enable": "limited", "min_priority": "min_priority",
    }  # fmt: skip
    """Member of the cell in which each field is stored."""

    @abstractmethod
    def _cell_of(self, index: int, state: State) -> int:
        """Return the number of an entry's cell."""

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the given fields."""
        return self._set_fields(self._index(entry), self._values(entry), state)

    def _values(self, entry: Message) -> dict[str, int]:
        """Return the given fields by name. Raises P4RuntimeError (INVALID_ARGUMENT)."""
        values = {}
        for ident, field in self._given(entry.data, self._data).items():
            name, value = self._data[ident]["name"], self._number(field, self._data[ident])
            if name.endswith("_priority"):
                value = min(max(value - 1, 0), _HIGHEST_PRIORITY)  # LOW and HIGH are other names of 0 and 7
            if name == "max_rate" and not value:
                invalid(f"{self.name}: max_rate 0; expected 1 or more")
            values[name] = value
        return values

    def _set_fields(self, index: int, values: Mapping[str, int], state: State) -> Undo:
        place = self._cell_of(index, state)
        members = {self._MEMBERS[name]: value for name, value in values.items() if name in self._MEMBERS}
        return self._store(place, {**self._cell(place, state), **members}, state)

    def _fields(self, index: int, state: State) -> dict[str, int]:
        """Return the present values of an entry's fields by name."""
        cell = self._cell(self._cell_of(index, state), state)
        names = (info["name"] for info in self._data.values())
        return {name: cell[self._MEMBERS[name]] for name in names if name in self._MEMBERS}

    def _remove(self, index: int, state: State) -> Undo:
        """Restore the initial values of the table's fields."""
        return self._set_fields(index, {info["name"]: 0 for info in self._data.values()}, state)

    def _found(self, index: int, state: State) -> Message:
        entry, fields = self._entry(index), self._fields(index, state)
        for info in self._data.values():
            value = fields[info["name"]]
            encode(entry.data, info, value + 1 if info["name"].endswith("_priority") else value)
        return entry


class _QueueShapers(_Queues, _Shapers):
    """Base of tables with the token buckets of queues."""

    state = "$queue_shaper"

    def _cell_of(self, index: int, state: State) -> int:
        port, queue = self._place(index, state)
        return ScheduleState.QUEUES * port + queue


@TABLE_KINDS.register("TmQueueSchedShaping")
class QueueShapingTable(_QueueShapers):
    """Rates and sizes of the token buckets of queues."""


@TABLE_KINDS.register("TmPortSchedCfg")
@TABLE_KINDS.register("TmPortSchedShaping")
class PortShapingTable(_Shapers):
    """Token bucket of each port; every pipe has those of all ports."""

    state = "$port_shaper"

    def scope(self, pipe: int) -> list[int]:
        """Return all pipes."""
        return [*self.pipes]

    def _indices(self, state: State) -> list[int]:
        return _ports(state)

    def _cell_of(self, index: int, state: State) -> int:
        if index not in self._indices(state):
            invalid(f"{self.name}: dev_port {index}; no port has this number")
        return index


@TABLE_KINDS.register("TmQueueSchedCfg")
class SchedulingTable(_QueueShapers):
    """Order in which queues are served, and which of their token buckets they have."""

    _MOST_WEIGHT = 1023
    _SCHEDULE = "$schedule"
    _WIDTHS: ClassVar[Mapping[str, int]] = {"priorities": 8, "weights": 16, "disabled": 1}
    """Bits of a queue in each member of its port's schedule."""

    def _values(self, entry: Message) -> dict[str, int]:
        values = super()._values(entry)
        if values.get("dwrr_weight", 0) > self._MOST_WEIGHT:
            invalid(f"{self.name}: dwrr_weight {values['dwrr_weight']}; expected at most {self._MOST_WEIGHT}")
        if not values.get("advanced_flow_control", 1):
            unimplemented(f"{self.name}: advanced_flow_control: expected XOFF, as there is no credit mode")
        return values

    def _set_fields(self, index: int, values: Mapping[str, int], state: State) -> Undo:
        port, queue = self._place(index, state)
        now = {**self._scheduling(port, queue, state), **values}
        is_own = now["max_priority"] == self._own_priority(queue)
        parts = {
            "priorities": 0 if is_own else now["max_priority"] + 1,
            "weights": now["dwrr_weight"],
            "disabled": int(not now["scheduling_enable"]),
        }
        cell = state.path.members(self._SCHEDULE, port)
        scheduled = {name: _put(cell[name], width, queue, parts[name]) for name, width in self._WIDTHS.items()}
        steps = (
            partial(super()._set_fields, index, values, state),
            partial(self._store, port, scheduled, state, self._SCHEDULE),
        )
        return in_turn(step() for step in steps)

    def _own_priority(self, queue: int) -> int:
        return min(queue, _HIGHEST_PRIORITY)

    def _scheduling(self, port: int, queue: int, state: State) -> dict[str, int]:
        """Return the present values of the fields that the schedule of a port has."""
        cell = state.path.members(self._SCHEDULE, port)
        priority, weight, disabled = (_part(cell[name], width, queue) for name, width in self._WIDTHS.items())
        return {
            "max_priority": priority - 1 if priority else self._own_priority(queue),
            "dwrr_weight": weight,
            "scheduling_enable": int(not disabled),
            "advanced_flow_control": 1,
        }

    def _fields(self, index: int, state: State) -> dict[str, int]:
        return {**super()._fields(index, state), **self._scheduling(*self._place(index, state), state)}

    def _remove(self, index: int, state: State) -> Undo:
        """Restore the order in which queues are served at first."""
        own = self._own_priority(self._place(index, state)[1])
        initial = {info["name"]: 0 for info in self._data.values()}
        return self._set_fields(index, {**initial, "max_priority": own, "scheduling_enable": 1}, state)


class _Counts(_ReadOnly):
    """Base of tables with counters of queues: lost packets, and cells in the queue."""

    def _told_counts(self, index: int, counts: QueueCounts) -> Message:
        entry = self._entry(index)
        values = counts.dropped_packets, counts.waiting_cells, counts.most_cells
        for ident, value in zip(self._data, values, strict=True):
            self._put(entry.data, ident, value)
        return entry


@TABLE_KINDS.register("TmCounterEgPort")
class PortCountsTable(_Counts):
    """Counters of each port of the switch: the sums over the port's queues."""

    def _indices(self, state: State) -> list[int]:
        return sorted(state.ports.counts())

    def _found(self, index: int, state: State) -> Message:
        return self._told_counts(index, state.ports.counts()[index].waiting)

    def _all_found(self, indices: Sequence[int], state: State) -> list[Message]:
        """Return entries with the counts of one moment."""
        counts = state.ports.counts()
        return [self._told_counts(index, counts[index].waiting) for index in indices]


@TABLE_KINDS.register("TmCounterQueue")
class QueueCountsTable(_Counts, _Queues):
    """Counts of each queue; those of ports that the switch does not have are 0.

    If one pipeline runs the ports of several pipes, an entry has the queues of all ports with its number.
    """

    def _found(self, index: int, state: State) -> Message:
        return self._all_found([index], state)[0]

    def _all_found(self, indices: Sequence[int], state: State) -> list[Message]:
        """Return entries with the counts of one moment."""
        of_place: dict[int, list[PortCounts]] = {}
        for port, counts in state.ports.counts().items():
            pipe, place = divmod(port, 1 << PIPE_PORT_BITS)
            if pipe == self.pipe or len(self.pipes) == 1:
                of_place.setdefault(place, []).append(counts)
        found = []
        for index in indices:
            place, queue = self._place(index, state)
            found.append(self._told_counts(index, _together(each.queues[queue] for each in of_place.get(place, ()))))
        return found


def _together(counts: Iterable[QueueCounts]) -> QueueCounts:
    """Return the sums of the counts of queues, and the most that one of them has held."""
    rows = [*counts]
    dropped, waiting = (sum(getattr(row, name) for row in rows) for name in ("dropped_packets", "waiting_cells"))
    return QueueCounts(dropped, waiting, max((row.most_cells for row in rows), default=0))


def _part(whole: int, width: int, place: int) -> int:
    """Return a field of `width` bits, counted from the lowest."""
    return whole >> width * place & (1 << width) - 1


def _put(whole: int, width: int, place: int, value: int) -> int:
    return whole & ~((1 << width) - 1 << width * place) | value << width * place
