"""The traffic manager: the queues of each port, the order in which a port serves them, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import PIPE_PORT_BITS, PortGroups
from p4switch.bfrt.attributes import ALL_PIPES
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, ReadOnlyTable
from p4switch.bfrt.tables.data import encode
from p4switch.bfrt.tables.fixed import MAX_PORT, FixedTable, PathTable
from p4switch.p4runtime.errors import invalid, unimplemented
from p4switch.p4runtime.ports import PortCounts, QueueCounts

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_KEY_BITS = 8


def _groups(state: State) -> PortGroups:
    groups = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).port_groups
    assert groups is not None  # of each architecture that has these tables
    return groups


class _ReadOnly(ReadOnlyTable, FixedTable):
    """Base of fixed tables that clients only read."""

    def _remove(self, index: int, state: State) -> NoReturn:
        self._refuse_write()


class _Queues(FixedTable):
    """Base of tables of the queues of a pipe, all of which always exist.

    The key is a group and a queue of the group; an index has both.
    """

    def check_read(self, entry: Message, pipe: int) -> None:
        """Refuse to read the entries of all pipes, as each pipe has other queues."""
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
        """Return the port of the pipe and its queue.

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
    """Group of each port, and the group's numbers of the port's queues."""

    def _indices(self, state: State) -> list[int]:
        groups = _groups(state)
        return [port for port in range(MAX_PORT + 1) if port % (1 << PIPE_PORT_BITS) < groups.count * groups.ports]

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


@TABLE_KINDS.register("TmQueueSchedCfg")
class SchedulingTable(_Queues, PathTable):
    """Scheduling of the queues."""

    state = "$schedule"
    takes = frozenset({bfruntime_pb2.Update.MODIFY, bfruntime_pb2.Update.INSERT_OR_MODIFY})
    _HIGHEST = 7
    _MOST_WEIGHT = 1023
    _ONLY: ClassVar[Mapping[str, tuple[int, str]]] = {
        "min_priority": (0, "LOW, as no queue has a guaranteed rate"),
        "min_rate_enable": (0, "False, as queues are not shaped"),
        "max_rate_enable": (0, "False, as queues are not shaped"),
        "advanced_flow_control": (1, "XOFF, as there is no credit mode"),
    }
    """Number of the only value of a field that is supported, and its name with a reason."""

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the given fields of a queue."""
        port, queue = self._place(self._index(entry), state)
        cell, scheduling = self._cell(port, state), self._scheduling(port, queue, state)
        for ident, field in self._given(entry.data, self._data).items():
            name, value = self._data[ident]["name"], self._number(field, self._data[ident])
            if name.endswith("_priority"):
                value = min(max(value - 1, 0), self._HIGHEST)  # LOW and HIGH are other names of 0 and 7
            if name in self._ONLY and value != self._ONLY[name][0]:
                unimplemented(f"{self.name}: {name}: expected {self._ONLY[name][1]}")
            scheduling[name] = value
        if scheduling["dwrr_weight"] > self._MOST_WEIGHT:
            invalid(f"{self.name}: dwrr_weight {scheduling['dwrr_weight']}; expected at most {self._MOST_WEIGHT}")
        is_own = scheduling["max_priority"] == self._own_priority(queue)
        cell["priorities"] = _put(cell["priorities"], 8, queue, 0 if is_own else scheduling["max_priority"] + 1)
        cell["weights"] = _put(cell["weights"], 16, queue, scheduling["dwrr_weight"])
        cell["disabled"] = _put(cell["disabled"], 1, queue, int(not scheduling["scheduling_enable"]))
        return self._store(port, cell, state)

    def _own_priority(self, queue: int) -> int:
        return min(queue, self._HIGHEST)

    def _scheduling(self, port: int, queue: int, state: State) -> dict[str, int]:
        """Return the present values of a queue's fields."""
        cell = self._cell(port, state)
        priority = _part(cell["priorities"], 8, queue)
        return {
            **{name: value for name, (value, _) in self._ONLY.items()},
            "max_priority": priority - 1 if priority else self._own_priority(queue),
            "dwrr_weight": _part(cell["weights"], 16, queue),
            "scheduling_enable": int(not _part(cell["disabled"], 1, queue)),
        }

    def _remove(self, index: int, state: State) -> Undo:
        """Restore the order in which queues are served at first."""
        port, queue = self._place(index, state)
        widths = {"priorities": 8, "weights": 16, "disabled": 1}
        return self._store(port, {n: _put(v, widths[n], queue, 0) for n, v in self._cell(port, state).items()}, state)

    def _found(self, index: int, state: State) -> Message:
        entry, scheduling = self._entry(index), self._scheduling(*self._place(index, state), state)
        for info in self._data.values():
            value = scheduling[info["name"]]
            encode(entry.data, info, value + 1 if info["name"].endswith("_priority") else value)
        return entry


class _Counts(_ReadOnly):
    """Base of tables of what queues have lost and hold."""

    def _told_counts(self, index: int, counts: QueueCounts) -> Message:
        entry = self._entry(index)
        values = counts.dropped_packets, counts.waiting_cells, counts.most_cells
        for ident, value in zip(self._data, values, strict=True):
            self._put(entry.data, ident, value)
        return entry


@TABLE_KINDS.register("TmCounterEgPort")
class PortCountsTable(_Counts):
    """Counts of all queues of a port together, of each port that the switch has."""

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
    """Counts of each queue; those of ports that the switch does not have are 0."""

    def _found(self, index: int, state: State) -> Message:
        return self._all_found([index], state)[0]

    def _all_found(self, indices: Sequence[int], state: State) -> list[Message]:
        """Return entries with the counts of one moment."""
        counts, found = state.ports.counts(), []
        for index in indices:
            port, queue = self._place(index, state)
            of_port = counts.get(self.pipe << PIPE_PORT_BITS | port, PortCounts())
            found.append(self._told_counts(index, of_port.queues[queue] if of_port.queues else QueueCounts()))
        return found


def _part(whole: int, width: int, place: int) -> int:
    """Return a field of `width` bits, counted from the lowest."""
    return whole >> width * place & (1 << width) - 1


def _put(whole: int, width: int, place: int, value: int) -> int:
    return whole & ~((1 << width) - 1 << width * place) | value << width * place
