"""Configuration of the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table, type_name
from p4switch.p4runtime.errors import invalid, unimplemented

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_PIPES = "num_pipes"


@TABLE_KINDS.register("DevConfigure")
class DeviceTable(Table):
    """Properties of the device. They are a default entry, whose fields are mostly read-only."""

    takes = frozenset()

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._fixed = {each["singleton"]["id"] for each in info["data"] if each["read_only"]}
        self._values: dict[int, bool] = {}
        """Values that clients have written, by the id of the field."""

    def forget(self) -> None:
        """Forget what clients have written."""
        super().forget()
        self._values = {}

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Set fields, or restore all initial values (RESET, DELETE)."""
        values: dict[int, bool] = {}
        if kind == _Update.MODIFY:
            values.update(self._values)
            for ident, field in self._given(entry.data, self._data).items():
                if ident in self._fixed:
                    invalid(f"{self.name}: {self._data[ident]['name']} is read-only")
                values[ident] = bool(self._number(field, self._data[ident]))
        elif kind not in (_Update.RESET, _Update.DELETE):
            unimplemented(f"{self.name}: {type_name(kind)} of the default entry is not supported")
        old, self._values = self._values, values

        def undo() -> None:
            self._values = old

        return undo

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Refuse entries, because there is only a default entry."""
        unimplemented(f"{self.name}: entries are not supported")

    def clear(self, state: State) -> Undo:
        """Refuse to clear, because there is only a default entry."""
        unimplemented(f"{self.name}: entries are not supported")

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the default entry."""
        reply = self._entry()
        reply.is_default_entry = True
        for ident, info in self._data.items():
            value = self._values.get(ident, info["type"]["default_value"])
            if info["name"] == _PIPES:
                value = len(self.pipes)
            if info["type"]["type"] == "string":
                reply.data.fields.add(field_id=ident, str_val=value)
            elif info["repeated"]:
                reply.data.fields.add(field_id=ident).int_arr_val.val.extend(value)
            else:
                self._put(reply.data, ident, value)
        return [reply]
