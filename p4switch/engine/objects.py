"""State of extern objects: arrays of cells with the members that the extern's class declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch.engine import cexpr
from p4switch.engine.cexpr import C, Fields, String
from p4switch.engine.cnodes import Struct
from p4switch.engine.value import c_member, storage_bytes

if TYPE_CHECKING:
    from p4switch.architectures.extern import ExternType


@dataclass(frozen=True)
class Object:
    """Object with `size` cells, which are structs."""

    number: int
    name: str
    kind: type[ExternType]
    size: int
    label: str  # name of the object in C

    @property
    def c_type(self) -> str:
        """The type of its cells in C."""
        return f"object_{self.label}"

    @property
    def cells(self) -> C:
        """The array of its cells in C, which ends with a spare cell."""
        return cexpr.cells(self.c_type, "objects", self.number)


def types(objects: Sequence[Object]) -> list[Struct]:
    """Return the structs of the objects' cells."""
    return [Struct(each.c_type, [c_member(width, name) for name, width in each.kind.cell]) for each in objects]


def rows(objects: Sequence[Object]) -> list[Fields]:
    """Return the initialisers of `p4_object_info`."""
    return [
        Fields({"name": String(each.name), "size": each.size, "stride": cexpr.size_of_type(each.c_type)})
        for each in objects
    ]


def packed(kind: type[ExternType], given: Mapping[str, int]) -> bytes:
    """Return the bytes of a cell, as `Switch.object_write` takes them. Members that are not given are 0."""
    data = bytearray()
    widths = [storage_bytes(width) for _, width in kind.cell]
    for (name, _), size in zip(kind.cell, widths, strict=True):
        data += bytes(-len(data) % min(size, 8))
        data += given.get(name, 0).to_bytes(size, "little")
    return bytes(data) + bytes(-len(data) % max(min(size, 8) for size in widths))


def values(kind: type[ExternType], data: bytes) -> dict[str, int]:
    """Return the members of a cell, given its bytes as in `Switch.object_read` and in traces."""
    members, at = {}, 0
    for name, width in kind.cell:
        size = storage_bytes(width)
        at = -(-at // min(size, 8)) * min(size, 8)
        members[name] = int.from_bytes(data[at : at + size], "little")
        at += size
    return members
