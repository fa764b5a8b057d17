"""State of a P4 program: registers, counters and meters, read from a switch through P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from p4switch.errors import UserError, suggest
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, code_pb2, p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

_MAX_BITS = 64
_METERED = ("cir", "cburst", "pir", "pburst")
_UNITS = {1: ("bytes",), 2: ("packets",), 3: ("packets", "bytes")}


@dataclass(frozen=True)
class CellArray:
    """Register, counter or meter: a number of cells, by index.

    `values` names the values of a cell.
    """

    kind: str  # "register", "counter" or "meter"
    name: str
    id: int
    size: int
    values: tuple[str, ...]
    bits: int = _MAX_BITS  # unit of a register's cell
    signed: bool = False

    def number(self, cell: int) -> int:
        """Return the number that a register's cell stands for."""
        return cell - (1 << self.bits) if self.signed and cell >> self.bits - 1 else cell


def registers(p4info: Message) -> dict[str, CellArray]:
    """Return the registers with integer cells of up to 64 bits, by full name and by alias."""
    arrays = {}
    for register in p4info.registers:
        spec = register.type_spec.bitstring
        bits = spec.bit.bitwidth or spec.int.bitwidth
        if 0 < bits <= _MAX_BITS:
            preamble = register.preamble
            arrays[preamble.name] = arrays[preamble.alias] = CellArray(
                "register", preamble.name, preamble.id, register.size, ("value",), bits, signed=spec.int.bitwidth > 0
            )
    return arrays


def counters(p4info: Message) -> dict[str, CellArray]:
    """Return the indexed counters, by full name and by alias."""
    arrays = {}
    for counter in p4info.counters:
        preamble = counter.preamble
        arrays[preamble.name] = arrays[preamble.alias] = CellArray(
            "counter", preamble.name, preamble.id, counter.size, _counted(counter)
        )
    return arrays


def meters(p4info: Message) -> dict[str, CellArray]:
    """Return the indexed meters, by full name and by alias."""
    arrays = {}
    for meter in p4info.meters:
        preamble = meter.preamble
        arrays[preamble.name] = arrays[preamble.alias] = CellArray(
            "meter", preamble.name, preamble.id, meter.size, _METERED
        )
    return arrays


def _counted(counter: Message) -> tuple[str, ...]:
    """Return the units that a counter is declared to count."""
    return _UNITS.get(counter.spec.unit, ("packets", "bytes"))


def find(kind: str, name: str, p4info: Message, program: str) -> CellArray:
    """Return the register, counter or meter of that name.

    Raises UserError if the program does not have it.
    """
    arrays = {"register": registers, "counter": counters, "meter": meters}[kind](p4info)
    if name not in arrays:
        raise UserError(f"program {program!r} has no {kind} {name!r}; {suggest(name, arrays)}")
    return arrays[name]


class Reader(Protocol):
    """Reads the cells of one switch."""

    def cells(self, array: CellArray, indices: Sequence[int] | None = None) -> Iterator[tuple[int, ...]]:
        """Yield (index, value...) of each cell, or of those of `indices`."""

    def packets(self, counter: CellArray) -> NDArray[np.int64]:
        """Return how many packets each cell of a counter has counted."""


