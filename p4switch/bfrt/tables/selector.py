"""Groups of action selectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, ReadOnlyTable, Table
from p4switch.bfrt.tables.cells import AnyPipe
from p4switch.bfrt.tables.entities import MOST_MEMBERS, P4Update, from_p4, in_turn, read_p4, to_p4, write_p4
from p4switch.p4runtime.errors import invalid, not_found, precondition
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Slots, Undo

_Update = bfruntime_pb2.Update
_MOST_HASH = (1 << 32) - 1  # largest hash, whose low bits choose a member


@TABLE_KINDS.register("Selector")
class SelectorTable(Table):
    """Groups of action selectors."""

    takes = Table.takes | {_Update.DELETE, _Update.MODIFY_INC}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._profile = self._p4_id("selector")
        self._largest = min(int(self._data[Id.MAX_GROUP_SIZE]["type"]["default_value"]), MOST_MEMBERS)
        self._offsets: dict[int, int] = {}
        """Position of each group on a chip. It is returned to clients, but has no effect."""

    def forget(self) -> None:
        """Forget all groups."""
        super().forget()
        self._offsets = {}

    def _groups(self, state: State, ident: int = 0) -> list[Message]:
        query = p4runtime_pb2.ActionProfileGroup(action_profile_id=self._profile, group_id=ident)
        return read_p4(state, "action_profile_group", query)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a group; MODIFY_INC adds or removes members."""
        ident = to_p4(self._index(entry))
        group = p4runtime_pb2.ActionProfileGroup(action_profile_id=self._profile, group_id=ident)
        if kind == _Update.DELETE:
            return write_p4(state, P4Update.DELETE, "action_profile_group", group)
        old = next(iter(self._groups(state, ident)), None)
        if old is None and kind in (_Update.MODIFY, _Update.MODIFY_INC):
            not_found(f"{self.name}: the group does not exist")
        if kind == _Update.INSERT:
            old = None
            group.max_size = self._data[Id.MAX_GROUP_SIZE]["type"]["default_value"]
        given = self._given(entry.data, self._data)
        if old is not None:
            group.CopyFrom(old)
        if Id.MAX_GROUP_SIZE in given:
            size_field = given[Id.MAX_GROUP_SIZE], self._data[Id.MAX_GROUP_SIZE]
            group.max_size = self._at_most(self._largest, *size_field)
        offset = self._offset(given, group.max_size)
        slots: Slots = () if old is None else state.profiles.slots(self._profile, ident)
        if Id.ACTION_MEMBER_ID in given:
            changed = self._given_slots(given)
            if kind == _Update.MODIFY_INC:
                changed = self._changed(slots, changed, takes_away=entry.table_flags.mod_del)
            slots = changed
            del group.members[:]
            for member, weight in Counter(member for member, _ in slots).items():
                group.members.add(member_id=member, weight=weight)
        if old is not None and state.profiles.is_used(self._profile, ident) and not any(on for _, on in slots):
            precondition(f"{self.name}: no member would be active, and table entries refer to the group")

        def steps() -> Iterator[Undo]:
            if old is not None and group.max_size != old.max_size:
                yield state.profiles.resize(self._profile, ident, group.max_size)
            how = P4Update.INSERT if old is None else P4Update.MODIFY
            yield write_p4(state, how, "action_profile_group", group)
            yield state.profiles.set_slots(self._profile, ident, slots)
            yield self._set_offset(ident, offset, is_new=old is None)

        return in_turn(steps())

    def _given_slots(self, given: Mapping[int, Message]) -> Slots:
        """Return the given members, and whether each is active."""
        members = [to_p4(member) for member in given[Id.ACTION_MEMBER_ID].int_arr_val.val]
        states = given[Id.ACTION_MEMBER_STATUS].bool_arr_val.val if Id.ACTION_MEMBER_STATUS in given else ()
        if states and len(states) != len(members):
            invalid(f"{self.name}: {len(members)} members and {len(states)} states; expected as many")
        return tuple(zip(members, states or [True] * len(members), strict=True))

    def _changed(self, slots: Slots, given: Slots, *, takes_away: bool) -> Slots:
        """Return `slots` with the given slots removed, or with the given slots added or changed."""
        changes = dict(given)
        there = {member for member, _ in slots}
        if not takes_away:
            kept = [(member, changes.get(member, active)) for member, active in slots]
            return (*kept, *((member, active) for member, active in given if member not in there))
        missing = changes.keys() - there
        if missing:
            not_found(f"{self.name}: member {from_p4(min(missing))} is not in the group")
        return tuple(slot for slot in slots if slot[0] not in changes)

    def _offset(self, given: Mapping[int, Message], max_size: int) -> int | None:
        """Return the given position of a group's members on a chip, or None.

        The position has to be a multiple of the group's size rounded up to a power of two.
        """
        if Id.ADT_OFFSET not in given:
            return None
        offset = self._number(given[Id.ADT_OFFSET], self._data[Id.ADT_OFFSET])
        step = 1 << max(max_size - 1, 0).bit_length()
        if offset % step:
            invalid(f"{self.name}: $ADT_OFFSET {offset}; expected a multiple of {step}")
        return offset

    def _set_offset(self, ident: int, offset: int | None, *, is_new: bool) -> Undo:
        old = self._offsets.get(ident)
        stored = None if is_new else old
        stored = stored if offset is None else offset

        def put(value: int | None) -> None:
            self._offsets.pop(ident, None)
            if value is not None:
                self._offsets[ident] = value

        put(stored)
        return lambda: put(old)

    def clear(self, state: State) -> Undo:
        """Delete all groups."""
        return write_p4(state, P4Update.DELETE, "action_profile_group", *self._groups(state))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return groups."""
        keyed = entry.WhichOneof("value") == "key"
        entries = []
        for group in self._groups(state, to_p4(self._index(entry)) if keyed else 0):
            reply = self._entry(from_p4(group.group_id))
            slots = state.profiles.slots(self._profile, group.group_id)
            ids = reply.data.fields.add(field_id=Id.ACTION_MEMBER_ID).int_arr_val.val
            ids.extend(from_p4(member) for member, _ in slots)
            states = reply.data.fields.add(field_id=Id.ACTION_MEMBER_STATUS).bool_arr_val.val
            states.extend(active for _, active in slots)
            if group.group_id in self._offsets:
                self._put(reply.data, Id.ADT_OFFSET, self._offsets[group.group_id])
            self._put(reply.data, Id.MAX_GROUP_SIZE, group.max_size)
            entries.append(reply)
        return entries


@TABLE_KINDS.register("SelectorGetMember")
class GetMemberTable(ReadOnlyTable, AnyPipe):
    """Table that returns the member of a group that a hash chooses."""

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._profile = self._p4_id("selector", self.object_name.removesuffix("_get_member"))
        self._all = p4runtime_pb2.ActionProfileGroup(action_profile_id=self._profile)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the member for the group and the hash in the key."""
        given = {field.field_id: field.exact.value for field in entry.key.fields}
        group, hash_value = (
            number(given.get(info["id"], b""), width_of(info), f"{self.name}: {info['name']}")
            for info in self._info["key"]
        )
        ids = {each.group_id for each in read_p4(state, "action_profile_group", self._all)}
        if to_p4(group) not in ids:
            not_found(f"{self.name}: group {group} does not exist")
        active = [member for member, on in state.profiles.slots(self._profile, to_p4(group)) if on]
        if not active:
            not_found(f"{self.name}: group {group} has no active member")
        reply = bfruntime_pb2.TableEntry(table_id=self.id, key=entry.key)
        self._put(reply.data, Id.GET_MEMBER_ACTION_MEMBER_ID, from_p4(active[(hash_value & _MOST_HASH) % len(active)]))
        return [reply]
