"""Low-pass filters and RED: their fields, which tables of their own or match-action tables have."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message
from p4switch.bfrt.tables.base import TABLE_KINDS
from p4switch.bfrt.tables.cells import AnyPipe
from p4switch.bfrt.tables.data import decode, encode
from p4switch.bfrt.tables.entities import in_turn
from p4switch.engine import objects
from p4switch.p4runtime.errors import invalid

if TYPE_CHECKING:
    from p4switch.architectures.extern import ExternType
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_PS_A_NS = 1000
_MOST_NS = float((1 << 59) // _PS_A_NS)
_WHOLE = 1 << 32
"""Probability 1 in a cell of `Wred`."""
_NO_THRESHOLD = 0xFF000000


class Filter(ABC):
    """Fields of a filter's cell.

    A field is named by the part of its name in `bf-rt.json` that follows `prefix`.
    """

    extern: ClassVar[str]
    """Type of the object."""
    prefix: ClassVar[str]

    def __init__(self, table: str, data: Mapping[int, Json]) -> None:
        """Create the fields of a table, given all its data fields by id."""
        self._table = table
        self.infos = {i: info for i, info in data.items() if info["name"].startswith(self.prefix)}
        self._named = {info["name"].removeprefix(self.prefix): info for info in self.infos.values()}

    def _kind(self, state: State) -> type[ExternType]:
        extern_type = ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).extern_type(self.extern)
        assert extern_type is not None
        return type(extern_type)

    def cell(self, name: str, index: int, state: State) -> dict[str, int]:
        """Return the members of a cell of the object `name`."""
        return objects.values(self._kind(state), state.switch.object_read(name, index))

    def store(self, name: str, index: int, cell: Mapping[str, int], state: State) -> Undo:
        """Write a cell and return how to undo it."""
        old = state.switch.object_read(name, index)
        state.switch.object_write(name, index, objects.packed(self._kind(state), cell))
        return lambda: state.switch.object_write(name, index, old)

    def change(self, name: str, index: int, given: Mapping[int, Message], state: State) -> Undo:
        """Set the given fields (by id) of a cell; other fields keep their values."""
        cell = self.cell(name, index, state)
        self._take({self.infos[i]["name"].removeprefix(self.prefix): f for i, f in given.items()}, cell)
        return self.store(name, index, cell, state)

    def put(self, name: str, index: int, data: Message, state: State) -> None:
        """Put the fields of a cell into the data of an entry."""
        values = self._values(self.cell(name, index, state))
        for field, info in self._named.items():
            value = values[field]
            if isinstance(value, float):
                data.fields.add(field_id=info["id"], float_val=value)
            else:
                encode(data, info, value)

    @abstractmethod
    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        """Set the given fields in the members of a cell."""

    @abstractmethod
    def _values(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        """Return the values of the fields for the members of a cell."""

    def _whole(self, given: Mapping[str, Message], name: str, default: int) -> int:
        return decode(given[name], self._named[name], self._table) if name in given else default

    def _time(self, given: Mapping[str, Message], name: str, default_ps: int) -> int:
        """Return the given time in picoseconds, or `default_ps`."""
        return round(self._float(given, name, 0.0, _MOST_NS) * _PS_A_NS) if name in given else default_ps

    def _float(self, given: Mapping[str, Message], name: str, default: float, most: float) -> float:
        if name not in given:
            return default
        value = float(given[name].float_val)
        if given[name].WhichOneof("value") != "float_val" or not math.isfinite(value) or not 0 <= value <= most:
            invalid(f"{self._table}: {name}: expected a number with a fraction, from 0 to {most:g}")
        return value


class Lpf(Filter):
    """Fields of a low-pass filter of a rate or of samples."""

    extern, prefix = "Lpf", "$LPF_SPEC_"
    _RATE, _SAMPLE = 0, 1  # values of the field `type`

    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        kind = self._whole(given, "TYPE", self._RATE if cell["rate"] else self._SAMPLE)
        cell["rate"] = int(kind == self._RATE)
        for name, member in (("GAIN_TIME_CONSTANT_NS", "gain_ps"), ("DECAY_TIME_CONSTANT_NS", "decay_ps")):
            cell[member] = self._time(given, name, cell[member])
        cell["scale"] = self._whole(given, "OUT_SCALE_DOWN_FACTOR", cell["scale"])
        if cell["scale"] > 31:
            invalid(f"{self._table}: OUT_SCALE_DOWN_FACTOR: {cell['scale']}; expected at most 31")

    def _values(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        return {
            "TYPE": self._RATE if cell["rate"] else self._SAMPLE,
            "GAIN_TIME_CONSTANT_NS": cell["gain_ps"] / _PS_A_NS,
            "DECAY_TIME_CONSTANT_NS": cell["decay_ps"] / _PS_A_NS,
            "OUT_SCALE_DOWN_FACTOR": cell["scale"],
        }


class Wred(Filter):
    """Fields of RED by the average of its inputs. A cell drops no packet until it is written."""

    extern, prefix = "Wred", "$WRED_SPEC_"

    def _take(self, given: Mapping[str, Message], cell: dict[str, int]) -> None:
        cell["constant_ps"] = self._time(given, "TIME_CONSTANT_NS", cell["constant_ps"])
        cell["least"] = self._whole(given, "MIN_THRESH_CELLS", cell["least"])
        cell["most"] = self._whole(given, "MAX_THRESH_CELLS", cell["most"])
        if cell["least"] > cell["most"]:
            invalid(f"{self._table}: MIN_THRESH_CELLS {cell['least']} is above MAX_THRESH_CELLS {cell['most']}")
        cell["probability"] = round(self._float(given, "MAX_PROBABILITY", cell["probability"] / _WHOLE, 1.0) * _WHOLE)
        cell["enabled"] = 1

    def _values(self, cell: Mapping[str, int]) -> dict[str, int | float]:
        return {
            "TIME_CONSTANT_NS": cell["constant_ps"] / _PS_A_NS,
            "MIN_THRESH_CELLS": cell["least"] if cell["enabled"] else _NO_THRESHOLD,
            "MAX_THRESH_CELLS": cell["most"] if cell["enabled"] else _NO_THRESHOLD,
            "MAX_PROBABILITY": cell["probability"] / _WHOLE,
        }


class FilterTable(AnyPipe):
    """Table of the cells of an object. Cells always exist, so INSERT and MODIFY are the same."""

    kind: ClassVar[type[Filter]]

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._fields = self.kind(self.name, self._data)

    def _checked(self, index: int) -> int:
        if index >= self.usage():
            invalid(f"{self.name}: index {index}; expected less than {self.usage()}")
        return index

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a cell; fields that are not given keep their values."""
        given = self._given(entry.data, self._data)
        return self._fields.change(self.object_name, self._checked(self._index(entry)), given, state)

    def clear(self, state: State) -> Undo:
        """Set all cells to their initial values."""
        indices = range(self.usage())
        used = (index for index in indices if any(self._fields.cell(self.object_name, index, state).values()))
        return in_turn(self._fields.store(self.object_name, index, {}, state) for index in used)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested cell, or all cells."""
        if entry.is_default_entry:
            self._refuse_default()
        keyed = entry.WhichOneof("value") == "key"
        entries = []
        for index in [self._checked(self._index(entry))] if keyed else range(self.usage()):
            reply = self._entry(index)
            self._fields.put(self.object_name, index, reply.data, state)
            entries.append(reply)
        return entries

    def usage(self, state: State | None = None) -> int:
        """Return the number of cells."""
        return int(self._info["size"])


@TABLE_KINDS.register("Lpf")
class LpfTable(FilterTable):
    """Low-pass filters."""

    kind = Lpf


@TABLE_KINDS.register("Wred")
class WredTable(FilterTable):
    """RED by the average of its inputs."""

    kind = Wred


def direct_filters(table: str, data: Mapping[int, Json]) -> Iterator[Filter]:
    """Yield the filters whose fields are among the data fields of a match-action table."""
    for kind in (Lpf, Wred):
        fields = kind(table, data)
        if fields.infos:
            yield fields
