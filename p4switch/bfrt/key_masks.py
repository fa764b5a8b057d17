"""Dynamic key masks, which select the bits of exact keys that a table ignores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from p4switch.architectures.tna.externs.key_masks import PART_BITS, TableKeyMasks, masks_of, parts_of
from p4switch.bfrt.attributes import Attribute, Client, Owner
from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import Keys, number, width_of
from p4switch.bfrt.messages import Message
from p4switch.engine import objects
from p4switch.p4runtime.errors import invalid, precondition

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo


class MaskedTable(Owner, Protocol):
    """Table whose keys have masks."""

    @property
    def table_id(self) -> int:
        """The table's id in P4Info."""

    @property
    def object_name(self) -> str:
        """The table's name in the program."""

    @property
    def keys(self) -> Keys:
        """The table's keys."""

    @property
    def key_infos(self) -> list[Json]:
        """The key fields in `bf-rt.json`."""

    def usage(self, state: State) -> int:
        """Return the number of entries."""


class DynamicKeyMask(Attribute):
    """Masks of the fields of a table's key. A write that omits a field makes the table ignore it."""

    kind = "dyn_key_mask"

    def __init__(self, table: MaskedTable) -> None:
        super().__init__(table)
        self._table: MaskedTable = table
        self._set_masks({info["id"]: _whole(info) for info in table.key_infos})

    def _set_masks(self, masks: dict[int, int]) -> None:
        self._masks = self._table.keys.masks = masks

    def write(self, given: Message, client: Client, state: State) -> Undo:
        """Set the masks of a table without entries."""
        name = self._table.name
        infos = {info["id"]: info for info in self._table.key_infos}
        masks = dict.fromkeys(infos, 0)
        for field in given.fields:
            info = infos.get(field.field_id)
            if info is None:
                invalid(f"{name}: no key field has the id {field.field_id}")
            masks[field.field_id] = number(field.mask, width_of(info), f"{name}: mask of {info['name']}")
        if self._table.usage(state):
            precondition(f"{name}: the table has entries; expected none when its masks change")
        old = self._masks
        self._store(masks, state)
        return lambda: self._store(old, state)

    def _store(self, masks: dict[int, int], state: State) -> None:
        for cell, ignored in enumerate(self._cells(masks)):
            data = objects.packed(TableKeyMasks, {"ignored": ignored})
            state.switch.object_write(masks_of(self._table.object_name), cell, data)
        state.tables.set_masks(self._table.table_id, masks)
        self._set_masks(masks)

    def _cells(self, masks: dict[int, int]) -> Iterator[int]:
        """Yield the ignored bits of each part of the key."""
        for info in self._table.key_infos:
            ignored = _whole(info) & ~masks[info["id"]]
            for part in reversed(range(parts_of(width_of(info)))):
                yield ignored >> PART_BITS * part & (1 << PART_BITS) - 1

    def read(self, into: Message) -> None:
        """Put the masks into a message."""
        for info in self._table.key_infos:
            length = -(-width_of(info) // 8)
            into.fields.add(field_id=info["id"], mask=self._masks[info["id"]].to_bytes(length, "big"))


def _whole(info: Json) -> int:
    return (1 << width_of(info)) - 1
