"""Data of match-action entries that are stored in direct registers, low-pass filters and RED objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import width_of
from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.data import decode, encode
from p4switch.bfrt.tables.entities import in_turn
from p4switch.bfrt.tables.filters import direct_filters

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_REGISTER = {"name": "$bfrt_field_class", "value": "register_data"}


@dataclass(frozen=True)
class _Register:
    """Direct register. A cell is one number, and each field is some of its bits."""

    name: str
    table: str
    infos: Mapping[int, Json]

    @property
    def _places(self) -> Iterator[tuple[Json, int]]:
        """Yield each field with the position of its lowest bit in a cell."""
        left = sum(map(width_of, self.infos.values()))
        for info in self.infos.values():
            left -= width_of(info)
            yield info, left

    def change(self, index: int, given: Mapping[int, Message], state: State) -> Undo:
        """Set the given fields, by id, of a cell; other fields keep their values."""
        old = state.switch.register_read(self.name, index)
        cell = int.from_bytes(old, "big")
        for info, shift in self._places:
            if info["id"] in given:
                value = decode(given[info["id"]], info, self.table)
                cell = cell & ~(((1 << width_of(info)) - 1) << shift) | value << shift
        state.switch.register_write(self.name, index, cell.to_bytes(len(old), "big"))
        return lambda: state.switch.register_write(self.name, index, old)

    def put(self, index: int, data: Message, state: State) -> None:
        """Put the fields of a cell into the data of an entry."""
        cell = int.from_bytes(state.switch.register_read(self.name, index), "big")
        for info, shift in self._places:
            encode(data, info, cell >> shift & (1 << width_of(info)) - 1)


class DirectCells:
    """Cells of a table's direct objects, by the handle of the entry. The default entry has the last cell."""

    def __init__(self, table: str, table_id: int, data: Mapping[int, Json]) -> None:
        """Create the cells of a table, given its P4Runtime id and its data fields by id."""
        self._id = table_id
        registers: dict[str, dict[int, Json]] = {}
        for ident, info in data.items():
            if _REGISTER in info["annotations"]:
                registers.setdefault(info["name"].rpartition(".")[0], {})[ident] = info
        self._registers = [_Register(name, table, infos) for name, infos in registers.items()]
        self._filters = list(direct_filters(table, data))

    def __bool__(self) -> bool:
        return bool(self._registers or self._filters)

    def _filter_name(self, extern: str, state: State) -> str:
        """Return the name of the table's direct object of a type."""
        types = {each.name: each.type for each in state.pipeline.program.externs}
        return next(name for name in state.pipeline.tables[self._id].direct if types.get(name) == extern)

    def change(self, handle: int | None, given: Mapping[int, Message], state: State) -> Undo:
        """Set the given fields (by id) of an entry, or of the default entry if `handle` is None."""
        index = state.pipeline.tables[self._id].room if handle is None else handle

        def steps() -> Iterator[Undo]:
            for register in self._registers:
                if given.keys() & register.infos.keys():
                    yield register.change(index, given, state)
            for fields in self._filters:
                chosen = {ident: field for ident, field in given.items() if ident in fields.infos}
                if chosen:
                    yield fields.change(self._filter_name(fields.extern, state), index, chosen, state)

        return in_turn(steps())

    def put(self, handle: int | None, data: Message, state: State) -> None:
        """Put the fields of an entry's cells into its data."""
        index = state.pipeline.tables[self._id].room if handle is None else handle
        for register in self._registers:
            register.put(index, data, state)
        for fields in self._filters:
            fields.put(self._filter_name(fields.extern, state), index, data, state)

    @property
    def ids(self) -> frozenset[int]:
        """Ids of the fields."""
        registers = frozenset(ident for each in self._registers for ident in each.infos)
        return registers.union(*(each.infos for each in self._filters))
