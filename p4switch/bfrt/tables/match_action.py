"""Match-action tables, with actions, or with members and groups of action profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from p4switch.bfrt.aging import NS_A_MS, IdleTimeout
from p4switch.bfrt.attributes import Attribute
from p4switch.bfrt.byte_counts import MeterByteCountAdjust
from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.key_masks import DynamicKeyMask
from p4switch.bfrt.keys import Keys
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.actions import Actions
from p4switch.bfrt.tables.base import COUNTS, TABLE_KINDS, Table, no_limits
from p4switch.bfrt.tables.direct import DirectCells
from p4switch.bfrt.tables.entities import P4Update, from_p4, in_turn, read_p4, to_p4, write_p4
from p4switch.p4runtime.errors import invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("MatchAction_Direct")
@TABLE_KINDS.register("MatchAction_Indirect")
@TABLE_KINDS.register("MatchAction_Indirect_Selector")
class MatchTable(Table):
    """Match-action tables, with actions, or with members and groups of action profiles."""

    takes = Table.takes | {_Update.DELETE}
    offers: ClassVar[Mapping[str, type[Attribute]]] = {
        **Table.offers,
        "IdleTimeout": IdleTimeout,
        "DynamicKeyMask": DynamicKeyMask,
        "MeterByteCountAdjust": MeterByteCountAdjust,
    }

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        self.keys = Keys(info)
        super().__init__(info, ids)
        self._actions = Actions(self.name, info, ids)
        self.table_id = self._p4_id("table")
        self._has_counter = any(ident in self._data for ident in COUNTS)
        self._direct = DirectCells(self.name, self.table_id, self._data)
        self._is_indirect = Id.ACTION_MEMBER_ID in self._data

    @property
    def key_infos(self) -> list[Json]:
        """The key fields in `bf-rt.json`."""
        infos: list[Json] = self._info["key"]
        return infos

    def meter_name(self, state: State) -> str:
        """Return the name of the direct meter in the program."""
        return state.pipeline.tables[self.table_id].meter_name

    def _query(self) -> Message:
        query = p4runtime_pb2.TableEntry(table_id=self.table_id)
        if self._has_counter:
            query.counter_data.SetInParent()
        if self._rate_fields() is not None:
            query.meter_config.SetInParent()
        return query

    def _defaults(self, state: State) -> list[Message]:
        """Return P4Runtime's default entry in a list, which is empty if the table has none."""
        query = self._query()
        query.is_default_action = True
        return read_p4(state, "table_entry", query)

    def _found(self, key: Message, state: State) -> Message | None:
        """Return P4Runtime's entry with a key, or None if it does not exist."""
        query = self._query()
        matches, query.priority = self.keys.decode(key)
        query.match.extend(matches)
        wanted = {m.field_id: m for m in matches}
        entries = read_p4(state, "table_entry", query)
        return next((e for e in entries if {m.field_id: m for m in e.match} == wanted), None)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry; MODIFY keeps fields that are not given."""
        if kind == _Update.DELETE:
            p4_entry = p4runtime_pb2.TableEntry(table_id=self.table_id)
            matches, p4_entry.priority = self.keys.decode(entry.key)
            p4_entry.match.extend(matches)
            return write_p4(state, P4Update.DELETE, "table_entry", p4_entry)
        old = None if kind == _Update.INSERT else self._found(entry.key, state)
        if old is None and kind == _Update.MODIFY:
            not_found(f"{self.name}: the entry does not exist")
        p4_entry = self._made(entry, old, state)

        def steps() -> Iterator[Undo]:
            yield write_p4(state, P4Update.INSERT if old is None else P4Update.MODIFY, "table_entry", p4_entry)
            if self._direct:
                stored = state.tables.find(p4_entry)
                assert stored is not None
                yield self._direct.change(stored[1].handle, {f.field_id: f for f in entry.data.fields}, state)
            if self._idle is not None:
                yield self._set_age(self._idle, p4_entry, entry, state, is_new=old is None)

        return in_turn(steps())

    def canonical_key(self, key: Message) -> Message:
        """Return a key as clients receive it.

        Fields that match any value are included, and bits outside of masks are 0.
        """
        return self.keys.encode(*self.keys.decode(key))

    @property
    def _idle(self) -> IdleTimeout | None:
        attribute = self.attributes.get(IdleTimeout.kind)
        return attribute if isinstance(attribute, IdleTimeout) else None

    def _set_age(self, idle: IdleTimeout, p4_entry: Message, entry: Message, state: State, *, is_new: bool) -> Undo:
        """Restart the aging of an entry that was written, if the write asks for it."""
        stored = state.tables.find(p4_entry)
        assert stored is not None
        given = {field.field_id: field for field in entry.data.fields}
        hit_state = None
        if Id.ENTRY_HIT_STATE in given:
            hit_state = self._number(given[Id.ENTRY_HIT_STATE], self._data[Id.ENTRY_HIT_STATE])
        begins = is_new or Id.ENTRY_TTL in given or entry.table_flags.reset_ttl
        hit_ns = state.tables.hit_ns(self.table_id, stored[1])
        return idle.set_entry(*stored, begins=begins, hit_state=hit_state, hit_ns=hit_ns)

    def _put_ages(
        self, p4_entries: Sequence[Message], entries: Sequence[Message], state: State, *, from_hw: bool
    ) -> Iterator[None]:
        """Put the remaining time and the hit state of entries into them."""
        idle = self._idle
        assert idle is not None
        for p4_entry, into in zip(p4_entries, entries, strict=True):
            there = state.tables.find(p4_entry)
            if there is not None:  # packets do not delete entries, but other controllers may
                hit_ns = state.tables.hit_ns(self.table_id, there[1])
                self._put(into.data, Id.ENTRY_HIT_STATE, idle.hit_state(*there, hit_ns, from_hw=from_hw))
                if Id.ENTRY_TTL in self._data:
                    self._put(into.data, Id.ENTRY_TTL, idle.left_ms(*there))
            yield None

    def _put_cells(self, p4_entries: Sequence[Message], entries: Sequence[Message], state: State) -> Iterator[None]:
        """Put the cells of direct objects into entries."""
        for p4_entry, into in zip(p4_entries, entries, strict=True):
            there = state.tables.find(p4_entry)
            if there is not None:  # other controllers may delete entries meanwhile
                self._direct.put(there[1].handle, into.data, state)
            yield None

    def operate(self, name: str, state: State) -> None:
        """Execute an operation; for idle time-outs it updates which entries packets have hit."""
        if name == "UpdateHitState" and self._idle is not None:
            self._idle.update_hit_states(state)
        else:
            super().operate(name, state)

    def key_alone(self, entry: Message) -> Message:
        """Return a BfRuntime entry that has only the key of a P4Runtime entry."""
        alone = bfruntime_pb2.TableEntry(table_id=self.id)
        alone.key.CopyFrom(self.keys.encode(entry.match, entry.priority))
        return alone

    def _made(self, entry: Message, old: Message | None, state: State) -> Message:
        """Return the P4Runtime entry to be written."""
        p4_entry = p4runtime_pb2.TableEntry(table_id=self.table_id)
        matches, p4_entry.priority = self.keys.decode(entry.key)
        p4_entry.match.extend(matches)
        given = self._given(entry.data, {**self._data, **self._actions.fields(entry.data.action_id)})
        self._take_target(entry.data.action_id, given, p4_entry, state, old)
        if old is None and not p4_entry.HasField("action"):
            invalid(f"{self.name}: the action is missing")
        counter = p4runtime_pb2.CounterData()
        if old is not None:
            counter.CopyFrom(old.counter_data)
            p4_entry.metadata, p4_entry.controller_metadata = old.metadata, old.controller_metadata
            p4_entry.idle_timeout_ns = old.idle_timeout_ns
        if Id.ENTRY_TTL in given:
            p4_entry.idle_timeout_ns = self._number(given[Id.ENTRY_TTL], self._data[Id.ENTRY_TTL]) * NS_A_MS
        if self._take_counts(given, counter):
            p4_entry.counter_data.CopyFrom(counter)
        self._take_meter(given, p4_entry, old)
        return p4_entry

    def _take_meter(self, given: Mapping[int, Message], p4_entry: Message, old: Message | None) -> None:
        """Set the rates of an entry's direct meter; those that are not given stay as in the old entry."""
        had = old is not None and old.HasField("meter_config")
        config = old.meter_config if old is not None and had else no_limits()
        if self._take_rates(given, config) or had:
            p4_entry.meter_config.CopyFrom(config)

    def _take_target(
        self, action_id: int, given: Mapping[int, Message], p4_entry: Message, state: State, old: Message | None = None
    ) -> None:
        member, group = given.get(Id.ACTION_MEMBER_ID), given.get(Id.SELECTOR_GROUP_ID)
        if member is not None and group is not None:
            invalid(f"{self.name}: expected $ACTION_MEMBER_ID or $SELECTOR_GROUP_ID, not both")
        if member is not None:
            p4_entry.action.action_profile_member_id = to_p4(self._number(member, self._data[Id.ACTION_MEMBER_ID]))
        elif group is not None:
            ident = to_p4(self._number(group, self._data[Id.SELECTOR_GROUP_ID]))
            if state.tables.is_without_members(self.table_id, ident):
                precondition(f"{self.name}: $SELECTOR_GROUP_ID {from_p4(ident)} has no active member")
            p4_entry.action.action_profile_group_id = ident
        elif action_id:
            before = old.action.action if old is not None else None
            p4_entry.action.action.CopyFrom(self._actions.decode(action_id, given, before))

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the default action, member or group, or restore that of the program (RESET, DELETE)."""
        p4_entry = p4runtime_pb2.TableEntry(table_id=self.table_id, is_default_action=True)
        given: dict[int, Message] = {}
        if not self._restores(kind):
            given = self._given(entry.data, {**self._data, **self._actions.fields(entry.data.action_id)})
            rates = None if self._is_indirect else self._rate_fields()
            taken = {Id.ACTION_MEMBER_ID, Id.SELECTOR_GROUP_ID, *self._direct.ids}
            if rates is not None:
                taken.update(rates[1])
            refused = [self._data[ident]["name"] for ident in given if ident in self._data and ident not in taken]
            if refused:
                unimplemented(f"{self.name}: {refused[0]} of the default entry is not supported")
            self._take_target(entry.data.action_id, given, p4_entry, state)
            if not p4_entry.HasField("action"):
                invalid(f"{self.name}: the action is missing")
            if rates is not None:
                self._take_meter(given, p4_entry, next(iter(self._defaults(state)), None))
        elif self._info["has_const_default_action"]:
            return lambda: None

        def steps() -> Iterator[Undo]:
            if self._is_indirect:
                action = p4_entry.action if p4_entry.HasField("action") else None
                yield state.tables.write_indirect_default(self.table_id, action)
            else:
                yield write_p4(state, P4Update.MODIFY, "table_entry", p4_entry)
            if self._direct:
                yield self._direct.change(None, given, state)

        return in_turn(steps())

    def clear(self, state: State) -> Undo:
        """Delete all entries except those of the program."""
        query = p4runtime_pb2.TableEntry(table_id=self.table_id)
        removable = [e for e in read_p4(state, "table_entry", query) if not e.is_const]
        keys = [p4runtime_pb2.TableEntry(table_id=e.table_id, match=e.match, priority=e.priority) for e in removable]
        return write_p4(state, P4Update.DELETE, "table_entry", *keys)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the entry with a key, the default entry, or all others."""
        if entry.is_default_entry:
            defaults = [self._encoded(e, state) for e in self._defaults(state)]
            for each in defaults:
                self._direct.put(None, each.data, state)
            return defaults
        if entry.WhichOneof("value") == "key":
            one = self._found(entry.key, state)
            p4_entries = [] if one is None else [one]
        else:
            p4_entries = read_p4(state, "table_entry", self._query())
        entries = [self._encoded(each, state) for each in p4_entries]
        if self._direct:
            state.collect(self._put_cells(p4_entries, entries, state), [])
        if self._idle is not None:
            state.collect(self._put_ages(p4_entries, entries, state, from_hw=entry.table_flags.from_hw), [])
        return entries

    def _encoded(self, p4_entry: Message, state: State) -> Message:
        entry = self._entry()
        entry.is_default_entry = p4_entry.is_default_action
        if not p4_entry.is_default_action:
            entry.key.CopyFrom(self.keys.encode(p4_entry.match, p4_entry.priority))
        kind = p4_entry.action.WhichOneof("type")
        if kind == "action":
            if self._actions.specs:
                self._actions.encode(p4_entry.action.action, entry.data)
        elif kind == "action_profile_member_id":
            self._put(entry.data, Id.ACTION_MEMBER_ID, from_p4(p4_entry.action.action_profile_member_id))
        elif kind == "action_profile_group_id":
            self._put(entry.data, Id.SELECTOR_GROUP_ID, from_p4(p4_entry.action.action_profile_group_id))
        elif kind is not None:
            unimplemented(f"{self.name}: an entry has an action set, which P4Runtime wrote and BfRuntime cannot show")
        if self._has_counter and not p4_entry.is_default_action:
            self._put_counts(entry.data, p4_entry.counter_data)
        if not (p4_entry.is_default_action and self._is_indirect):
            self._put_rates(entry.data, p4_entry.meter_config if p4_entry.HasField("meter_config") else None, state)
        return entry
