"""Indexed externs: counter, meter and register arrays."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from p4switch.p4runtime import p4data
from p4switch.p4runtime.errors import invalid, out_of_range
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.meters import decode_meter, encode_meter, no_colour_counters
from p4switch.p4runtime.pipeline import Cells, Pipeline
from p4switch.p4runtime.profiles import Undo

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

_AT_ONCE = 256  # number of cells that are read before packets are processed again
_MAX_COUNT = (1 << 63) - 1
_T = TypeVar("_T")


class CellStore:
    """Cells of one switch.

    Readers hold the data plane's `lock` for some of the cells at a time.
    """

    def __init__(self, pipeline: Pipeline, switch: Switch, lock: AbstractContextManager[object]) -> None:
        self._pipeline = pipeline
        self._switch = switch
        self._lock = lock
        self._rates: dict[tuple[str, int], tuple[int, int, int, int]] = {}  # meters that have rates

    # -- counters ---------------------------------------------------------------------------------------------------

    def write_counter(self, kind: int, message: Message) -> Undo:
        """Set a counter's cells and return how to undo it."""
        cells = _cells(self._pipeline.counters, message.counter_id, "counter")
        _modify_only(kind, cells)
        check_counter(message.data, cells.name)
        new = (message.data.packet_count, message.data.byte_count) if message.HasField("data") else None
        return _write(_indices(cells, message), new, lambda i: self._switch.counter_read(cells.name, i),
                      lambda i, value: self._switch.counter_write(cells.name, i, *value))

    def read_counters(self, query: Message) -> Iterator[Message]:
        """Yield the cells of counters that a query selects."""
        selected = _selected(self._pipeline.counters, query.counter_id, query, "counter")
        for cells, index, value in self._values(selected, self._switch.counter_read):
            message = p4runtime_pb2.CounterEntry(counter_id=cells.id)
            message.index.index = index
            set_counter(message.data, value)
            yield message

    # -- meters -----------------------------------------------------------------------------------------------------

    def write_meter(self, kind: int, message: Message) -> Undo:
        """Set a meter's cells and return how to undo it."""
        cells = _cells(self._pipeline.meters, message.meter_id, "meter")
        _modify_only(kind, cells)
        no_colour_counters(message, "counter_data", cells.name)
        assert cells.meter is not None
        new = decode_meter(cells.meter, message.config, cells.name) if message.HasField("config") else None
        indices = _indices(cells, message)
        old = [(i, self._rates.get((cells.name, i))) for i in indices]

        def put(values: Iterator[tuple[int, tuple[int, int, int, int] | None]]) -> None:
            for i, rates in values:
                self._switch.meter_set(cells.name, i, rates)
                if rates is None:
                    self._rates.pop((cells.name, i), None)
                else:
                    self._rates[cells.name, i] = rates

        put((i, new) for i in indices)
        return lambda: put(iter(old))

    def read_meters(self, query: Message) -> Iterator[Message]:
        """Yield the cells of meters that a query selects."""
        no_colour_counters(query, "counter_data", "meters")
        selected = _selected(self._pipeline.meters, query.meter_id, query, "meter")
        for cells, index, rates in self._values(selected, lambda name, i: self._rates.get((name, i))):
            message = p4runtime_pb2.MeterEntry(meter_id=cells.id)
            message.index.index = index
            if rates is not None:
                encode_meter(rates, message.config)
            yield message

    # -- registers --------------------------------------------------------------------------------------------------

    def write_register(self, kind: int, message: Message) -> Undo:
        """Set a register's cells and return how to undo it."""
        cells = _cells(self._pipeline.registers, message.register_id, "register")
        _modify_only(kind, cells)
        new = p4data.decode(cells.type_spec, self._pipeline.p4info.type_info, message.data)
        return _write(_indices(cells, message), new, lambda i: self._switch.register_read(cells.name, i),
                      lambda i, value: self._switch.register_write(cells.name, i, value))

    def read_registers(self, query: Message) -> Iterator[Message]:
        """Yield the cells of registers that a query selects."""
        types = self._pipeline.p4info.type_info
        selected = _selected(self._pipeline.registers, query.register_id, query, "register")
        encoders: dict[int, Callable[[bytes], Message]] = {}
        for cells, index, value in self._values(selected, self._switch.register_read):
            if (encode := encoders.get(cells.id)) is None:
                encode = encoders[cells.id] = p4data.encoder(cells.type_spec, types)
            message = p4runtime_pb2.RegisterEntry(register_id=cells.id, data=encode(value))
            message.index.index = index
            yield message

    def _values(self, selected: Iterator[tuple[Cells, int]],
                read: Callable[[str, int], _T]) -> Iterator[tuple[Cells, int, _T]]:
        """Yield the cells with their values. They are read in parts, between which packets are processed."""
        while part := list(itertools.islice(selected, _AT_ONCE)):
            with self._lock:
                values = [read(cells.name, index) for cells, index in part]
            for (cells, index), value in zip(part, values, strict=True):
                yield cells, index, value


def _cells(cells: Mapping[int, Cells], ident: int, what: str) -> Cells:
    array = cells.get(ident)
    if array is None:
        invalid(f"no {what} has the id {ident}")
    return array


def _modify_only(kind: int, cells: Cells) -> None:
    if kind != p4runtime_pb2.Update.MODIFY:
        invalid(f"{cells.name}: its cells always exist; expected MODIFY")


def _indices(cells: Cells, message: Message) -> range:
    """Return the index in a message, or all indices if it has none."""
    if not message.HasField("index"):
        return range(cells.size)
    index = message.index.index
    if index < 0:
        invalid(f"{cells.name}: index {index} is negative")
    if index >= cells.size:
        out_of_range(f"{cells.name}: index {index}; the size is {cells.size}")
    return range(index, index + 1)


def _write(indices: range, new: _T | None, read: Callable[[int], _T], write: Callable[[int, _T], None]) -> Undo:
    """Write `new`, if it is not None, to each cell, and return how to undo it."""
    if new is None:
        return lambda: None
    old = [(i, read(i)) for i in indices]
    for i in indices:
        write(i, new)

    def undo() -> None:
        for i, value in old:
            write(i, value)

    return undo


def _selected(all_cells: Mapping[int, Cells], ident: int, query: Message, what: str) -> Iterator[tuple[Cells, int]]:
    if not ident and query.HasField("index"):
        invalid(f"a read of all {what}s has no index")
    for cells in [_cells(all_cells, ident, what)] if ident else all_cells.values():
        for index in _indices(cells, query):
            yield cells, index


def set_counter(data: Message, packets_and_bytes: tuple[int, int]) -> None:
    """Set a counter in a message. The engine's unsigned numbers are limited to P4Runtime's signed range."""
    data.SetInParent()
    data.packet_count, data.byte_count = (min(value, _MAX_COUNT) for value in packets_and_bytes)


def check_counter(data: Message, where: str) -> None:
    """Raise P4RuntimeError (INVALID_ARGUMENT) for negative counter data."""
    if data.packet_count < 0 or data.byte_count < 0:
        invalid(f"{where}: counter: packets and bytes must not be negative")
