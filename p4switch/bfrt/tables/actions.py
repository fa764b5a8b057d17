"""Actions of match-action tables and of action profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message
from p4switch.p4runtime.bytestring import canonical, size
from p4switch.p4runtime.errors import invalid
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    pass


class Actions:
    """Actions of a table, by their ids in `bf-rt.json`."""

    def __init__(self, table: str, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        self._table = table
        self.specs = {spec["id"]: spec for spec in info.get("action_specs", [])}
        self._p4 = {ident: ids["action", spec["name"]] for ident, spec in self.specs.items()}
        self._back = {p4: ident for ident, p4 in self._p4.items()}

    def decode(self, ident: int, given: Mapping[int, Message], old: Message | None = None) -> Message:
        """Return P4Runtime's form of an action.

        Parameters that are not given have their value in `old`, or 0 if `old` is another action.

        Raises P4RuntimeError (INVALID_ARGUMENT).
        """
        if ident not in self.specs:
            invalid(f"{self._table}: no action has the id {ident}")
        spec = self.specs[ident]
        action = p4runtime_pb2.Action(action_id=self._p4[ident])
        same = old is not None and old.action_id == action.action_id
        before = {p.param_id: p.value for p in old.params} if old is not None and same else {}
        for info in spec["data"]:
            where = f"{self._table}: {spec['name']}: {info['name']}"
            if info["id"] not in given:
                action.params.add(param_id=info["id"], value=before.get(info["id"], canonical(0)))
                continue
            value = number(given[info["id"]].stream, width_of(info), where)
            action.params.add(param_id=info["id"], value=canonical(value))
        return action

    def fields(self, ident: int) -> dict[int, Json]:
        """Return the parameters of an action by their ids. Action id 0 stands for no action.

        Raises P4RuntimeError (INVALID_ARGUMENT).
        """
        if ident and ident not in self.specs:
            invalid(f"{self._table}: no action has the id {ident}")
        return {f["id"]: f for f in self.specs[ident]["data"]} if ident else {}

    def encode(self, action: Message, into: Message) -> None:
        """Put an action into the data of an entry."""
        into.action_id = self._back[action.action_id]
        params = {p.param_id: p.value for p in action.params}
        for info in self.specs[into.action_id]["data"]:
            value = int.from_bytes(params[info["id"]], "big").to_bytes(size(width_of(info)), "big")
            into.fields.add(field_id=info["id"], stream=value)
