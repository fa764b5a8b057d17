"""The state of a P4 program that runs, through P4Runtime: on a switch in this process or in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from harness.control import controller
from harness.control.programs import Entry, program
from p4switch.compiler import Compiled, compile_program
from p4switch.errors import UserError, lookup
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4runtime_pb2

__all__ = ["Control"]

Named = str | PathLike[str] | Compiled  # a P4 file, a program of p4cc's by name, or one that is compiled


def compiled(named: Named) -> Compiled:
    """Raises UserError, for errors in the program with all of them."""
    if isinstance(named, Compiled):
        return named
    path = Path(named)
    return compile_program(path if path.suffix == ".p4" else program(str(named)).source)


class Control:
    """Entries, registers and counters of one switch. Names are those of the P4 source: P4Info's aliases."""

    def __init__(self, client: Client, known: controller.Program) -> None:
        self._client = client
        self._known = known

    def write(self, *entries: Entry) -> None:
        """Adds entries; a `DefaultAction` replaces what is there. Raises UserError."""
        controller.write(self._client, self._known, entries)

    def register(self, name: str) -> list[Any]:
        """All cells of a register; a cell of a struct is a tuple. Raises UserError if there is none of that name."""
        query = p4runtime_pb2.Entity()
        query.register_entry.register_id = self._id("register", self._known.p4info.registers, name)
        return [_value(entity.register_entry.data) for entity in self._read(query)]

    def set_register(self, name: str, index: int, value: int) -> None:
        """Writes one cell of a register. Raises UserError for a name, an index or a value that does not fit."""
        update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.register_entry
        entry.register_id = self._id("register", self._known.p4info.registers, name)
        entry.index.index = index
        entry.data.bitstring = canonical(value)
        with _told(f"register {name!r}"):
            self._client.write([update])

    def counter(self, name: str) -> list[tuple[int, int]]:
        """(packets, bytes) of every cell of an indirect counter. Raises UserError if there is none of that name."""
        query = p4runtime_pb2.Entity()
        query.counter_entry.counter_id = self._id("counter", self._known.p4info.counters, name)
        found = (entity.counter_entry.data for entity in self._read(query))
        return [(data.packet_count, data.byte_count) for data in found]

    def _read(self, query: Message) -> Iterator[Message]:
        with _told("read"):
            yield from self._client.read([query])

    @staticmethod
    def _id(kind: str, things: Iterable[Message], name: str) -> int:
        known = {thing.preamble.alias: thing.preamble.id for thing in things}
        return int(lookup(kind, name, known))


def _value(data: Message) -> Any:
    """A P4Data as plain Python."""
    kind = data.WhichOneof("data")
    if kind in ("struct", "tuple"):
        return tuple(_value(member) for member in getattr(data, kind).members)
    if kind == "bool":
        return data.bool
    return int.from_bytes(data.bitstring if kind == "bitstring" else data.enum_value, "big")


@contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except P4RuntimeError as error:
        raise UserError(f"{what}: {error}") from None
