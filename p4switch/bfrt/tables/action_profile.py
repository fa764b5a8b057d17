"""Members of action profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.fields import Json
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.actions import Actions
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.entities import P4Update, from_p4, read_p4, to_p4, write_p4
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("Action")
class ActionTable(Table):
    """Members of action profiles."""

    takes = Table.takes | {_Update.DELETE}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._actions = Actions(self.name, info, ids)
        self._profile = self._p4_id("action_profile")

    def _members(self, state: State, ident: int = 0) -> list[Message]:
        query = p4runtime_pb2.ActionProfileMember(action_profile_id=self._profile, member_id=ident)
        return read_p4(state, "action_profile_member", query)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a member."""
        ident = to_p4(self._index(entry))
        member = p4runtime_pb2.ActionProfileMember(action_profile_id=self._profile, member_id=ident)
        if kind == _Update.DELETE:
            return write_p4(state, P4Update.DELETE, "action_profile_member", member)
        given = self._given(entry.data, self._actions.fields(entry.data.action_id))
        member.action.CopyFrom(self._actions.decode(entry.data.action_id, given))
        exists = kind == _Update.MODIFY or (kind == _Update.INSERT_OR_MODIFY and bool(self._members(state, ident)))
        return write_p4(state, P4Update.MODIFY if exists else P4Update.INSERT, "action_profile_member", member)

    def clear(self, state: State) -> Undo:
        """Delete all members."""
        return write_p4(state, P4Update.DELETE, "action_profile_member", *self._members(state))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return members."""
        keyed = entry.WhichOneof("value") == "key"
        entries = []
        for member in self._members(state, to_p4(self._index(entry)) if keyed else 0):
            reply = self._entry(from_p4(member.member_id))
            self._actions.encode(member.action, reply.data)
            entries.append(reply)
        return entries