class ByP4Runtime:
    """Reader of any switch through P4Runtime.

    Raises UserError if it refuses.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def cells(self, array: CellArray, indices: Sequence[int] | None = None) -> Iterator[tuple[int, ...]]:
        return read(self._client, array, indices)

    def packets(self, counter: CellArray) -> NDArray[np.int64]:
        column = 1 + counter.values.index("packets")
        counted = np.zeros(counter.size, np.int64)
        for row in self.cells(counter):
            counted[row[0]] = row[column]
        return counted


class ByEngine:
    """Reader of a switch in this process.

    It needs no message for each cell, which would take fifty times longer.
    """

    def __init__(self, switch: Switch) -> None:
        self._switch = switch

    def cells(self, array: CellArray, indices: Sequence[int] | None = None) -> Iterator[tuple[int, ...]]:
        for index in indices or range(array.size):
            if array.kind == "register":
                value = int.from_bytes(self._switch.register_read(array.name, index), "big")
                yield index, array.number(value)
            else:
                counts = dict(zip(_UNITS[3], self._switch.counter_read(array.name, index), strict=True))
                yield index, *(counts[name] for name in array.values)

    def packets(self, counter: CellArray) -> NDArray[np.int64]:
        return np.frombuffer(self._switch.counter_packets(counter.name, counter.size), np.int64)


def left_in(readers: Mapping[str, Reader], registers: Sequence[str], p4info: Message, program: str) -> dict[str, int]:
    """Return the sum of the cells of each register that is not 0, by register and switch.

    `readers` are by switch. Raises UserError if the program has no such register, or if a switch
    refuses.
    """
    arrays = {name: find("register", name, p4info, program) for name in registers}
    sums = {
        f"{name} of {switch}": sum(value for _, value in reader.cells(array))
        for switch, reader in readers.items()
        for name, array in arrays.items()
    }
    return {where: left for where, left in sums.items() if left}


def read(client: Client, cells: CellArray, indices: Sequence[int] | None = None) -> Iterator[tuple[int, ...]]:
    """Yield (index, value...) of each cell, or of those of `indices`.

    Raises UserError if the switch refuses.
    """
    try:
        yield from _read(client, cells, indices)
    except P4RuntimeError as error:
        raise UserError(f"{cells.kind} {cells.name!r} of switch {client.device_id}: {error}") from error


def _read(client: Client, cells: CellArray, indices: Sequence[int] | None) -> Iterator[tuple[int, ...]]:
    for entity in client.read([_query(cells.kind, cells.id, index) for index in indices or (None,)]):
        if cells.kind == "register":
            data = entity.register_entry.data.bitstring
            yield entity.register_entry.index.index, int.from_bytes(data, "big", signed=cells.signed)
        elif cells.kind == "meter":
            config = entity.meter_entry.config
            yield entity.meter_entry.index.index, *(getattr(config, name) for name in cells.values)
        else:
            counts = _counts(entity.counter_entry.data)
            yield entity.counter_entry.index.index, *(counts[name] for name in cells.values)


def _query(kind: str, ident: int, index: int | None = None) -> Message:
    """Return an entity that selects one cell, or all of them.

    `kind` is register, counter or meter.
    """
    query = p4runtime_pb2.Entity()
    entry = getattr(query, f"{kind}_entry")
    setattr(entry, f"{kind}_id", ident)
    if index is not None:
        entry.index.index = index
    return query


def _counts(data: Message) -> dict[str, int]:
    return {"packets": data.packet_count, "bytes": data.byte_count}


class Cell(NamedTuple):
    """Number that a program keeps.

    `cell` is its index. For a direct counter or meter, `cell` is -1 and `entry` is its table entry.
    `field` is the unit of a counter, a rate or burst of a meter, the member of a register's struct,
    or else "value". A register value of more than 64 bits is split into cells of 64 bits each, the
    lowest first, with `[bit]` after the field.
    """

    kind: str
    name: str  # P4Info's alias
    cell: int
    entry: str
    field: str
    value: int


def everything(client: Client, p4info: Message) -> Iterator[Cell]:
    """Yield all cells of a program, except what the switch does not offer (BMv2: registers).

    Raises UserError where the switch refuses.
    """
    readers: list[tuple[str, Iterator[Cell]]] = [
        *((array.preamble.alias, _registers(client, array, p4info.type_info)) for array in p4info.registers),
        *((array.preamble.alias, _counters(client, array)) for array in p4info.counters),
        *((array.preamble.alias, _meters(client, array)) for array in p4info.meters),
        *((array.preamble.alias, _direct_counters(client, array, p4info.tables)) for array in p4info.direct_counters),
        *((array.preamble.alias, _direct_meters(client, array, p4info.tables)) for array in p4info.direct_meters),
    ]
    for name, cells in readers:
        try:
            yield from cells
        except P4RuntimeError as error:
            if error.code != code_pb2.UNIMPLEMENTED:
                raise UserError(f"{name!r} of switch {client.device_id}: {error}") from error


def _registers(client: Client, register: Message, types: Message) -> Iterator[Cell]:
    for entity in client.read([_query("register", register.preamble.id)]):
        entry = entity.register_entry
        for member, number in _members(entry.data, register.type_spec, types):
            for bit in range(0, max(number.bit_length(), 1), _MAX_BITS):
                field = f"{member or 'value'}[{bit}]" if bit else member or "value"
                word = number >> bit & (1 << _MAX_BITS) - 1
                yield Cell("register", register.preamble.alias, entry.index.index, "", field, word)


def _members(data: Message, spec: Message, types: Message, name: str = "") -> Iterator[tuple[str, int]]:
    """Yield the numbers in a value, each with the names of the members that contain it.

    Negative numbers are yielded as the switch stores them.
    """
    kind = data.WhichOneof("data")
    if kind == "bool":
        yield name, int(data.bool)
    elif kind in ("bitstring", "enum_value"):
        yield name, int.from_bytes(getattr(data, kind), "big")
    elif kind == "struct":
        known = [(member.name, member.type_spec) for member in types.structs[spec.struct.name].members]
        for (member, below), value in zip(known, data.struct.members, strict=True):
            yield from _members(value, below, types, f"{name}.{member}" if name else member)
    elif kind == "tuple":
        for number, (below, value) in enumerate(zip(spec.tuple.members, data.tuple.members, strict=True)):
            yield from _members(value, below, types, f"{name}.{number}" if name else str(number))


def _counters(client: Client, counter: Message) -> Iterator[Cell]:
    for entity in client.read([_query("counter", counter.preamble.id)]):
        entry = entity.counter_entry
        counts = _counts(entry.data)
        for field in _counted(counter):
            yield Cell("counter", counter.preamble.alias, entry.index.index, "", field, counts[field])


def _meters(client: Client, meter: Message) -> Iterator[Cell]:
    for entity in client.read([_query("meter", meter.preamble.id)]):
        entry = entity.meter_entry
        for field in _METERED:
            yield Cell("meter", meter.preamble.alias, entry.index.index, "", field, getattr(entry.config, field))


def _direct_counters(client: Client, counter: Message, tables: Sequence[Message]) -> Iterator[Cell]:
    for key, entry in _direct(client, "counter", counter, tables):
        counts = _counts(entry.data)
        for field in _counted(counter):
            yield Cell("direct counter", counter.preamble.alias, -1, key, field, counts[field])


def _direct_meters(client: Client, meter: Message, tables: Sequence[Message]) -> Iterator[Cell]:
    for key, entry in _direct(client, "meter", meter, tables):
        for field in _METERED:
            yield Cell("direct meter", meter.preamble.alias, -1, key, field, getattr(entry.config, field))


def _direct(client: Client, kind: str, array: Message, tables: Sequence[Message]) -> Iterator[tuple[str, Message]]:
    """Yield (match, contents) of each entry of the table of a direct counter or meter."""
    (table,) = (table for table in tables if table.preamble.id == array.direct_table_id)
    names = {match.id: match.name for match in table.match_fields}
    query = p4runtime_pb2.Entity()
    getattr(query, f"direct_{kind}_entry").table_entry.table_id = table.preamble.id
    for entity in client.read([query]):
        entry = getattr(entity, f"direct_{kind}_entry")
        key = " ".join(f"{names[match.field_id]}={_match(match)}" for match in entry.table_entry.match) or "default"
        yield key, entry


def _match(match: Message) -> str:
    """Return a match as text, `0x0a000001/32`: a value and a prefix length, mask or end of a range."""
    parts = [value for _, value in getattr(match, match.WhichOneof("field_match_type")).ListFields()]
    return "/".join(f"0x{part.hex()}" if isinstance(part, bytes) else str(part) for part in parts)
