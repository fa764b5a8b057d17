"""Base of fixed tables, whose keys are numbers and whose data fields have names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from p4switch.architectures.ports import WIDTH_BITS
from p4switch.bfrt.keys import width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import Table
from p4switch.bfrt.tables.entities import in_turn
from p4switch.p4runtime.errors import already_exists, invalid, not_found
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
EVERY = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY, _Update.DELETE})
"""Update types that most fixed tables support."""
MAX_PORT = (1 << WIDTH_BITS) - 1


class FixedTable(Table):
    """Base of tables whose keys are numbers and whose data fields have names."""

    takes = EVERY

    def _names(self, data: Message) -> dict[str, Message]:
        """Return the data fields by name without the dollar sign in front.

        Raises P4RuntimeError (INVALID_ARGUMENT).
        """
        return {self._data[ident]["name"][1:]: f for ident, f in self._given(data, self._data).items()}

    def _field(self, name: str) -> dict[str, Any]:
        return next(info for info in self._data.values() if info["name"] == f"${name}")

    def _value(self, given: Mapping[str, Message], name: str, default: int) -> int:
        return self._number(given[name], self._field(name)) if name in given else default

    def _list(self, given: Mapping[str, Message], name: str, default: Iterable[int]) -> tuple[int, ...]:
        """Return a list of numbers or bools, or `default` if it is not given."""
        if name not in given:
            return tuple(default)
        field = given[name]
        is_bool = self._field(name)["type"]["type"] == "bool"
        wanted = "bool_arr_val" if is_bool else "int_arr_val"
        if field.WhichOneof("value") != wanted:
            invalid(f"{self.name}: ${name}: expected a list of {'bools' if is_bool else 'numbers'}")
        given_list = tuple(int(each) for each in getattr(field, wanted).val)
        width = width_of(self._field(name))
        for each in given_list:
            if each >> width:
                invalid(f"{self.name}: ${name}: {each} does not fit in {width} bits")
        return given_list

    def _entry_of(self, index: int, **fields: int | Iterable[int]) -> Message:
        """Return an entry whose data have the given fields."""
        entry = self._entry(index)
        for name, value in fields.items():
            info = self._field(name)
            if isinstance(value, int):
                self._put(entry.data, info["id"], value)
                continue
            field = entry.data.fields.add(field_id=info["id"])
            if info["type"]["type"] == "bool":
                field.bool_arr_val.val.extend(map(bool, value))
            else:
                field.int_arr_val.val.extend(value)
        return entry

    def _check_exists(self, kind: int, there: bool) -> None:
        """Refuse to add an existing entry, and to change a missing one."""
        if kind == _Update.INSERT and there:
            already_exists(f"{self.name}: the entry exists")
        if kind in (_Update.MODIFY, _Update.MODIFY_INC, _Update.DELETE) and not there:
            not_found(f"{self.name}: the entry does not exist")

    @abstractmethod
    def _indices(self, state: State) -> list[int]:
        """Return the keys of the existing entries."""

    @abstractmethod
    def _remove(self, index: int, state: State) -> Undo:
        """Delete an existing entry."""

    @abstractmethod
    def _found(self, index: int, state: State) -> Message:
        """Return an existing entry."""

    def clear(self, state: State) -> Undo:
        """Delete all entries."""
        return in_turn(self._remove(index, state) for index in self._indices(state))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested entry, or all entries."""
        if entry.is_default_entry:
            self._refuse_default()
        wanted = [self._index(entry)] if entry.WhichOneof("value") == "key" else None
        return self._all_found([i for i in self._indices(state) if wanted is None or i in wanted], state)

    def _all_found(self, indices: Sequence[int], state: State) -> list[Message]:
        """Return existing entries."""
        return [self._found(index, state) for index in indices]


class PathTable(FixedTable):
    """Table whose entries are the cells of `state`, an array of the packet path."""

    state: ClassVar[str]

    def _cell(self, index: int, state: State) -> dict[str, int]:
        return state.path.members(self.state, index)

    def _store(self, index: int, members: Mapping[str, int], state: State, name: str = "") -> Undo:
        """Set a cell of the table's array, or of the one with a given name."""
        entity = p4runtime_pb2.Entity(extern_entry=state.path.entry(name or self.state, index, members))
        return state.write(p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY, entity=entity))

    def _size(self, state: State) -> int:
        return state.path.find(self.state)[1].size

    def _remove(self, index: int, state: State) -> Undo:
        return self._store(index, {}, state)
