"""What a P4 program keeps: its registers and counters, read from a switch through P4Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p4switch.errors import UserError, suggest
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4runtime_pb2

_MAX_BITS = 64


@dataclass(frozen=True)
class CellArray:
    """A register or a counter: so many cells, by index. `values` names what a cell has."""

    kind: str  # "register" or "counter"
    name: str
    id: int
    size: int
    values: tuple[str, ...]
    signed: bool = False


def registers(p4info: Message) -> dict[str, CellArray]:
    """Those whose cells are integers of up to 64 bits, by full name and by alias."""
    found = {}
    for register in p4info.registers:
        spec = register.type_spec.bitstring
        bits = spec.bit.bitwidth or spec.int.bitwidth
        if 0 < bits <= _MAX_BITS:
            preamble = register.preamble
            found[preamble.name] = found[preamble.alias] = CellArray(
                "register", preamble.name, preamble.id, register.size, ("value",), signed=spec.int.bitwidth > 0
            )
    return found


def counters(p4info: Message) -> dict[str, CellArray]:
    """Indexed counters, by full name and by alias."""
    units = {1: ("bytes",), 2: ("packets",), 3: ("packets", "bytes")}
    found = {}
    for counter in p4info.counters:
        preamble = counter.preamble
        values = units.get(counter.spec.unit, ("packets", "bytes"))
        found[preamble.name] = found[preamble.alias] = CellArray(
            "counter", preamble.name, preamble.id, counter.size, values
        )
    return found


def find(kind: str, name: str, p4info: Message, program: str) -> CellArray:
    """The register or counter of that name. Raises UserError if the program does not have it."""
    arrays = registers(p4info) if kind == "register" else counters(p4info)
    if name not in arrays:
        raise UserError(f"program {program!r} has no {kind} {name!r}; {suggest(name, arrays)}")
    return arrays[name]


def read(client: Client, cells: CellArray, indices: Sequence[int] | None = None) -> Iterator[tuple[int, ...]]:
    """(index, value...) of each cell, or of those asked for. Raises UserError where the switch refuses."""
    queries = []
    for index in (None,) if indices is None else indices:
        query = p4runtime_pb2.Entity()
        entry = query.register_entry if cells.kind == "register" else query.counter_entry
        if cells.kind == "register":
            entry.register_id = cells.id
        else:
            entry.counter_id = cells.id
        if index is not None:
            entry.index.index = index
        queries.append(query)
    try:
        for entity in client.read(queries):
            if cells.kind == "register":
                data = entity.register_entry.data.bitstring
                yield entity.register_entry.index.index, int.from_bytes(data, "big", signed=cells.signed)
            else:
                counted = entity.counter_entry.data
                told = {"packets": counted.packet_count, "bytes": counted.byte_count}
                yield entity.counter_entry.index.index, *(told[name] for name in cells.values)
    except P4RuntimeError as error:
        raise UserError(f"{cells.kind} {cells.name!r} of switch {client.device_id}: {error}") from error
