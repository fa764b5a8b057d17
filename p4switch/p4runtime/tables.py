"""Table entries, default actions, and the direct counters and meters of entries.

Each write first checks the whole message, then changes the engine and then the store. It returns a function that undoes
the write.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from p4switch.p4runtime.cells import check_counter, set_counter
from p4switch.p4runtime.errors import already_exists, denied, invalid, not_found, unimplemented
from p4switch.p4runtime.match import decode_action, decode_match, encode_action, encode_match
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.meters import decode_meter, encode_meter, no_colour_counters
from p4switch.p4runtime.pipeline import Call, Pipeline, Profile, Table
from p4switch.p4runtime.profiles import (
    OneShot,
    OneShotGroup,
    ProfileStore,
    Undo,
    encode_one_shot,
    one_shot_size,
)

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField, Switch
    from p4switch.engine._engine import Target as EngineTarget

_INSERT, _MODIFY, _DELETE = p4runtime_pb2.Update.INSERT, p4runtime_pb2.Update.MODIFY, p4runtime_pb2.Update.DELETE

Key: TypeAlias = "tuple[tuple[KeyField, ...], int]"  # match and priority
MeterRates: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class MemberRef:
    """Reference of a table entry to a member."""

    id: int


@dataclass(frozen=True, slots=True)
class GroupRef:
    """Reference of a table entry to a group."""

    id: int


Target: TypeAlias = Call | MemberRef | GroupRef | OneShot


@dataclass(slots=True)
class Entry:
    """Table entry as a controller wrote it."""

    target: Target
    group: OneShotGroup | None = None  # group of a one-shot target
    handle: int = -1
    is_const: bool = False
    metadata: bytes = b""
    cookie: int = 0
    idle_timeout_ns: int = 0
    meter: MeterRates | None = None
    inserted_ns: int = 0
    notified_ns: int = 0


@dataclass(slots=True)
class _State:
    info: Table
    entries: dict[Key, Entry] = field(default_factory=dict)
    default: Target | None = None  # None: the default action of the program
    default_metadata: bytes = b""
    default_cookie: int = 0
    default_meter: MeterRates | None = None
    masks: tuple[int, ...] = ()  # masks of the exact fields, in order; empty: all bits are compared

    def key_of(self, matches: Sequence[Message]) -> tuple[KeyField, ...]:
        """Return the engine's key without the bits that masks exclude.

        Raises P4RuntimeError like `decode_match`.
        """
        key = decode_match(self.info, matches)
        if not self.masks:
            return key
        return tuple((_masked(value, mask), b"") for (value, _), mask in zip(key, self.masks, strict=True))


class TableStore:
    """Tables of one device: entries, default actions, direct counters and meters."""

    def __init__(self, pipeline: Pipeline, switch: Switch, profiles: ProfileStore, clock_ns: Callable[[], int],
                 tick_ns: int) -> None:
        self._switch = switch
        self._profiles = profiles
        self._clock_ns = clock_ns
        self._tick_ns = tick_ns
        self._states = {ident: _State(info) for ident, info in pipeline.tables.items()}
        for state in self._states.values():
            for handle, initial in enumerate(state.info.initial_entries):
                state.entries[initial.key, initial.priority] = Entry(initial.call, None, handle, initial.is_const)

    def _state(self, ident: int) -> _State:
        state = self._states.get(ident)
        if state is None:
            invalid(f"no table has the id {ident}")
        return state

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, kind: int, message: Message) -> Undo:
        """Write an entry or a default action and return how to undo it."""
        state = self._state(message.table_id)
        info = state.info
        if message.is_const:
            invalid(f"{info.name}: is_const cannot be written")
        if message.HasField("time_since_last_hit"):
            invalid("has_time_since_last_hit must not be set in WriteRequest")
        if message.is_default_action:
            return self._write_default(kind, state, message)
        key = self._key(state, message)
        entry = state.entries.get(key)
        if kind == _DELETE:
            return self._delete(state, key, entry)
        self._check_extras(info, message)
        if kind == _INSERT:
            return self._insert(state, key, entry, message)
        return self._modify(state, entry, message)

    def set_masks(self, table_id: int, masks: Mapping[int, int]) -> None:
        """Set the masks of fields by their ids. All fields of the table are exact, and it has no entries."""
        state = self._state(table_id)
        state.masks = tuple(masks[f.id] for f in state.info.fields)

    @staticmethod
    def _key(state: _State, message: Message) -> Key:
        info, priority = state.info, message.priority
        if info.needs_priority:
            if priority <= 0:
                invalid(f"{info.name}: priority {priority}; expected 1 or more, as the table has ternary, range or "
                        "optional match fields")
        elif priority:
            invalid(f"{info.name}: priority {priority}; expected 0, as the table has no ternary, range or optional "
                    "match fields")
        return state.key_of(message.match), priority

    @staticmethod
    def _check_extras(info: Table, message: Message) -> None:
        # These messages, and that about time_since_last_hit, have exactly the words of PI, because some
        # controllers compare them.
        if message.idle_timeout_ns < 0:
            invalid("idle_timeout_ns must be a positive value")
        if message.idle_timeout_ns and not info.idle_timeout:
            invalid("idle_timeout_ns must be set to 0 for tables which do not support idle timeout")
        if message.HasField("counter_data"):
            if not info.has_counter:
                invalid(f"{info.name}: the table has no direct counter")
            check_counter(message.counter_data, info.name)
        if info.meter is None and message.HasField("meter_config"):
            invalid(f"{info.name}: the table has no direct meter")
        no_colour_counters(message, "meter_counter_data", info.name)

    def _insert(self, state: _State, key: Key, entry: Entry | None, message: Message) -> Undo:
        info = state.info
        if info.is_const:
            denied(f"{info.name}: the entries are constant")
        if not info.fields:
            invalid(f"{info.name}: a table without key has no entries; set its default action")
        if entry is not None:
            already_exists(f"{info.name}: the entry exists")
        if not message.HasField("action"):
            invalid(f"{info.name}: action is missing")
        new = Entry(self._target(info, message.action), metadata=message.metadata, cookie=message.controller_metadata,
                    idle_timeout_ns=message.idle_timeout_ns, inserted_ns=self._clock_ns())
        if info.meter is not None and message.HasField("meter_config"):
            new.meter = decode_meter(info.meter, message.meter_config, info.name)
        counter = None
        if message.HasField("counter_data"):
            counter = (message.counter_data.packet_count, message.counter_data.byte_count)
        self._add(state, key, new, counter)
        return lambda: self._remove(state, key)

    def _add(self, state: _State, key: Key, entry: Entry, counter: tuple[int, int] | None) -> None:
        info = state.info
        target = self._use(info, entry)
        try:
            entry.handle = self._switch.table_add(info.name, key[0], key[1], target)
        except (ValueError, OverflowError):
            self._drop(info, entry)
            raise
        if counter is not None:
            self._switch.direct_counter_write(info.name, entry.handle, *counter)
        if entry.meter is not None:
            self._switch.direct_meter_set(info.name, entry.handle, entry.meter)
        state.entries[key] = entry

    def _remove(self, state: _State, key: Key) -> None:
        entry = state.entries.pop(key)
        self._switch.table_delete(state.info.name, entry.handle)
        self._drop(state.info, entry)

    def _delete(self, state: _State, key: Key, entry: Entry | None) -> Undo:
        info = state.info
        if info.is_const:
            denied(f"{info.name}: the entries are constant")
        if entry is None:
            not_found(f"{info.name}: the entry does not exist")
        if entry.is_const:
            denied(f"{info.name}: the entry is constant")
        counter = self._switch.direct_counter_read(info.name, entry.handle) if info.has_counter else None
        self._remove(state, key)
        return lambda: self._add(state, key, entry, counter)

    def _modify(self, state: _State, entry: Entry | None, message: Message) -> Undo:
        """Modify an entry. The message replaces the whole entry, except an omitted action or counter.

        See the specification, "TableEntry".
        """
        info = state.info
        if entry is None:
            not_found(f"{info.name}: the entry does not exist")
        constant = info.is_const or entry.is_const
        if constant and message.HasField("action"):
            denied(f"{info.name}: the entry is constant; only its direct counter and meter can be written")
        old_meter, old_counter = entry.meter, None
        old = (entry.metadata, entry.cookie, entry.idle_timeout_ns)
        meter = None
        if info.meter is not None and message.HasField("meter_config"):
            meter = decode_meter(info.meter, message.meter_config, info.name)
        old_target = entry.target
        if message.HasField("action"):
            self._retarget(info, entry, self._target(info, message.action))
        if message.HasField("counter_data"):
            old_counter = self._switch.direct_counter_read(info.name, entry.handle)
            data = message.counter_data
            self._switch.direct_counter_write(info.name, entry.handle, data.packet_count, data.byte_count)
        self._set_meter(info, entry, meter)
        if not constant:
            entry.metadata, entry.cookie = message.metadata, message.controller_metadata
            entry.idle_timeout_ns = message.idle_timeout_ns

        def undo() -> None:
            self._set_meter(info, entry, old_meter)
            if old_counter is not None:
                self._switch.direct_counter_write(info.name, entry.handle, *old_counter)
            if entry.target is not old_target:
                self._retarget(info, entry, old_target)
            entry.metadata, entry.cookie, entry.idle_timeout_ns = old

        return undo

    def _set_meter(self, info: Table, entry: Entry, meter: MeterRates | None) -> None:
        if meter != entry.meter:
            self._switch.direct_meter_set(info.name, entry.handle, meter)
            entry.meter = meter

    def _write_default(self, kind: int, state: _State, message: Message) -> Undo:
        info = state.info
        if kind != _MODIFY:
            invalid(f"{info.name}: the default entry always exists; expected MODIFY")
        if message.match or message.priority:
            invalid(f"{info.name}: the default entry has neither match nor priority")
        if message.idle_timeout_ns:
            invalid(f"{info.name}: the default entry has no idle timeout")
        if info.const_default or info.profile is not None:
            denied(f"{info.name}: the default action is constant")
        self._check_extras(info, message)
        if message.HasField("counter_data"):
            unimplemented(f"{info.name}: the default entry has no direct counter")
        meter = None
        if info.meter is not None and message.HasField("meter_config"):
            meter = decode_meter(info.meter, message.meter_config, info.name)
        old, old_meter = (state.default, state.default_metadata, state.default_cookie), state.default_meter
        if message.HasField("action"):
            if message.action.WhichOneof("type") != "action":
                invalid(f"{info.name}: the default action must be an action")
            call = decode_action(info, message.action.action, default=True)
            self._set_default(state, call, message.metadata, message.controller_metadata)
        else:
            self._set_default(state, None, b"", 0)
        self._set_default_meter(state, meter)

        def undo() -> None:
            self._set_default_meter(state, old_meter)
            self._set_default(state, *old)

        return undo

    def _set_default_meter(self, state: _State, meter: MeterRates | None) -> None:
        if meter != state.default_meter:
            self._switch.direct_meter_set(state.info.name, None, meter)
            state.default_meter = meter

    def write_indirect_default(self, table_id: int, action: Message | None) -> Undo:
        """Set or clear the default of a table with an action profile: a member or group. Return how to undo it.

        This is for BfRuntime. In P4Runtime the default of such a table is constant.
        """
        state = self._state(table_id)
        target = None if action is None else self._target(state.info, action)
        if isinstance(target, OneShot):
            invalid(f"{state.info.name}: expected a member or group as the default")
        old = state.default
        self._set_default(state, target, b"", 0)
        return lambda: self._set_default(state, old, b"", 0)

    def _set_default(self, state: _State, target: Target | None, metadata: bytes, cookie: int) -> None:
        new = None if target is None else Entry(target)
        engine_target = None if new is None else self._use(state.info, new)
        try:
            self._switch.table_set_default(state.info.name, engine_target)
        except (ValueError, OverflowError):
            if new is not None:
                self._drop(state.info, new)
            raise
        if state.default is not None:
            self._drop(state.info, Entry(state.default))
        state.default, state.default_metadata, state.default_cookie = target, metadata, cookie

    # -- targets of entries -----------------------------------------------------------------------------------------

    def _target(self, info: Table, action: Message) -> Target:
        kind = action.WhichOneof("type")
        if info.profile is None:
            if kind != "action":
                invalid(f"{info.name}: expected an action, not {kind or 'nothing'}")
            return decode_action(info, action.action)
        if kind == "action_profile_member_id":
            return MemberRef(action.action_profile_member_id)
        if kind == "action_profile_group_id" and info.profile.with_selector:
            return GroupRef(action.action_profile_group_id)
        if kind == "action_profile_action_set":
            what = action.action_profile_action_set
            calls = [decode_action(info, a.action) for a in what.action_profile_actions]
            return self._profiles.decode_one_shot(info.profile, calls, what)
        expected = "a member, group or action set" if info.profile.with_selector else "a member"
        return invalid(f"{info.name}: expected {expected} of {info.profile.name}, not {kind or 'nothing'}")

    def _use(self, info: Table, entry: Entry, freed: int = 0) -> EngineTarget:
        """Count a reference to each object of an entry's target; `_drop` releases them."""
        target = entry.target
        if isinstance(target, Call):
            return ("action", target.action.name, target.args)
        profile = _profile(info)
        if isinstance(target, MemberRef):
            return ("member", self._profiles.use_member(profile, target.id))
        if isinstance(target, GroupRef):
            return ("group", self._profiles.use_group(profile, target.id))
        entry.group = self._profiles.use_one_shot(profile, target, freed)
        return ("group", entry.group.handle)

    def _drop(self, info: Table, entry: Entry) -> None:
        target = entry.target
        if isinstance(target, MemberRef):
            self._profiles.drop_member(_profile(info), target.id)
        elif isinstance(target, GroupRef):
            self._profiles.drop_group(_profile(info), target.id)
        elif entry.group is not None:
            self._profiles.drop_one_shot(_profile(info), entry.group)
            entry.group = None

    def _retarget(self, info: Table, entry: Entry, target: Target) -> None:
        old = Entry(entry.target, entry.group)
        freed = one_shot_size(_profile(info), old.target) if isinstance(old.target, OneShot) else 0
        new = Entry(target)
        engine_target = self._use(info, new, freed)
        try:
            self._switch.table_modify(info.name, entry.handle, engine_target)
        except (ValueError, OverflowError):
            self._drop(info, new)
            raise
        entry.target, entry.group = new.target, new.group
        self._drop(info, old)

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, query: Message) -> Iterator[Message | None]:
        """Yield the entries that a query selects, and None for each entry that it does not select.

        Nothing may be written before the iteration ends.
        """
        if query.table_id:
            states = [self._state(query.table_id)]
        else:
            if query.match or query.priority or query.HasField("action"):
                invalid("a read of all tables cannot be filtered by match, priority or action")
            states = list(self._states.values())
        for state in states:
            info = state.info
            if query.table_id:
                self._check_query(info, query)
            if query.is_default_action:
                yield self._default_message(state, query)
                continue
            for selected in self._selected(state, query):
                yield None if selected is None else self._message(info, *selected, query)

    @staticmethod
    def _check_query(info: Table, query: Message) -> None:
        if query.HasField("counter_data") and not info.has_counter:
            invalid(f"{info.name}: the table has no direct counter")
        if query.HasField("meter_config") and info.meter is None:
            invalid(f"{info.name}: the table has no direct meter")
        if query.HasField("time_since_last_hit") and not info.idle_timeout:
            invalid(f"{info.name}: the table has no idle timeout")
        no_colour_counters(query, "meter_counter_data", info.name)

    def _selected(self, state: _State, query: Message) -> Iterator[tuple[Key, Entry] | None]:
        action_id = 0
        if query.HasField("action"):
            if query.action.WhichOneof("type") != "action":
                invalid(f"{state.info.name}: entries are filtered by action id only")
            action_id = query.action.action.action_id
        for keyed in _by_key(state, query):
            entry = None if keyed is None else keyed[1]
            meant = entry is not None and not (
                (query.metadata and entry.metadata != query.metadata)
                or (query.controller_metadata and entry.cookie != query.controller_metadata)
                or (action_id and not (isinstance(entry.target, Call) and entry.target.action.id == action_id))
            )
            yield keyed if meant else None

    def _message(self, info: Table, key: Key, entry: Entry, query: Message) -> Message:
        message = self._key_message(info, key, entry)
        _encode_target(entry.target, message.action)
        message.is_const = info.is_const or entry.is_const
        if info.has_counter and query.HasField("counter_data"):
            self._fill_counter(info, entry, message.counter_data)
        if entry.meter is not None and query.HasField("meter_config"):
            encode_meter(entry.meter, message.meter_config)
        if info.idle_timeout and query.HasField("time_since_last_hit"):
            message.time_since_last_hit.elapsed_ns = self._clock_ns() - self._last_hit_ns(info, entry)
        return message

    @staticmethod
    def _key_message(info: Table, key: Key, entry: Entry) -> Message:
        message = p4runtime_pb2.TableEntry(
            table_id=info.id, priority=key[1], metadata=entry.metadata, controller_metadata=entry.cookie,
            idle_timeout_ns=entry.idle_timeout_ns,
        )
        encode_match(info.fields, key[0], message.match)
        return message

    @staticmethod
    def _default_message(state: _State, query: Message) -> Message:
        info = state.info
        message = p4runtime_pb2.TableEntry(
            table_id=info.id, is_default_action=True, metadata=state.default_metadata,
            controller_metadata=state.default_cookie, is_const=info.const_default or info.profile is not None,
        )
        target = state.default or info.initial_default
        if target is not None:
            _encode_target(target, message.action)
        if state.default_meter is not None and query.HasField("meter_config"):
            encode_meter(state.default_meter, message.meter_config)
        return message

    # -- direct counters and meters ---------------------------------------------------------------------------------

    def write_direct_counter(self, kind: int, message: Message) -> Undo:
        """Set a direct counter and return how to undo it."""
        info, entry = self._direct(kind, message.table_entry)
        if not info.has_counter:
            invalid(f"{info.name}: the table has no direct counter")
        check_counter(message.data, info.name)
        old = self._switch.direct_counter_read(info.name, entry.handle)
        if message.HasField("data"):
            self._switch.direct_counter_write(
                info.name, entry.handle, message.data.packet_count, message.data.byte_count
            )
        return lambda: self._switch.direct_counter_write(info.name, entry.handle, *old)

    def write_direct_meter(self, kind: int, message: Message) -> Undo:
        """Set a direct meter and return how to undo it."""
        if kind == _MODIFY and message.table_entry.is_default_action:
            return self._write_default_meter(self._state(message.table_entry.table_id), message)
        info, entry = self._direct(kind, message.table_entry)
        if info.meter is None:
            invalid(f"{info.name}: the table has no direct meter")
        no_colour_counters(message, "counter_data", info.name)
        new = decode_meter(info.meter, message.config, info.name) if message.HasField("config") else None
        old = entry.meter
        self._set_meter(info, entry, new)
        return lambda: self._set_meter(info, entry, old)

    def _write_default_meter(self, state: _State, message: Message) -> Undo:
        if state.info.meter is None:
            invalid(f"{state.info.name}: the table has no direct meter")
        no_colour_counters(message, "counter_data", state.info.name)
        new = decode_meter(state.info.meter, message.config, state.info.name) if message.HasField("config") else None
        old = state.default_meter
        self._set_default_meter(state, new)
        return lambda: self._set_default_meter(state, old)

    @staticmethod
    def _default_meter(state: _State) -> Message:
        message = p4runtime_pb2.DirectMeterEntry()
        message.table_entry.table_id, message.table_entry.is_default_action = state.info.id, True
        if state.default_meter is not None:
            encode_meter(state.default_meter, message.config)
        return message

    def _direct(self, kind: int, message: Message) -> tuple[Table, Entry]:
        if kind != _MODIFY:
            invalid("direct counters and meters come and go with their table entry; expected MODIFY")
        state = self._state(message.table_id)
        if message.is_default_action:
            unimplemented(f"{state.info.name}: the default entry has no direct counter")
        entry = state.entries.get(self._key(state, message))
        if entry is None:
            not_found(f"{state.info.name}: the entry does not exist")
        return state.info, entry

    def read_direct_counters(self, query: Message) -> Iterator[Message | None]:
        """Yield the direct counters that a query selects, and None for each entry that it does not select."""
        for selected in self._direct_selected(query.table_entry, lambda t: t.has_counter, "counter"):
            if selected is None:
                yield None
                continue
            info, key, entry = selected
            message = p4runtime_pb2.DirectCounterEntry(table_entry=self._bare_key(info, key))
            self._fill_counter(info, entry, message.data)
            yield message

    def read_direct_meters(self, query: Message) -> Iterator[Message | None]:
        """Yield the direct meters that a query selects, and None for each entry that it does not select."""
        no_colour_counters(query, "counter_data", "direct meters")
        if query.table_entry.is_default_action and query.table_entry.table_id:
            state = self._state(query.table_entry.table_id)
            if state.info.meter is not None:
                yield self._default_meter(state)
                return
        for selected in self._direct_selected(query.table_entry, lambda t: t.meter is not None, "meter"):
            if selected is None:
                yield None
                continue
            info, key, entry = selected
            message = p4runtime_pb2.DirectMeterEntry(table_entry=self._bare_key(info, key))
            if entry.meter is not None:
                encode_meter(entry.meter, message.config)
            yield message

    def _direct_selected(self, query: Message, has: Callable[[Table], bool],
                         what: str) -> Iterator[tuple[Table, Key, Entry] | None]:
        if not query.table_id:
            for state in self._states.values():
                if has(state.info):
                    for key, entry in state.entries.items():
                        yield state.info, key, entry
            return
        state = self._state(query.table_id)
        if not has(state.info):
            invalid(f"{state.info.name}: the table has no direct {what}")
        if query.is_default_action:
            unimplemented(f"{state.info.name}: the default entry has no direct {what}")
        exists = False
        for keyed in _by_key(state, query):
            exists = exists or keyed is not None
            yield None if keyed is None else (state.info, *keyed)
        if query.match and not exists:
            not_found(f"{state.info.name}: the entry does not exist")

    def _fill_counter(self, info: Table, entry: Entry, into: Message) -> None:
        set_counter(into, self._switch.direct_counter_read(info.name, entry.handle))

    @staticmethod
    def _bare_key(info: Table, key: Key) -> Message:
        message = p4runtime_pb2.TableEntry(table_id=info.id, priority=key[1])
        encode_match(info.fields, key[0], message.match)
        return message

    # -- reconciliation ---------------------------------------------------------------------------------------------

    def carried(self) -> Iterator[Message]:
        """Yield the entries that a controller can have written: non-constant entries and changed default actions."""
        for state in self._states.values():
            info = state.info
            query = p4runtime_pb2.TableEntry(table_id=info.id)
            if info.has_counter:
                query.counter_data.SetInParent()
            if info.meter is not None:
                query.meter_config.SetInParent()
            for key, entry in state.entries.items():
                if not (info.is_const or entry.is_const):
                    yield self._message(info, key, entry, query)
            if state.default is not None and info.profile is None:
                yield self._default_message(state, query)

    def carried_default_meters(self) -> Iterator[Message]:
        """Yield the direct meters of default entries that a controller has set."""
        return (self._default_meter(state) for state in self._states.values() if state.default_meter is not None)

    def carry_indirect_defaults(self, old: TableStore) -> None:
        """Copy the members and groups that are defaults in `old`. Raises P4RuntimeError if one does not exist."""
        for ident, state in old._states.items():
            if state.default is not None and state.info.profile is not None:
                self.write_indirect_default(ident, self._default_message(state, p4runtime_pb2.TableEntry()).action)

    def forget_initial_entries(self, of: TableStore) -> None:
        """Remove the program's entries that are not constant from each table that is also in `of`."""
        for ident, state in self._states.items():
            if ident in of._states and not state.info.is_const:
                for key in [key for key, entry in state.entries.items() if not entry.is_const]:
                    self._remove(state, key)

    # -- idle timeout -----------------------------------------------------------------------------------------------

    def _last_hit_ns(self, info: Table, entry: Entry) -> int:
        return max(entry.inserted_ns, self._switch.table_last_hit(info.name, entry.handle) * self._tick_ns)

    def now_ns(self) -> int:
        """Return the present time of the clock that `Entry.inserted_ns` refers to."""
        return self._clock_ns()

    def find(self, message: Message) -> tuple[Key, Entry] | None:
        """Return the key in a TableEntry and the entry with that key, or None.

        Raises P4RuntimeError (INVALID_ARGUMENT) if the table does not exist or the key is not valid.
        """
        state = self._state(message.table_id)
        key = self._key(state, message)
        entry = state.entries.get(key)
        return None if entry is None else (key, entry)

    def hits(self, table_id: int) -> Iterator[tuple[Key, Entry, int]]:
        """Yield the entries of a table, each with the time of its last hit, or 0.

        Nothing may be written before the iteration ends.
        """
        state = self._state(table_id)
        for key, entry in state.entries.items():
            yield key, entry, self.hit_ns(table_id, entry)

    def hit_ns(self, table_id: int, entry: Entry) -> int:
        """Return the time at which a packet last hit an entry, or 0."""
        return self._switch.table_last_hit(self._state(table_id).info.name, entry.handle) * self._tick_ns

    def is_without_members(self, table_id: int, group_id: int) -> bool:
        """Return whether a group of a table's selector exists, but none of its members receives packets."""
        return self._profiles.is_empty(_profile(self._state(table_id).info), group_id)

    def key_message(self, table_id: int, key: Key, entry: Entry) -> Message:
        """Return a TableEntry with the key of an entry."""
        return self._key_message(self._state(table_id).info, key, entry)

    @property
    def has_idle_timeouts(self) -> bool:
        """True if any table has idle time-outs."""
        return any(state.info.idle_timeout for state in self._states.values())

    def idle_entries(self) -> Iterator[Message | None]:
        """Yield entries that no packet has hit during their time-out, and None for other entries.

        The time-out starts again when the entry is yielded. Nothing may be written before the iteration
        ends.
        """
        now_ns = self._clock_ns()
        for state in self._states.values():
            if not state.info.idle_timeout:
                continue
            for key, entry in state.entries.items():
                if not entry.idle_timeout_ns:
                    yield None
                    continue
                since_ns = max(self._last_hit_ns(state.info, entry), entry.notified_ns)
                if now_ns - since_ns >= entry.idle_timeout_ns:
                    entry.notified_ns = now_ns
                    yield self._key_message(state.info, key, entry)
                else:
                    yield None


def _encode_target(target: Target, into: Message) -> None:
    """Fill a TableAction."""
    if isinstance(target, Call):
        encode_action(target, into.action)
    elif isinstance(target, MemberRef):
        into.action_profile_member_id = target.id
    elif isinstance(target, GroupRef):
        into.action_profile_group_id = target.id
    else:
        encode_one_shot(target, into.action_profile_action_set)


def _masked(value: bytes | None, mask: int) -> bytes:
    assert value is not None
    return (int.from_bytes(value, "big") & mask).to_bytes(len(value), "big")


def _profile(info: Table) -> Profile:
    assert info.profile is not None
    return info.profile


def _by_key(state: _State, query: Message) -> Iterator[tuple[Key, Entry] | None]:
    """Yield the entries that match a query's key and priority, and None for each other entry."""
    if not query.match:
        for keyed in state.entries.items():
            yield keyed if query.priority in (0, keyed[0][1]) else None
        return
    match = state.key_of(query.match)
    if query.priority or not state.info.needs_priority:
        key = (match, query.priority)
        if key in state.entries:
            yield key, state.entries[key]
        return
    for keyed in state.entries.items():
        yield keyed if keyed[0][0] == match else None
