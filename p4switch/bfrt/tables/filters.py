"""Tables of low-pass filters and of RED by an average, over the cells of these extern objects."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.cells import AnyPipe
from p4switch.bfrt.tables.entities import in_turn
from p4switch.engine import objects
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.architectures.extern import ExternType
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_MOST_NS = float(1 << 63)
_WHOLE = 1 << 32
"""Probability 1 in a cell of `Wred`."""
_NO_THRESHOLD = 0xFF000000


class ObjectTable(AnyPipe):
    """Cells of an object of the program, which always exist, so that INSERT and MODIFY are the same."""

    extern: ClassVar[str]
    """Type of the object."""

    def _kind(self, state: State) -> type[ExternType]:
        found = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).extern_type(self.extern)
        assert found is not None
        return type(found)

    def _cell(self, index: int, state: State) -> dict[str, int]:
        if index >= self.size:
            invalid(f"{self.name}: index {index}; expected less than {self.size}")
        return objects.values(self._kind(state), state.switch.object_read(self._object, index))

    def _store(self, index: int, cell: Mapping[str, int], state: State) -> Undo:
        old = state.switch.object_read(self._object, index)
        state.switch.object_write(self._object, index, objects.packed(self._kind(state), cell))
        return lambda: state.switch.object_write(self._object, index, old)

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self._info["size"])

    @property
    def _object(self) -> str:
        return self.name.partition(".")[2]

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a cell; fields that are not given keep their values."""
        index = self._index(entry)
        cell = self._cell(index, state)
        given = self._given(entry.data, self._data)
        self._take({self._data[ident]["name"].rpartition("_SPEC_")[2]: f for ident, f in given.items()}, cell)
        return self._store(index, cell, state)

    @abstractmethod
    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        """Set the given fields in the members of a cell, by the part of each field's name after `_SPEC_`."""

    @abstractmethod
    def _told(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        """Return the values of a cell in the same form."""

    def clear(self, state: State) -> Undo:
        """Set all cells to their initial values."""
        used = (index for index in range(self.size) if any(self._cell(index, state).values()))
        return in_turn(self._store(index, {}, state) for index in used)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested cell, or all cells."""
        if entry.is_default_entry:
            unimplemented(f"{self.name}: a {self._info['table_type']} table has no default entry")
        keyed = entry.WhichOneof("value") == "key"
        found = []
        for index in [self._index(entry)] if keyed else range(self.size):
            made = self._entry(index)
            told = self._told(self._cell(index, state))
            for ident, info in self._data.items():
                value = told[info["name"].rpartition("_SPEC_")[2]]
                if isinstance(value, float):
                    made.data.fields.add(field_id=ident, float_val=value)
                else:
                    self._put(made.data, ident, value)
            found.append(made)
        return found

    def usage(self, state: State) -> int:
        """Return the size, because cells always exist."""
        return self.size

    def _info_of(self, name: str) -> Mapping[str, object]:
        return next(info for info in self._data.values() if info["name"].endswith(f"_SPEC_{name}"))

    def _whole(self, given: Mapping[str, Message], name: str, default: int) -> int:
        return self._number(given[name], dict(self._info_of(name))) if name in given else default

    def _float(self, given: Mapping[str, Message], name: str, default: float, most: float) -> float:
        if name not in given:
            return default
        value = float(given[name].float_val)
        if given[name].WhichOneof("value") != "float_val" or not math.isfinite(value) or not 0 <= value <= most:
            invalid(f"{self.name}: {name}: expected a number with a fraction, from 0 to {most:g}")
        return value


@TABLE_KINDS.register("Lpf")
class LpfTable(ObjectTable):
    """Low-pass filters: of a rate, or of samples. Their time constants are whole nanoseconds, rounded down."""

    extern = "Lpf"
    _RATE, _SAMPLE = 0, 1  # indices of the choices of the type

    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        kind = self._whole(given, "TYPE", self._RATE if cell["rate"] else self._SAMPLE)
        cell["rate"] = int(kind == self._RATE)
        for name, member in (("GAIN_TIME_CONSTANT_NS", "gain_ns"), ("DECAY_TIME_CONSTANT_NS", "decay_ns")):
            cell[member] = int(self._float(given, name, cell[member], _MOST_NS))
        cell["scale"] = self._whole(given, "OUT_SCALE_DOWN_FACTOR", cell["scale"])
        if cell["scale"] > 31:
            invalid(f"{self.name}: OUT_SCALE_DOWN_FACTOR: {cell['scale']}; expected at most 31")

    def _told(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        return {
            "TYPE": self._RATE if cell["rate"] else self._SAMPLE,
            "GAIN_TIME_CONSTANT_NS": float(cell["gain_ns"]),
            "DECAY_TIME_CONSTANT_NS": float(cell["decay_ns"]),
            "OUT_SCALE_DOWN_FACTOR": cell["scale"],
        }


@TABLE_KINDS.register("Wred")
class WredTable(ObjectTable):
    """RED by the average of its inputs, which drops no packet until its cell is written."""

    extern = "Wred"

    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        cell["constant_ns"] = int(self._float(given, "TIME_CONSTANT_NS", cell["constant_ns"], _MOST_NS))
        cell["least"] = self._whole(given, "MIN_THRESH_CELLS", cell["least"])
        cell["most"] = self._whole(given, "MAX_THRESH_CELLS", cell["most"])
        if cell["least"] > cell["most"]:
            invalid(f"{self.name}: MIN_THRESH_CELLS {cell['least']} is above MAX_THRESH_CELLS {cell['most']}")
        cell["probability"] = round(self._float(given, "MAX_PROBABILITY", cell["probability"] / _WHOLE, 1.0) * _WHOLE)
        cell["enabled"] = 1

    def _told(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        return {
            "TIME_CONSTANT_NS": float(cell["constant_ns"]),
            "MIN_THRESH_CELLS": cell["least"] if cell["enabled"] else _NO_THRESHOLD,
            "MAX_THRESH_CELLS": cell["most"] if cell["enabled"] else _NO_THRESHOLD,
            "MAX_PROBABILITY": cell["probability"] / _WHOLE,
        }
