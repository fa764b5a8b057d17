"""Action profiles and selectors: members, groups, and the one-shot action sets of table entries.

Each write first checks the whole message, then changes the engine and then the store. It returns a function that undoes
the write.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from p4switch.p4runtime.errors import already_exists, exhausted, invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.match import decode_action, decode_call, encode_action
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.pipeline import Call, Pipeline, Profile
from p4switch.p4runtime.ports import Ports

if TYPE_CHECKING:
    from p4switch.engine._engine import Switch

Undo: TypeAlias = Callable[[], object]

_T = TypeVar("_T")

MAX_GROUP_WEIGHT = 65536  # maximum sum of a group's weights; the engine has a slot for each unit of weight


@dataclass(frozen=True, slots=True)
class Weighted:
    """Member of a group (`member` is its id), or action of a one-shot set (`member` is its position)."""

    member: int
    weight: int  # 0 if weights are not allowed
    watch: bytes | int | None  # watched port as the controller gave it: bytes, or the deprecated number
    port: int | None  # the port that must be up


@dataclass(slots=True)
class Member:
    """Member of an action profile."""

    call: Call
    handle: int
    users: int = 0  # number of groups and table entries that refer to it


Slots: TypeAlias = tuple[tuple[int, bool], ...]
"""Members of a group in order, repeated according to their weights, with a flag whether each receives packets."""


@dataclass(slots=True)
class Group:
    """Group of an action selector."""

    members: tuple[Weighted, ...]
    max_size: int
    handle: int
    users: int = 0  # number of table entries that refer to it
    slots: Slots = ()  # slots as BfRuntime has written them


@dataclass(frozen=True, slots=True)
class OneShot:
    """Contents of an ActionProfileActionSet in a table entry."""

    calls: tuple[Call, ...]
    members: tuple[Weighted, ...]


@dataclass(slots=True)
class OneShotGroup:
    """Handles in the engine of a OneShot's members and group."""

    what: OneShot
    handles: list[int]
    handle: int


@dataclass(slots=True)
class _State:
    info: Profile
    members: dict[int, Member] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    one_shots: dict[int, OneShotGroup] = field(default_factory=dict)  # groups by engine handle
    weight: int = 0  # sum over all groups, in the unit of `size`


