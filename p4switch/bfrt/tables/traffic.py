"""The traffic manager: the queues of each port, and the order in which a port serves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.architectures.front_panel import PIPE_PORT_BITS, PortGroups
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.data import encode
from p4switch.bfrt.tables.fixed import MAX_PORT, FixedTable, PathTable
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_KEY_BITS = 8


def _groups(state: State) -> PortGroups:
    groups = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).port_groups
    assert groups is not None  # of each architecture that has these tables
    return groups


@TABLE_KINDS.register("TmPortCfg")
class PortQueuesTable(FixedTable):
    """Group of each port, and the group's numbers of the port's queues. Clients only read it."""

    takes = frozenset()

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

    def write_entry(self, kind: int, entry: Message, state: State) -> NoReturn:
        """Refuse to change the queues of a port."""
        unimplemented(f"{self.name}: the queues of a port cannot be changed")

    def _remove(self, index: int, state: State) -> NoReturn:
        unimplemented(f"{self.name}: the queues of a port cannot be changed")


@TABLE_KINDS.register("TmQueueSchedCfg")
class SchedulingTable(PathTable):
    """Scheduling of the queues of a pipe, all of which always exist. The key is a group and a queue of the group."""

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

    def _index(self, entry: Message) -> int:
        """Return group and queue as one number."""
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
        """Return the port and its queue. Raises P4RuntimeError (INVALID_ARGUMENT) if the pipe does not have it."""
        groups, (group, queue) = _groups(state), divmod(index, 1 << _KEY_BITS)
        for name, value, count in (("pg_id", group, groups.count), ("pg_queue", queue, groups.group_queues)):
            if value >= count:
                invalid(f"{self.name}: {name} {value}; expected less than {count}")
        place, own = divmod(queue, groups.queues)
        return group * groups.ports + place, own

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
        for ident, info in self._data.items():
            value = scheduling[info["name"]]
            encode(entry.data, info, value + 1 if info["name"].endswith("_priority") else value)
        return entry



def _part(whole: int, width: int, place: int) -> int:
    """Return a field of `width` bits, counted from the lowest."""
    return whole >> width * place & (1 << width) - 1


def _put(whole: int, width: int, place: int, value: int) -> int:
    return whole & ~((1 << width) - 1 << width * place) | value << width * place