class ProfileStore:
    """Members and groups of the action profiles of one device."""

    def __init__(self, pipeline: Pipeline, switch: Switch, ports: Ports) -> None:
        self._pipeline = pipeline
        self._switch = switch
        self._ports = ports
        self._states = {ident: _State(info) for ident, info in pipeline.profiles.items()}

    def _state(self, ident: int) -> _State:
        state = self._states.get(ident)
        if state is None:
            invalid(f"no action profile has the id {ident}")
        return state

    # -- members ----------------------------------------------------------------------------------------------------

    def write_member(self, kind: int, message: Message) -> Undo:
        """Write a member and return how to undo it."""
        state = self._state(message.action_profile_id)
        ident = message.member_id
        where = f"{state.info.name}: member {ident}"
        if not ident:
            invalid(f"{state.info.name}: member id 0 is not valid")
        member = state.members.get(ident)
        if kind == p4runtime_pb2.Update.INSERT:
            if member is not None:
                already_exists(f"{where} exists")
            self._no_one_shots(state)
            if state.info.size and len(state.members) >= state.info.size:
                exhausted(f"{state.info.name}: all {state.info.size} members are in use")
            return self._add_member(state, ident, self._call(state, message))
        if member is None:
            not_found(f"{where} does not exist")
        if kind == p4runtime_pb2.Update.DELETE:
            if member.users:
                precondition(f"{where} is in use by groups or table entries")
            self._remove_member(state, ident)
            call = member.call
            return lambda: self._add_member(state, ident, call)
        old, new = member.call, self._call(state, message)
        self._set_member(state, ident, new)
        return lambda: self._set_member(state, ident, old)

    def _call(self, state: _State, message: Message) -> Call:
        if not message.HasField("action"):
            invalid(f"{state.info.name}: member {message.member_id}: action is missing")
        for table_id in state.info.table_ids:
            return decode_action(self._pipeline.tables[table_id], message.action)
        action = self._pipeline.actions.get(message.action.action_id)
        if action is None:
            invalid(f"{state.info.name}: no action has the id {message.action.action_id}")
        return decode_call(action, message.action.params, state.info.name)

    def _add_member(self, state: _State, ident: int, call: Call) -> Undo:
        handle = self._switch.member_add(state.info.name, call.action.name, call.args)
        state.members[ident] = Member(call, handle)
        return lambda: self._remove_member(state, ident)

    def _remove_member(self, state: _State, ident: int) -> None:
        self._switch.member_delete(state.info.name, state.members[ident].handle)
        del state.members[ident]

    def _set_member(self, state: _State, ident: int, call: Call) -> None:
        member = state.members[ident]
        self._switch.member_modify(state.info.name, member.handle, call.action.name, call.args)
        member.call = call

    def read_members(self, query: Message) -> Iterator[Message]:
        """Yield the members that a query selects."""
        for state in self._selected(query.action_profile_id, query.member_id):
            for ident, member in _one_or_all(state.members, query.member_id):
                message = p4runtime_pb2.ActionProfileMember(action_profile_id=state.info.id, member_id=ident)
                encode_action(member.call, message.action)
                yield message

    def _selected(self, ident: int, within: int) -> list[_State]:
        if ident:
            return [self._state(ident)]
        if within:
            invalid("an id within an action profile needs the id of the profile")
        return list(self._states.values())

    # -- groups -----------------------------------------------------------------------------------------------------

    def write_group(self, kind: int, message: Message) -> Undo:
        """Write a group and return how to undo it."""
        state = self._state(message.action_profile_id)
        ident = message.group_id
        where = f"{state.info.name}: group {ident}"
        if not state.info.with_selector:
            invalid(f"{state.info.name}: groups need an action selector")
        if not ident:
            invalid(f"{state.info.name}: group id 0 is not valid")
        group = state.groups.get(ident)
        if kind == p4runtime_pb2.Update.INSERT:
            if group is not None:
                already_exists(f"{where} exists")
            self._no_one_shots(state)
            self._check_max_size(state.info, message.max_size, where)
            members = self._members(state, message)
            self._check_size(state, members, message.max_size, 0, where)
            return self._add_group(state, ident, members, message.max_size)
        if group is None:
            not_found(f"{where} does not exist")
        if kind == p4runtime_pb2.Update.DELETE:
            if group.users:
                precondition(f"{where} is in use by table entries")
            self._remove_group(state, ident)
            return lambda: self._add_group(state, ident, group.members, group.max_size, group.slots)
        if message.max_size != group.max_size:
            invalid(f"{where}: max_size {message.max_size}; it was {group.max_size} and cannot be changed")
        members, old = self._members(state, message), group.members
        self._check_size(state, members, group.max_size, _size(state.info, old), where)
        self._set_group(state, ident, members)
        return lambda: self._set_group(state, ident, old)

    @staticmethod
    def _check_max_size(info: Profile, max_size: int, where: str) -> None:
        if max_size < 0 or 0 < info.max_group_size < max_size:
            invalid(f"{where}: max_size {max_size}; expected at most {info.max_group_size}")
        if max_size > MAX_GROUP_WEIGHT:
            exhausted(f"{where}: max_size {max_size}; {MAX_GROUP_WEIGHT} is the most")

    def resize(self, ident: int, group_id: int, max_size: int) -> Undo:
        """Set the maximum size of a group, even below its present size, and return how to undo it.

        This is for BfRuntime. In P4Runtime the maximum size of a group is constant.
        """
        state = self._state(ident)
        group = state.groups[group_id]
        self._check_max_size(state.info, max_size, f"{state.info.name}: group {group_id}")
        old, group.max_size = group.max_size, max_size

        def undo() -> None:
            group.max_size = old

        return undo

    def _members(self, state: _State, message: Message) -> tuple[Weighted, ...]:
        where = f"{state.info.name}: group {message.group_id}"
        members = []
        seen = set()
        for m in message.members:
            if m.member_id not in state.members:
                not_found(f"{where}: member {m.member_id} does not exist")
            if m.member_id in seen:
                invalid(f"{where}: member {m.member_id} is given twice")
            seen.add(m.member_id)
            members.append(self._weighted(state.info, m.member_id, m, where))
        return tuple(members)

    def _weighted(self, info: Profile, member: int, m: Message, where: str) -> Weighted:
        if info.weights_disallowed and m.weight:
            invalid(f"{where}: weight {m.weight}; this selector has no weights")
        if not info.weights_disallowed and m.weight <= 0:
            invalid(f"{where}: weight {m.weight}; expected 1 or more")
        if 0 < info.max_member_weight < m.weight:
            invalid(f"{where}: weight {m.weight}; expected at most {info.max_member_weight}")
        kind = m.WhichOneof("watch_kind")
        if kind is None:
            return Weighted(member, m.weight, None, None)
        watch = getattr(m, kind)
        if watch == b"":
            return Weighted(member, m.weight, None, None)
        return Weighted(member, m.weight, watch, self._ports.parse(watch, where))

    def _check_size(self, state: _State, members: Sequence[Weighted], max_size: int, before: int, where: str) -> None:
        info = state.info
        group_size = _size(info, members)
        limit = max_size or info.max_group_size or MAX_GROUP_WEIGHT
        if group_size > limit or sum(m.weight for m in members) > MAX_GROUP_WEIGHT:
            exhausted(f"{where}: size {group_size}; {limit} is the most")
        if info.size and state.weight - before + group_size > info.size:
            exhausted(f"{info.name}: its size of {info.size} is used up")

    def _add_group(self, state: _State, ident: int, members: tuple[Weighted, ...], max_size: int,
                   slots: Slots = ()) -> Undo:
        state.groups[ident] = Group((), max_size, self._switch.group_add(state.info.name), slots=slots)
        self._set_group(state, ident, members)
        return lambda: self._remove_group(state, ident)

    def _remove_group(self, state: _State, ident: int) -> None:
        group = state.groups[ident]
        self._switch.group_delete(state.info.name, group.handle)
        del state.groups[ident]
        self._count(state, group.members, ())

    def _set_group(self, state: _State, ident: int, members: tuple[Weighted, ...]) -> None:
        group = state.groups[ident]
        handles = {m.member: state.members[m.member].handle for m in members}
        if _are_of(group.slots, members):
            slots = [handles[member] for member, active in group.slots if active]
        else:
            slots = self._slots(members, handles)
        self._switch.group_set(state.info.name, group.handle, slots)
        self._count(state, group.members, members)
        group.members = members

    def slots(self, ident: int, group_id: int) -> Slots:
        """Return the members of a group of an action profile, in order."""
        group = self._states[ident].groups[group_id]
        if _are_of(group.slots, group.members):
            return group.slots
        return tuple((m.member, True) for m in group.members for _ in range(m.weight or 1))

    def set_slots(self, ident: int, group_id: int, slots: Slots) -> Undo:
        """Set the order of a group's members and which of them receive packets; return how to undo it."""
        state = self._states[ident]
        group = state.groups[group_id]
        old, group.slots = group.slots, slots
        self._set_group(state, group_id, group.members)
        return lambda: self.set_slots(ident, group_id, old)

    def is_empty(self, profile: Profile, group_id: int) -> bool:
        """Return whether a group exists but none of its members receives packets."""
        exists = group_id in self._states[profile.id].groups
        return exists and not any(active for _, active in self.slots(profile.id, group_id))

    def is_used(self, ident: int, group_id: int) -> bool:
        """Return whether table entries refer to a group."""
        return self._states[ident].groups[group_id].users > 0

    def _slots(self, members: Sequence[Weighted], handles: Mapping[int, int]) -> list[int]:
        """Return a handle for each unit of weight, without members whose watched port is down."""
        return [handles[m.member] for m in members if self._ports.is_up(m.port) for _ in range(m.weight or 1)]

    @staticmethod
    def _count(state: _State, before: Sequence[Weighted], after: Sequence[Weighted]) -> None:
        state.weight += _size(state.info, after) - _size(state.info, before)
        for m in before:
            state.members[m.member].users -= 1
        for m in after:
            state.members[m.member].users += 1

    def read_groups(self, query: Message) -> Iterator[Message]:
        """Yield the groups that a query selects."""
        for state in self._selected(query.action_profile_id, query.group_id):
            for ident, group in _one_or_all(state.groups, query.group_id):
                message = p4runtime_pb2.ActionProfileGroup(
                    action_profile_id=state.info.id, group_id=ident, max_size=group.max_size
                )
                for m in group.members:
                    _set_watch(message.members.add(member_id=m.member, weight=m.weight), m)
                yield message

    # -- targets of table entries ------------------------------------------------------------------------------------

    def _no_one_shots(self, state: _State) -> None:
        if state.one_shots:
            invalid(f"{state.info.name}: table entries with action sets exist; members and groups cannot be mixed in")

    def use_member(self, profile: Profile, ident: int) -> int:
        """Return the engine's handle of a member, and count a table entry that refers to it.

        Raises P4RuntimeError (NOT_FOUND) if the member does not exist.
        """
        member = self._states[profile.id].members.get(ident)
        if member is None:
            not_found(f"{profile.name}: member {ident} does not exist")
        member.users += 1
        return member.handle

    def use_group(self, profile: Profile, ident: int) -> int:
        """Return the engine's handle of a group, and count a table entry that refers to it.

        Raises P4RuntimeError (NOT_FOUND) if the group does not exist.
        """
        group = self._states[profile.id].groups.get(ident)
        if group is None:
            not_found(f"{profile.name}: group {ident} does not exist")
        group.users += 1
        return group.handle

    def drop_member(self, profile: Profile, ident: int) -> None:
        """Release a member that a table entry referred to."""
        self._states[profile.id].members[ident].users -= 1

    def drop_group(self, profile: Profile, ident: int) -> None:
        """Release a group that a table entry referred to."""
        self._states[profile.id].groups[ident].users -= 1

    def decode_one_shot(self, profile: Profile, calls: Sequence[Call], message: Message) -> OneShot:
        """Check an ActionProfileActionSet whose actions are `calls`, and return it."""
        where = f"{profile.name}: action set"
        if not profile.with_selector:
            invalid(f"{where}: needs an action selector")
        if message.HasField("group_action"):
            unimplemented(f"{where}: group actions are not supported")
        if message.action_selection_mode or message.size_semantics:
            unimplemented(f"{where}: selection mode and size semantics are those of the selector")
        members = tuple(self._weighted(profile, i, a, where) for i, a in enumerate(message.action_profile_actions))
        if 0 < profile.max_group_size < _size(profile, members):
            invalid(f"{where}: size {_size(profile, members)}; expected at most {profile.max_group_size}")
        return OneShot(tuple(calls), members)

    def use_one_shot(self, profile: Profile, what: OneShot, freed: int = 0) -> OneShotGroup:
        """Create the members and the group of an action set.

        `freed` is the size of the set that it will replace.
        """
        state = self._states[profile.id]
        if state.members or state.groups:
            invalid(f"{profile.name}: members or groups exist; action sets cannot be mixed in")
        self._check_size(state, what.members, 0, freed, f"{profile.name}: action set")
        handles: list[int] = []
        try:
            for call in what.calls:
                handles.append(self._switch.member_add(profile.name, call.action.name, call.args))
            group = OneShotGroup(what, handles, self._switch.group_add(profile.name))
            self._switch.group_set(profile.name, group.handle, self._slots(what.members, dict(enumerate(handles))))
        except (ValueError, OverflowError):
            for handle in handles:
                self._switch.member_delete(profile.name, handle)
            raise
        state.one_shots[group.handle] = group
        state.weight += _size(profile, what.members)
        return group

    def drop_one_shot(self, profile: Profile, group: OneShotGroup) -> None:
        """Remove the members and the group of an action set."""
        state = self._states[profile.id]
        del state.one_shots[group.handle]
        state.weight -= _size(profile, group.what.members)
        self._switch.group_delete(profile.name, group.handle)
        for handle in group.handles:
            self._switch.member_delete(profile.name, handle)

    def ports_changed(self) -> None:
        """Write every group that watches a port to the engine again, after ports went up or down."""
        for state in self._states.values():
            for ident, group in state.groups.items():
                if any(m.port is not None for m in group.members):
                    self._set_group(state, ident, group.members)
            for one_shot in state.one_shots.values():
                if any(m.port is not None for m in one_shot.what.members):
                    slots = self._slots(one_shot.what.members, dict(enumerate(one_shot.handles)))
                    self._switch.group_set(state.info.name, one_shot.handle, slots)


def encode_one_shot(what: OneShot, into: Message) -> None:
    """Fill an ActionProfileActionSet."""
    into.SetInParent()
    for call, m in zip(what.calls, what.members, strict=True):
        action = into.action_profile_actions.add(weight=m.weight)
        encode_action(call, action.action)
        _set_watch(action, m)


def one_shot_size(profile: Profile, what: OneShot) -> int:
    """Return the size of an action set, in members or in weights as the profile counts."""
    return _size(profile, what.members)


def _are_of(slots: Slots, members: Sequence[Weighted]) -> bool:
    """Return whether slots are those of `members`, and no member watches a port."""
    weights = Counter(member for member, _ in slots)
    return weights == {m.member: m.weight or 1 for m in members} and all(m.port is None for m in members)


def _set_watch(message: Message, m: Weighted) -> None:
    if isinstance(m.watch, bytes):
        message.watch_port = m.watch
    elif m.watch is not None:
        message.watch = m.watch


def _size(info: Profile, members: Sequence[Weighted]) -> int:
    return len(members) if info.sum_of_members or info.weights_disallowed else sum(m.weight for m in members)


def _one_or_all(items: Mapping[int, _T], ident: int) -> list[tuple[int, _T]]:
    if not ident:
        return list(items.items())
    return [(ident, items[ident])] if ident in items else []
