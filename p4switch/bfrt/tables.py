"""Tables of BfRuntime over the state of a P4Runtime device; reads and writes become P4Runtime entities.

`KINDS` has a class for each `table_type` in `bf-rt.json`; other types are refused by name.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from p4switch.bfrt.aging import NS_A_MS, IdleTimeout
from p4switch.bfrt.attributes import ALL_PIPES, Attribute, Client, EntryScope, Notice
from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.keys import Keys, number, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.p4runtime import p4data
from p4switch.p4runtime.bytestring import canonical, size
from p4switch.p4runtime.errors import P4RuntimeError, already_exists, invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.messages import code_pb2, p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Slots, Undo

_LOG = logging.getLogger(__name__)
_Update = bfruntime_pb2.Update
_P4Update = p4runtime_pb2.Update
_MOST = (1 << 63) - 1  # largest rate and count of P4Runtime
_MOST_MEMBERS = (1 << 31) - 1  # largest group size of P4Runtime
_UNLIMITED = (1 << 64) - 1
_FOR_ZERO = (1 << 32) - 1
_DEFAULT_ENTRY = 1  # the handle of a default entry
_COUNTS = (Id.COUNTER_SPEC_BYTES, Id.COUNTER_SPEC_PKTS)
_RATES = {
    1000 // 8: (Id.METER_SPEC_CIR_KBPS, Id.METER_SPEC_PIR_KBPS, Id.METER_SPEC_CBS_KBITS, Id.METER_SPEC_PBS_KBITS),
    1: (Id.METER_SPEC_CIR_PPS, Id.METER_SPEC_PIR_PPS, Id.METER_SPEC_CBS_PKTS, Id.METER_SPEC_PBS_PKTS),
}
"""Fields of a meter, by the number of P4Runtime's units (bytes or packets per second) in one of theirs."""


def _to_p4(ident: int) -> int:
    """Return P4Runtime's id of a member or group.

    P4Runtime does not allow the id 0; its highest id stands for it.
    """
    return ident or _FOR_ZERO


def _from_p4(ident: int) -> int:
    return 0 if ident == _FOR_ZERO else ident


def type_name(kind: int) -> str:
    """Return the name of an update type."""
    found = next((name for name, value in _Update.Type.items() if value == kind), None)
    return found or str(kind)


def _one(kind: str, message: Message) -> Message:
    return p4runtime_pb2.Entity(**{kind: message})


def _read(state: State, kind: str, message: Message) -> list[Message]:
    """Return the entities that a query of P4Runtime selects."""
    found: list[Message] = []
    state.collect(state.read(_one(kind, message)), found)
    return [getattr(each, kind) for each in found]


def _write(state: State, how: int, kind: str, *messages: Message) -> Undo:
    """Write all entities in order or none, and return how to undo it."""
    undos: list[Undo] = []
    try:
        for message in messages:
            undos.append(state.write(_P4Update(type=how, entity=_one(kind, message))))
    except P4RuntimeError:
        _undo_all(undos)
        raise
    return lambda: _undo_all(undos)


def _undo_all_of(*undos: Undo) -> Undo:
    return lambda: _undo_all(undos)


def _undo_all(undos: Sequence[Undo]) -> None:
    for undo in reversed(undos):
        undo()


class Table(ABC):
    """Base of tables.

    `info` is the table's object in `bf-rt.json`; `ids` maps the kinds and names of P4Info's objects to their ids.
    """

    takes: ClassVar[frozenset[int]] = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY})
    """Update types that the table supports, besides DELETE of everything."""
    offers: ClassVar[Mapping[str, type[Attribute]]] = {"EntryScope": EntryScope}
    """Attributes that the table may have, by their names in `bf-rt.json`."""
    always: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that the table has although `bf-rt.json` does not list them."""

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        self.name: str = info["name"]
        self.id: int = info["id"]
        self.operations: list[str] = info["supported_operations"]
        kinds = (self.offers.get(name) for name in [*info["attributes"], *self.always])
        self.attributes: dict[str, Attribute] = {kind.kind: kind(self) for kind in kinds if kind is not None}
        self._info = info
        self._ids = ids
        self._handles: dict[bytes, int] = {}
        """Handle of each key that a client has asked for; the default entry has the first."""
        self._keys_of: dict[int, Message] = {}
        self._known: dict[bytes, dict[int, bytes]] = {}
        """Counts of each key, by field, as they were last read from the hardware or written."""
        self._data = {f["id"]: f for data in info["data"] for f in data.get("oneof", [data.get("singleton")])}

    def _p4_id(self, kind: str, name: str = "") -> int:
        """Return P4Info's id of the object behind the table, or of another object with a given name."""
        return self._ids[kind, name or self.name.partition(".")[2]]

    def attribute(self, kind: str) -> Attribute:
        """Return an attribute. Raises P4RuntimeError (UNIMPLEMENTED)."""
        found = self.attributes.get(kind)
        if found is None:
            unimplemented(f"{self.name}: the attribute {kind} is not supported")
        return found

    def forget(self) -> None:
        """Forget attributes and handles."""
        self.attributes = {kind: type(attribute)(self) for kind, attribute in self.attributes.items()}
        self._handles, self._keys_of, self._known = {}, {}, {}

    def operate(self, name: str, state: State) -> None:
        """Execute an operation of the table; synchronising operations update the known counts.

        Raises P4RuntimeError (UNIMPLEMENTED).
        """
        if not name.startswith("Sync"):
            unimplemented(f"{self.name}: the operation {name} is not supported")
        if self._counts:
            self._know_read(self.find(bfruntime_pb2.TableEntry(table_id=self.id), state))

    def check_pipe(self, pipe: int) -> None:
        """Refuse a write for a single pipe, as all pipes share the entries.

        Raises P4RuntimeError (INVALID_ARGUMENT).
        """
        scope = self.attributes.get(EntryScope.kind)
        if pipe != ALL_PIPES and isinstance(scope, EntryScope) and scope.is_symmetric:
            invalid(f"{self.name}: pipe {pipe}; expected {ALL_PIPES:#x}, as entries are those of all pipes")

    def write(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry and return how to undo it. Raises P4RuntimeError without changing anything."""
        value = entry.WhichOneof("value")
        if value == "handle_id":
            unimplemented(f"{self.name}: handles are not supported")
        if entry.is_default_entry:
            return self.write_default(kind, entry, state)
        if value is None and kind == _Update.DELETE:
            old, self._known = self._known, {}
            try:
                undo = self.clear(state)
            except P4RuntimeError:
                self._known = old
                raise
            return _undo_all_of(undo, lambda: setattr(self, "_known", old))
        if kind not in self.takes:
            unimplemented(f"{self.name}: {type_name(kind)} is not supported")
        if value is None and self._info["key"]:
            invalid(f"{self.name}: the key is missing")
        undo = self.write_entry(kind, entry, state)
        return _undo_all_of(undo, self._know_written(kind, entry)) if self._counts else undo

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Write the default entry of a table that has one."""
        unimplemented(f"{self.name}: a {self._info['table_type']} table has no default entry")

    @abstractmethod
    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry with a key."""

    @abstractmethod
    def clear(self, state: State) -> Undo:
        """Delete all entries, or set them to their initial values."""

    def read(self, entry: Message, state: State, target: Message) -> list[Message]:
        """Return the entries that a query for `target` selects. Raises P4RuntimeError."""
        flags = entry.table_flags
        value = entry.WhichOneof("value")
        self.check_read(entry, target.pipe_id)
        for flag in ("reset_ttl", "reset_stats"):
            if getattr(flags, flag):
                unimplemented(f"{self.name}: the flag {flag} is not supported")
        unknown = [f.field_id for f in entry.data.fields if f.field_id not in self.data_ids()]
        if unknown:
            invalid(f"{self.name}: no data field has the id {unknown[0]}")
        found = self.find(self._by_key(entry), state)
        if self._counts and not entry.is_default_entry:
            (self._know_read if flags.from_hw else self._as_known)(found)
        wanted = {f.field_id for f in entry.data.fields}
        for each in found:
            each.is_default_entry = entry.is_default_entry
            if flags.key_only:
                each.ClearField("data")
                if value == "handle_id":
                    each.entry_tgt.CopyFrom(target)
            elif wanted:
                kept = [f for f in each.data.fields if f.field_id in wanted]
                del each.data.fields[:]
                each.data.fields.extend(kept)
        if not found and value is not None:
            not_found(f"{self.name}: the entry does not exist")
        return found

    def check_read(self, entry: Message, pipe: int) -> None:
        """Refuse to read shared entries from a single pipe, and the other way round. Raises P4RuntimeError.

        Entries read from software belong to the pipes they were written for; entries read from hardware belong to each
        pipe.
        """
        scope = self.attributes.get(EntryScope.kind)
        if not isinstance(scope, EntryScope):
            return
        value = entry.WhichOneof("value")
        if entry.is_default_entry and not scope.is_symmetric and pipe == ALL_PIPES:
            invalid(f"{self.name}: expected a pipe, as each has a default entry of its own")
        if value is not None and scope.is_symmetric and pipe != ALL_PIPES and not entry.table_flags.from_hw:
            not_found(f"{self.name}: pipe {pipe} has no entries of its own")
        if value == "key" and not scope.is_symmetric and pipe == ALL_PIPES:
            not_found(f"{self.name}: expected a pipe, as each has entries of its own")

    @cached_property
    def _counts(self) -> frozenset[int]:
        """Ids of the fields that count packets or bytes."""
        return frozenset(_COUNTS) & self._data.keys()

    def canonical_key(self, key: Message) -> Message:
        """Return a key in the form in which it is returned to clients."""
        return key

    def _know_written(self, kind: int, entry: Message) -> Undo:
        """Note the counts that an entry was written with, and return how to undo it."""
        key = self.canonical_key(entry.key).SerializeToString(deterministic=True)
        old = self._known.pop(key, None)
        given = {f.field_id: f.stream for f in entry.data.fields if f.field_id in self._counts}
        before = {} if kind in (_Update.INSERT, _Update.DELETE) or old is None else old
        if kind != _Update.DELETE:
            self._known[key] = {**before, **given}

        def undo() -> None:
            self._known.pop(key, None)
            if old is not None:
                self._known[key] = old

        return undo

    def _know_read(self, found: Sequence[Message]) -> None:
        """Note the present counts of entries."""
        for each in found:
            if each.HasField("key"):
                key = each.key.SerializeToString(deterministic=True)
                self._known[key] = {f.field_id: f.stream for f in each.data.fields if f.field_id in self._counts}

    def _as_known(self, found: Sequence[Message]) -> None:
        """Replace the counts in entries by those last read or written, or by 0 if there are none."""
        for each in found:
            known = self._known.get(each.key.SerializeToString(deterministic=True), {})
            for field in each.data.fields:
                if field.field_id in self._counts:
                    field.stream = known.get(field.field_id, bytes(len(field.stream)))

    def handle(self, key: Message, state: State) -> int:
        """Return the handle of an entry: of its key, as long as the program runs. Raises P4RuntimeError (NOT_FOUND)."""
        found = self.find(bfruntime_pb2.TableEntry(table_id=self.id, key=key), state)
        if not found:
            not_found(f"{self.name}: the entry does not exist")
        whole = found[0].key.SerializeToString(deterministic=True)
        if whole not in self._handles:
            self._handles[whole] = _DEFAULT_ENTRY + 1 + len(self._handles)
            self._keys_of[self._handles[whole]] = found[0].key
        return self._handles[whole]

    def _by_key(self, entry: Message) -> Message:
        """Return a query with its handle replaced by the key. Raises P4RuntimeError (NOT_FOUND)."""
        if entry.WhichOneof("value") != "handle_id":
            return entry
        made = bfruntime_pb2.TableEntry()
        made.CopyFrom(entry)
        if entry.handle_id == _DEFAULT_ENTRY:
            made.ClearField("handle_id")
            made.is_default_entry = True
            return made
        key = self._keys_of.get(entry.handle_id)
        if key is None:
            not_found(f"{self.name}: no entry has the handle {entry.handle_id}")
        made.key.CopyFrom(key)
        return made

    def data_ids(self) -> set[int]:
        """Return the ids of all data fields."""
        actions = self._info.get("action_specs", [])
        return {*self._data, *(f["id"] for action in actions for f in action["data"])}

    @abstractmethod
    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the entry with a query's key, all entries, or the default entry."""

    def usage(self, state: State) -> int:
        """Return the number of entries."""
        return len(self.find(bfruntime_pb2.TableEntry(table_id=self.id), state))

    def _given(self, data: Message, fields: Mapping[int, Json]) -> dict[int, Message]:
        """Return the given data fields by id. Raises P4RuntimeError (INVALID_ARGUMENT) for others than `fields`."""
        given: dict[int, Message] = {}
        for field in data.fields:
            if field.field_id not in fields:
                invalid(f"{self.name}: no data field has the id {field.field_id}")
            given[field.field_id] = field
        return given

    def _number(self, field: Message, info: Json) -> int:
        where = f"{self.name}: {info['name']}"
        if info["type"]["type"] == "bool":
            if field.WhichOneof("value") != "bool_val":
                invalid(f"{where}: expected a bool")
            return int(field.bool_val)
        if "choices" in info["type"]:
            choices = info["type"]["choices"]
            if field.str_val not in choices:
                invalid(f"{where}: {field.str_val!r}; expected one of {', '.join(choices)}")
            return int(choices.index(field.str_val))
        if field.WhichOneof("value") != "stream":
            invalid(f"{where}: expected bytes")
        return number(field.stream, width_of(info), where)

    def _at_most(self, most: int, field: Message, info: Json) -> int:
        """Return a number that P4Runtime can represent. Raises P4RuntimeError (INVALID_ARGUMENT)."""
        value = self._number(field, info)
        if value > most:
            invalid(f"{self.name}: {info['name']} {value}; expected at most {most}")
        return value

    def _index(self, entry: Message) -> int:
        """Return the value of the only key field."""
        (info,) = self._info["key"]
        if len(entry.key.fields) != 1 or entry.key.fields[0].field_id != info["id"]:
            invalid(f"{self.name}: expected {info['name']} as the key, and nothing else")
        return number(entry.key.fields[0].exact.value, width_of(info), f"{self.name}: {info['name']}")

    def _entry(self, index: int | None = None) -> Message:
        """Return a new entry whose key is a number."""
        made = bfruntime_pb2.TableEntry(table_id=self.id)
        made.data.SetInParent()
        if index is not None:
            (info,) = self._info["key"]
            made.key.fields.add(field_id=info["id"]).exact.value = index.to_bytes(size(width_of(info)), "big")
        return made

    def _put(self, data: Message, ident: int, value: int) -> None:
        info = self._data[ident]
        field = data.fields.add(field_id=ident)
        if info["type"]["type"] == "bool":
            field.bool_val = bool(value)
        elif info["type"]["type"] == "string":
            field.str_val = info["type"]["choices"][value]
        else:
            field.stream = value.to_bytes(size(width_of(info)), "big")

    # Counts and rates of counter and meter tables, and of tables with direct counters and meters

    def _rate_fields(self) -> tuple[int, tuple[Id, ...]] | None:
        return next(((unit, ids) for unit, ids in _RATES.items() if ids[0] in self._data), None)

    def _put_counts(self, into: Message, counter: Message) -> None:
        for ident, value in zip(_COUNTS, (counter.byte_count, counter.packet_count), strict=True):
            if ident in self._data:
                self._put(into, ident, value)

    def _take_counts(self, given: Mapping[int, Message], into: Message) -> bool:
        """Set the counts that are given, and return whether there are any."""
        for ident, name in zip(_COUNTS, ("byte_count", "packet_count"), strict=True):
            if ident in given:
                value = self._at_most(_MOST, given[ident], self._data[ident])
                setattr(into, name, value)
        return any(ident in given for ident in _COUNTS)

    def _put_rates(self, into: Message, config: Message | None) -> None:
        found = self._rate_fields()
        if found is None:
            return
        unit, ids = found
        for ident, name in zip(ids, ("cir", "pir", "cburst", "pburst"), strict=True):
            rate = _MOST if config is None else getattr(config, name)
            self._put(into, ident, _UNLIMITED if rate == _MOST else rate // unit)

    def _take_rates(self, given: Mapping[int, Message], into: Message) -> bool:
        """Set the rates and bursts that are given, and return whether there are any."""
        found = self._rate_fields()
        if found is None or not any(ident in given for ident in found[1]):
            return False
        unit, ids = found
        for ident, name in zip(ids, ("cir", "pir", "cburst", "pburst"), strict=True):
            if ident in given:
                setattr(into, name, min(self._number(given[ident], self._data[ident]) * unit, _MOST))
        return True


def _no_limits() -> Message:
    return p4runtime_pb2.MeterConfig(cir=_MOST, pir=_MOST, cburst=_MOST, pburst=_MOST)


class _Actions:
    """Actions of a table, by their ids in `bf-rt.json`."""

    def __init__(self, table: str, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        self._table = table
        self.specs = {spec["id"]: spec for spec in info.get("action_specs", [])}
        self._p4 = {ident: ids["action", spec["name"]] for ident, spec in self.specs.items()}
        self._back = {p4: ident for ident, p4 in self._p4.items()}

    def decode(self, ident: int, given: Mapping[int, Message], old: Message | None = None) -> Message:
        """Return P4Runtime's action.

        Parameters that are not given keep their value in `old`, or are 0 if `old` is a different action.

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
        """Return the parameters of an action by their ids; id 0 means no action.

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


class MatchTable(Table):
    """Match-action tables, with actions, or with members and groups of action profiles."""

    takes = Table.takes | {_Update.DELETE}
    offers: ClassVar[Mapping[str, type[Attribute]]] = {**Table.offers, "IdleTimeout": IdleTimeout}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._keys = Keys(info)
        self._actions = _Actions(self.name, info, ids)
        self.table_id = self._p4_id("table")
        self._has_counter = any(ident in self._data for ident in _COUNTS)
        self._is_indirect = Id.ACTION_MEMBER_ID in self._data

    def _query(self) -> Message:
        query = p4runtime_pb2.TableEntry(table_id=self.table_id)
        if self._has_counter:
            query.counter_data.SetInParent()
        if self._rate_fields() is not None:
            query.meter_config.SetInParent()
        return query

    def _found(self, key: Message, state: State) -> Message | None:
        """Return P4Runtime's entry with a key, if it exists."""
        query = self._query()
        matches, query.priority = self._keys.decode(key)
        query.match.extend(matches)
        wanted = {m.field_id: m for m in matches}
        found = _read(state, "table_entry", query)
        return next((e for e in found if {m.field_id: m for m in e.match} == wanted), None)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry; MODIFY keeps fields that are not given."""
        if kind == _Update.DELETE:
            made = p4runtime_pb2.TableEntry(table_id=self.table_id)
            matches, made.priority = self._keys.decode(entry.key)
            made.match.extend(matches)
            return _write(state, _P4Update.DELETE, "table_entry", made)
        old = None if kind == _Update.INSERT else self._found(entry.key, state)
        if old is None and kind == _Update.MODIFY:
            not_found(f"{self.name}: the entry does not exist")
        made = self._made(entry, old, state)
        undo = _write(state, _P4Update.INSERT if old is None else _P4Update.MODIFY, "table_entry", made)
        idle = self._idle
        if idle is None:
            return undo
        undo_age = self._set_age(idle, made, entry, state, is_new=old is None)
        return _undo_all_of(undo, undo_age)

    def canonical_key(self, key: Message) -> Message:
        """Return a key in the form in which it is returned to clients.

        Fields that match any value are included, and bits outside of masks are 0.
        """
        return self._keys.encode(*self._keys.decode(key))

    @property
    def _idle(self) -> IdleTimeout | None:
        found = self.attributes.get(IdleTimeout.kind)
        return found if isinstance(found, IdleTimeout) else None

    def _set_age(self, idle: IdleTimeout, made: Message, entry: Message, state: State, *, is_new: bool) -> Undo:
        """Restart the aging of an entry that was written, if the write asks for it."""
        found = state.tables.find(made)
        assert found is not None
        given = {field.field_id: field for field in entry.data.fields}
        hit_state = None
        if Id.ENTRY_HIT_STATE in given:
            hit_state = self._number(given[Id.ENTRY_HIT_STATE], self._data[Id.ENTRY_HIT_STATE])
        begins = is_new or Id.ENTRY_TTL in given or entry.table_flags.reset_ttl
        hit_ns = state.tables.hit_ns(self.table_id, found[1])
        return idle.set_entry(*found, begins=begins, hit_state=hit_state, hit_ns=hit_ns)

    def _put_ages(
        self, found: Sequence[Message], made: Sequence[Message], state: State, *, from_hw: bool
    ) -> Iterator[None]:
        """Put the remaining time and the hit state of entries into them."""
        idle = self._idle
        assert idle is not None
        for p4_entry, into in zip(found, made, strict=True):
            there = state.tables.find(p4_entry)
            if there is not None:  # packets do not delete entries, but other controllers may
                hit_ns = state.tables.hit_ns(self.table_id, there[1])
                self._put(into.data, Id.ENTRY_HIT_STATE, idle.hit_state(*there, hit_ns, from_hw=from_hw))
                if Id.ENTRY_TTL in self._data:
                    self._put(into.data, Id.ENTRY_TTL, idle.left_ms(*there))
            yield None

    def operate(self, name: str, state: State) -> None:
        """Execute an operation; for idle time-outs it updates which entries packets have hit."""
        if name == "UpdateHitState" and self._idle is not None:
            self._idle.update_hit_states(state)
        else:
            super().operate(name, state)

    def key_alone(self, entry: Message) -> Message:
        """Return an entry that has only the key of a P4Runtime entry."""
        alone = bfruntime_pb2.TableEntry(table_id=self.id)
        alone.key.CopyFrom(self._keys.encode(entry.match, entry.priority))
        return alone

    def _made(self, entry: Message, old: Message | None, state: State) -> Message:
        """Return the P4Runtime entry to be written."""
        made = p4runtime_pb2.TableEntry(table_id=self.table_id)
        matches, made.priority = self._keys.decode(entry.key)
        made.match.extend(matches)
        given = self._given(entry.data, {**self._data, **self._actions.fields(entry.data.action_id)})
        self._take_target(entry.data.action_id, given, made, state, old)
        if old is None and not made.HasField("action"):
            invalid(f"{self.name}: the action is missing")
        counter = p4runtime_pb2.CounterData()
        if old is not None:
            counter.CopyFrom(old.counter_data)
            made.metadata, made.controller_metadata = old.metadata, old.controller_metadata
            made.idle_timeout_ns = old.idle_timeout_ns
        if Id.ENTRY_TTL in given:
            made.idle_timeout_ns = self._number(given[Id.ENTRY_TTL], self._data[Id.ENTRY_TTL]) * NS_A_MS
        if self._take_counts(given, counter):
            made.counter_data.CopyFrom(counter)
        had = old is not None and old.HasField("meter_config")
        config = old.meter_config if old is not None and had else _no_limits()
        if self._take_rates(given, config) or had:
            made.meter_config.CopyFrom(config)
        return made

    def _take_target(
        self, action_id: int, given: Mapping[int, Message], made: Message, state: State, old: Message | None = None
    ) -> None:
        member, group = given.get(Id.ACTION_MEMBER_ID), given.get(Id.SELECTOR_GROUP_ID)
        if member is not None and group is not None:
            invalid(f"{self.name}: expected $ACTION_MEMBER_ID or $SELECTOR_GROUP_ID, not both")
        if member is not None:
            made.action.action_profile_member_id = _to_p4(self._number(member, self._data[Id.ACTION_MEMBER_ID]))
        elif group is not None:
            ident = _to_p4(self._number(group, self._data[Id.SELECTOR_GROUP_ID]))
            if state.tables.is_without_members(self.table_id, ident):
                precondition(f"{self.name}: $SELECTOR_GROUP_ID {_from_p4(ident)} has no active member")
            made.action.action_profile_group_id = ident
        elif action_id:
            before = old.action.action if old is not None else None
            made.action.action.CopyFrom(self._actions.decode(action_id, given, before))

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the default action, member or group, or restore that of the program (RESET, DELETE)."""
        made = p4runtime_pb2.TableEntry(table_id=self.table_id, is_default_action=True)
        if kind in (_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY):
            given = self._given(entry.data, {**self._data, **self._actions.fields(entry.data.action_id)})
            targets = (Id.ACTION_MEMBER_ID, Id.SELECTOR_GROUP_ID)
            refused = [self._data[ident]["name"] for ident in given if ident in self._data and ident not in targets]
            if refused:
                unimplemented(f"{self.name}: {refused[0]} of the default entry is not supported")
            self._take_target(entry.data.action_id, given, made, state)
            if not made.HasField("action"):
                invalid(f"{self.name}: the action is missing")
        elif kind not in (_Update.RESET, _Update.DELETE):
            unimplemented(f"{self.name}: {type_name(kind)} of the default entry is not supported")
        elif self._info["has_const_default_action"]:
            return lambda: None
        if self._is_indirect:
            action = made.action if made.HasField("action") else None
            return state.tables.write_indirect_default(self.table_id, action)
        return _write(state, _P4Update.MODIFY, "table_entry", made)

    def clear(self, state: State) -> Undo:
        """Delete all entries except those of the program."""
        query = p4runtime_pb2.TableEntry(table_id=self.table_id)
        found = [e for e in _read(state, "table_entry", query) if not e.is_const]
        keys = [p4runtime_pb2.TableEntry(table_id=e.table_id, match=e.match, priority=e.priority) for e in found]
        return _write(state, _P4Update.DELETE, "table_entry", *keys)

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the entry with a key, the default entry, or all others."""
        if entry.is_default_entry:
            query = p4runtime_pb2.TableEntry(table_id=self.table_id, is_default_action=True)
            return [self._encoded(e) for e in _read(state, "table_entry", query)]
        if entry.WhichOneof("value") == "key":
            one = self._found(entry.key, state)
            found = [] if one is None else [one]
        else:
            found = _read(state, "table_entry", self._query())
        made = [self._encoded(each) for each in found]
        if self._idle is not None:
            state.collect(self._put_ages(found, made, state, from_hw=entry.table_flags.from_hw), [])
        return made

    def _encoded(self, found: Message) -> Message:
        made = self._entry()
        made.is_default_entry = found.is_default_action
        if not found.is_default_action:
            made.key.CopyFrom(self._keys.encode(found.match, found.priority))
        kind = found.action.WhichOneof("type")
        if kind == "action":
            if self._actions.specs:
                self._actions.encode(found.action.action, made.data)
        elif kind == "action_profile_member_id":
            self._put(made.data, Id.ACTION_MEMBER_ID, _from_p4(found.action.action_profile_member_id))
        elif kind == "action_profile_group_id":
            self._put(made.data, Id.SELECTOR_GROUP_ID, _from_p4(found.action.action_profile_group_id))
        elif kind is not None:
            unimplemented(f"{self.name}: an entry has an action set, which P4Runtime wrote and BfRuntime cannot tell")
        if not found.is_default_action:
            if self._has_counter:
                self._put_counts(made.data, found.counter_data)
            self._put_rates(made.data, found.meter_config if found.HasField("meter_config") else None)
        return made


class ActionTable(Table):
    """Members of action profiles."""

    takes = Table.takes | {_Update.DELETE}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._actions = _Actions(self.name, info, ids)
        self._profile = self._p4_id("action_profile")

    def _members(self, state: State, ident: int = 0) -> list[Message]:
        query = p4runtime_pb2.ActionProfileMember(action_profile_id=self._profile, member_id=ident)
        return _read(state, "action_profile_member", query)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a member."""
        ident = _to_p4(self._index(entry))
        made = p4runtime_pb2.ActionProfileMember(action_profile_id=self._profile, member_id=ident)
        if kind == _Update.DELETE:
            return _write(state, _P4Update.DELETE, "action_profile_member", made)
        given = self._given(entry.data, self._actions.fields(entry.data.action_id))
        made.action.CopyFrom(self._actions.decode(entry.data.action_id, given))
        exists = kind == _Update.MODIFY or (kind == _Update.INSERT_OR_MODIFY and bool(self._members(state, ident)))
        return _write(state, _P4Update.MODIFY if exists else _P4Update.INSERT, "action_profile_member", made)

    def clear(self, state: State) -> Undo:
        """Delete all members."""
        return _write(state, _P4Update.DELETE, "action_profile_member", *self._members(state))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return members."""
        keyed = entry.WhichOneof("value") == "key"
        found = []
        for member in self._members(state, _to_p4(self._index(entry)) if keyed else 0):
            made = self._entry(_from_p4(member.member_id))
            self._actions.encode(member.action, made.data)
            found.append(made)
        return found


class SelectorTable(Table):
    """Groups of action selectors."""

    takes = Table.takes | {_Update.DELETE, _Update.MODIFY_INC}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._profile = ids["selector", self.name.partition(".")[2]]
        self._offsets: dict[int, int] = {}
        """Position of each group on a chip, which is only returned to clients."""

    def forget(self) -> None:
        """Forget all groups."""
        super().forget()
        self._offsets = {}

    def _groups(self, state: State, ident: int = 0) -> list[Message]:
        query = p4runtime_pb2.ActionProfileGroup(action_profile_id=self._profile, group_id=ident)
        return _read(state, "action_profile_group", query)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a group; MODIFY_INC adds or removes members."""
        ident = _to_p4(self._index(entry))
        made = p4runtime_pb2.ActionProfileGroup(action_profile_id=self._profile, group_id=ident)
        if kind == _Update.DELETE:
            return _write(state, _P4Update.DELETE, "action_profile_group", made)
        old = next(iter(self._groups(state, ident)), None)
        if old is None and kind in (_Update.MODIFY, _Update.MODIFY_INC):
            not_found(f"{self.name}: the group does not exist")
        if kind == _Update.INSERT:
            old = None
            made.max_size = self._data[Id.MAX_GROUP_SIZE]["type"]["default_value"]
        given = self._given(entry.data, self._data)
        if old is not None:
            made.CopyFrom(old)
        if Id.MAX_GROUP_SIZE in given:
            size_field = given[Id.MAX_GROUP_SIZE], self._data[Id.MAX_GROUP_SIZE]
            made.max_size = self._at_most(_MOST_MEMBERS, *size_field)
        offset = self._offset(given, made.max_size)
        slots: Slots = () if old is None else state.profiles.slots(self._profile, ident)
        if Id.ACTION_MEMBER_ID in given:
            changed = self._given_slots(given)
            if kind == _Update.MODIFY_INC:
                changed = self._changed(slots, changed, takes_away=entry.table_flags.mod_del)
            slots = changed
            del made.members[:]
            for member, weight in Counter(member for member, _ in slots).items():
                made.members.add(member_id=member, weight=weight)
        if old is not None and state.profiles.is_used(self._profile, ident) and not any(on for _, on in slots):
            precondition(f"{self.name}: no member would be active, and table entries refer to the group")
        undos = []
        try:
            if old is not None and made.max_size != old.max_size:
                undos.append(state.profiles.resize(self._profile, ident, made.max_size))
            how = _P4Update.INSERT if old is None else _P4Update.MODIFY
            undos.append(_write(state, how, "action_profile_group", made))
        except P4RuntimeError:
            _undo_all(undos)
            raise
        undos.append(state.profiles.set_slots(self._profile, ident, slots))
        undos.append(self._set_offset(ident, offset, is_new=old is None))
        return lambda: _undo_all(undos)

    def _given_slots(self, given: Mapping[int, Message]) -> Slots:
        """Return the given members, and whether each is active."""
        members = [_to_p4(member) for member in given[Id.ACTION_MEMBER_ID].int_arr_val.val]
        states = given[Id.ACTION_MEMBER_STATUS].bool_arr_val.val if Id.ACTION_MEMBER_STATUS in given else ()
        if states and len(states) != len(members):
            invalid(f"{self.name}: {len(members)} members and {len(states)} states; expected as many")
        return tuple(zip(members, states or [True] * len(members), strict=True))

    def _changed(self, slots: Slots, given: Slots, *, takes_away: bool) -> Slots:
        """Return the slots without the given ones, or with the given ones added or changed."""
        changes = dict(given)
        there = {member for member, _ in slots}
        if not takes_away:
            kept = [(member, changes.get(member, active)) for member, active in slots]
            return (*kept, *((member, active) for member, active in given if member not in there))
        missing = changes.keys() - there
        if missing:
            not_found(f"{self.name}: member {_from_p4(min(missing))} is not in the group")
        return tuple(slot for slot in slots if slot[0] not in changes)

    def _offset(self, given: Mapping[int, Message], max_size: int) -> int | None:
        """Return the given position of a group's members on a chip, if any.

        It has to be a multiple of the group's size rounded up to a power of two.
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
        made = None if is_new else old
        made = made if offset is None else offset

        def put(value: int | None) -> None:
            self._offsets.pop(ident, None)
            if value is not None:
                self._offsets[ident] = value

        put(made)
        return lambda: put(old)

    def clear(self, state: State) -> Undo:
        """Delete all groups."""
        return _write(state, _P4Update.DELETE, "action_profile_group", *self._groups(state))

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return groups."""
        keyed = entry.WhichOneof("value") == "key"
        found = []
        for group in self._groups(state, _to_p4(self._index(entry)) if keyed else 0):
            made = self._entry(_from_p4(group.group_id))
            slots = state.profiles.slots(self._profile, group.group_id)
            ids = made.data.fields.add(field_id=Id.ACTION_MEMBER_ID).int_arr_val.val
            ids.extend(_from_p4(member) for member, _ in slots)
            states = made.data.fields.add(field_id=Id.ACTION_MEMBER_STATUS).bool_arr_val.val
            states.extend(active for _, active in slots)
            if group.group_id in self._offsets:
                self._put(made.data, Id.ADT_OFFSET, self._offsets[group.group_id])
            self._put(made.data, Id.MAX_GROUP_SIZE, group.max_size)
            found.append(made)
        return found


class AnyPipe(Table):
    """Tables that accept requests for the only pipe as well as for all pipes."""

    always = ("EntryScope",)

    def check_pipe(self, pipe: int) -> None:
        """Accept writes for the only pipe and for all pipes."""

    def check_read(self, entry: Message, pipe: int) -> None:
        """Accept reads from the only pipe and from all pipes."""


class Cells(AnyPipe):
    """Arrays of cells. Cells always exist, so INSERT and MODIFY are the same; DELETE without a key clears all cells."""

    entity: ClassVar[str]
    """Name of P4Runtime's entity."""

    @abstractmethod
    def bare(self) -> Message:
        """Return P4Runtime's message that selects all cells."""

    @abstractmethod
    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set the given fields of a cell."""

    @abstractmethod
    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put a cell into the data of an entry."""

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write a cell; fields that are not given keep their values."""
        return self._write_cell(self._index(entry), entry, state)

    def _write_cell(self, index: int, entry: Message, state: State) -> Undo:
        cell = self._cell(index, state)
        self.take(self._given(entry.data, self._data), cell, state)
        return _write(state, _P4Update.MODIFY, self.entity, cell)

    def _cell(self, index: int, state: State) -> Message:
        query = self.bare()
        query.index.index = index
        (cell,) = _read(state, self.entity, query)
        return cell

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return cells."""
        if entry.is_default_entry:
            unimplemented(f"{self.name}: a {self._info['table_type']} table has no default entry")
        keyed = entry.WhichOneof("value") == "key"
        cells = [self._cell(self._index(entry), state)] if keyed else _read(state, self.entity, self.bare())
        return [self._encoded(cell, state, cell.index.index) for cell in cells]

    def _encoded(self, cell: Message, state: State, index: int | None) -> Message:
        made = self._entry(index)
        self.put(cell, made.data, state)
        return made

    def usage(self, state: State) -> int:
        """Return the size, because cells always exist."""
        return int(self._info["size"])


class CounterTable(Cells):
    """Counters."""

    entity = "counter_entry"

    def bare(self) -> Message:
        """Return P4Runtime's message that selects all counters."""
        return p4runtime_pb2.CounterEntry(counter_id=self._p4_id("counter"))

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set counts."""
        self._take_counts(given, cell.data)

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put counts into data."""
        self._put_counts(data, cell.data)

    def clear(self, state: State) -> Undo:
        """Set all counts to 0."""
        made = self.bare()
        made.data.SetInParent()
        return _write(state, _P4Update.MODIFY, self.entity, made)


class MeterTable(Cells):
    """Meters."""

    entity = "meter_entry"

    def bare(self) -> Message:
        """Return P4Runtime's message that selects all meters."""
        return p4runtime_pb2.MeterEntry(meter_id=self._p4_id("meter"))

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set rates and bursts."""
        if not cell.HasField("config"):
            cell.config.CopyFrom(_no_limits())
        self._take_rates(given, cell.config)

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put rates and bursts into data."""
        self._put_rates(data, cell.config if cell.HasField("config") else None)

    def clear(self, state: State) -> Undo:
        """Make all meters green for every packet."""
        return _write(state, _P4Update.MODIFY, self.entity, self.bare())


class RegisterTable(Cells):
    """Registers. A cell has one value of each field, because there is one pipeline."""

    entity = "register_entry"

    def bare(self) -> Message:
        """Return P4Runtime's message that selects all cells."""
        return p4runtime_pb2.RegisterEntry(register_id=self._p4_id("register"))

    def _spec(self, state: State) -> tuple[Message, Message]:
        spec = state.pipeline.registers[self._p4_id("register")].type_spec
        return spec, state.pipeline.p4info.type_info

    def take(self, given: Mapping[int, Message], cell: Message, state: State) -> None:
        """Set the numbers of a cell; all of them have to be given."""
        missing = [f["name"] for ident, f in self._data.items() if ident not in given]
        if missing:
            invalid(f"{self.name}: {missing[0]} is missing")
        numbers = [(self._number(given[ident], f), size(width_of(f))) for ident, f in self._data.items()]
        whole = b"".join(value.to_bytes(length, "big") for value, length in numbers)
        cell.data.CopyFrom(p4data.encoder(*self._spec(state))(whole))

    def put(self, cell: Message, data: Message, state: State) -> None:
        """Put the numbers of a cell into data."""
        whole = p4data.decode(*self._spec(state), cell.data)
        for ident, f in self._data.items():
            length = size(width_of(f))
            self._put(data, ident, int.from_bytes(whole[:length], "big"))
            whole = whole[length:]

    def clear(self, state: State) -> Undo:
        """Set all cells to their initial values."""
        return self._reset(self.bare(), state)

    def _reset(self, cell: Message, state: State) -> Undo:
        """Set one cell, or all cells, to the initial value in the program."""
        name = self.name.partition(".")[2]
        initial = next(each.initial for each in state.pipeline.program.registers if each.name == name)
        left, whole = sum(width_of(f) for f in self._data.values()), b""
        for f in self._data.values():
            left -= width_of(f)
            whole += (initial >> left & (1 << width_of(f)) - 1).to_bytes(size(width_of(f)), "big")
        cell.data.CopyFrom(p4data.encoder(*self._spec(state))(whole))
        return _write(state, _P4Update.MODIFY, self.entity, cell)


class ParameterTable(RegisterTable):
    """Parameters of register actions: registers of one cell, which is the default entry."""

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the number, or restore that of the program (RESET, DELETE)."""
        if kind in (_Update.RESET, _Update.DELETE):
            return self._reset(self._cell(0, state), state)
        if kind not in (_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY):
            unimplemented(f"{self.name}: {type_name(kind)} of the default entry is not supported")
        return self._write_cell(0, entry, state)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Refuse entries, because there is no key."""
        invalid(f"{self.name}: the table has no key; expected the default entry")

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the number."""
        if not entry.is_default_entry:
            return []
        made = self._encoded(self._cell(0, state), state, None)
        made.is_default_entry = True
        return [made]

    def clear(self, state: State) -> Undo:
        """Refuse to clear, because there are no entries."""
        unimplemented(f"{self.name}: DELETE is not supported")


class PortMetadataTable(Table):
    """Port metadata in front of each packet: the fields of a struct, or one number. Every port has an entry."""

    takes = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY, _Update.DELETE})
    _STATE, _MEMBER = "$port", "metadata"

    def _fields(self, state: State) -> dict[int, int]:
        """Return the offset of each field from the lowest bit of the port metadata, by id."""
        _, known = state.path.find(self._STATE)
        left = dict(known.kind.cell)[self._MEMBER]
        places = {}
        for ident, info in self._data.items():
            left -= width_of(info)
            places[ident] = left
        return places

    def _value(self, port: int, state: State) -> int:
        return state.path.members(self._STATE, port)[self._MEMBER]

    def _store(self, values: Mapping[int, int], state: State) -> Undo:
        """Write the metadata of each port."""
        cells = []
        for port, value in values.items():
            members = {**state.path.members(self._STATE, port), self._MEMBER: value}
            cells.append(state.path.entry(self._STATE, port, members))
        return _write(state, _P4Update.MODIFY, "extern_entry", *cells)

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Set the fields of a port; fields that are not given keep their values. DELETE sets them to 0."""
        port, value = self._index(entry), 0
        if kind != _Update.DELETE:
            value = self._value(port, state)
            for ident, field in self._given(entry.data, self._data).items():
                info, shift = self._data[ident], self._fields(state)[ident]
                mask = (1 << width_of(info)) - 1
                value = value & ~(mask << shift) | self._number(field, info) << shift
        return self._store({port: value}, state)

    def clear(self, state: State) -> Undo:
        """Set the fields of all ports to 0."""
        return self._store(dict.fromkeys(self._set_ports(state), 0), state)

    def _set_ports(self, state: State) -> list[int]:
        _, known = state.path.find(self._STATE)
        return [port for port in range(known.size) if self._value(port, state)]

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return the requested port, or the ports whose fields are not 0."""
        if entry.is_default_entry:
            unimplemented(f"{self.name}: a {self._info['table_type']} table has no default entry")
        keyed = entry.WhichOneof("value") == "key"
        found = []
        for port in [self._index(entry)] if keyed else self._set_ports(state):
            value, made = self._value(port, state), self._entry(port)
            for ident, shift in self._fields(state).items():
                self._put(made.data, ident, value >> shift & (1 << width_of(self._data[ident])) - 1)
            found.append(made)
        return found


class DeviceTable(Table):
    """Properties of the device, in a default entry whose fields are mostly read-only."""

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
        made: dict[int, bool] = {}
        if kind == _Update.MODIFY:
            made.update(self._values)
            for ident, field in self._given(entry.data, self._data).items():
                if ident in self._fixed:
                    invalid(f"{self.name}: {self._data[ident]['name']} is read-only")
                made[ident] = bool(self._number(field, self._data[ident]))
        elif kind not in (_Update.RESET, _Update.DELETE):
            unimplemented(f"{self.name}: {type_name(kind)} of the default entry is not supported")
        old, self._values = self._values, made

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
        made = self._entry()
        made.is_default_entry = True
        for ident, info in self._data.items():
            value = self._values.get(ident, info["type"]["default_value"])
            if info["type"]["type"] == "string":
                made.data.fields.add(field_id=ident, str_val=value)
            elif info["repeated"]:
                made.data.fields.add(field_id=ident).int_arr_val.val.extend(value)
            else:
                self._put(made.data, ident, value)
        return [made]


class ValueSetTable(Table):
    """Value sets of parsers."""

    takes = frozenset({_Update.INSERT, _Update.DELETE})

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._keys = Keys(info)

    def _set(self, state: State) -> Message:
        query = p4runtime_pb2.ValueSetEntry(value_set_id=self._p4_id("value_set"))
        (found,) = _read(state, "value_set_entry", query)
        return found

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Add or remove a value."""
        found = self._set(state)
        given = self._member(entry.key)
        place = next((i for i, m in enumerate(found.members) if m == given), None)
        if kind == _Update.DELETE:
            if place is None:
                not_found(f"{self.name}: the entry does not exist")
            del found.members[place]
        else:
            if place is not None:
                already_exists(f"{self.name}: the entry exists")
            found.members.append(given)
        return _write(state, _P4Update.MODIFY, "value_set_entry", found)

    def _member(self, key: Message) -> Message:
        """Return a key, which is ternary in BfRuntime, as a P4Runtime member, whose fields are exact."""
        member = p4runtime_pb2.ValueSetMember()
        matches, _ = self._keys.decode(key)
        whole = {f["id"]: canonical((1 << width_of(f)) - 1) for f in self._info["key"]}
        found = {m.field_id: m.ternary for m in matches}
        for ident, mask in whole.items():
            if ident not in found or found[ident].mask != mask:
                unimplemented(f"{self.name}: a mask that is not all ones is not supported")
            match = member.match.add(field_id=ident)
            match.exact.value = found[ident].value
        return member

    def clear(self, state: State) -> Undo:
        """Delete all values."""
        return _write(
            state,
            _P4Update.MODIFY,
            "value_set_entry",
            p4runtime_pb2.ValueSetEntry(value_set_id=self._p4_id("value_set")),
        )

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return values."""
        members = list(self._set(state).members)
        if entry.WhichOneof("value") == "key":
            members = [m for m in members if m == self._member(entry.key)]
        masks = {f["id"]: canonical((1 << width_of(f)) - 1) for f in self._info["key"]}
        found = []
        for member in members:
            made = self._entry()
            ternary = [p4runtime_pb2.FieldMatch(field_id=m.field_id) for m in member.match]
            for match, m in zip(ternary, member.match, strict=True):
                match.ternary.value, match.ternary.mask = m.exact.value, masks[m.field_id]
            made.key.CopyFrom(self._keys.encode(ternary, 0))
            found.append(made)
        return found


KINDS: Mapping[str, type[Table]] = {
    "MatchAction_Direct": MatchTable,
    "MatchAction_Indirect": MatchTable,
    "MatchAction_Indirect_Selector": MatchTable,
    "Action": ActionTable,
    "Selector": SelectorTable,
    "Counter": CounterTable,
    "Meter": MeterTable,
    "Register": RegisterTable,
    "RegisterParam": ParameterTable,
    "ParserValueSet": ValueSetTable,
    "DevConfigure": DeviceTable,
    "PortMetadata": PortMetadataTable,
}


class Tables:
    """Tables of a program's `bf-rt.json`, and fixed tables, on a device that runs the program with this P4Info."""

    def __init__(
        self, bf_rt: Json, p4info: Any, fixed: Sequence[Json] = (), more: Mapping[str, type[Table]] | None = None
    ) -> None:
        """Create the tables; `more` are kinds besides `KINDS`, for fixed tables."""
        self._p4info = p4info
        kinds_of = {**KINDS, **(more or {})}
        every = [*bf_rt["tables"], *fixed]
        self._infos: dict[int, Json] = {t["id"]: t for t in every}
        ids = dict(_p4_ids(p4info))
        profiles = {t["id"]: t["name"].partition(".")[2] for t in bf_rt["tables"] if t["table_type"] == "Action"}
        for info in bf_rt["tables"]:
            if info["table_type"] == "Selector":
                profile = next(profiles[of] for of in info["depends_on"] if of in profiles)
                ids["selector", info["name"].partition(".")[2]] = ids["action_profile", profile]
        kinds = ((info, kinds_of.get(info["table_type"])) for info in every)
        self._tables = {info["id"]: kind(info, ids) for info, kind in kinds if kind is not None}
        self._learn = {ids["digest", each["name"].partition(".")[2]]: each for each in bf_rt["learn_filters"]}
        self._checked: Any = None

    def table(self, ident: int) -> Table:
        """Return a table. Raises P4RuntimeError: NOT_FOUND, or UNIMPLEMENTED for a kind that is not supported."""
        info = self._infos.get(ident)
        if info is None:
            not_found(f"no table has the id {ident}")
        found = self._tables.get(ident)
        if found is None:
            unimplemented(f"{info['name']}: a {info['table_type']} table is not supported")
        return found

    def write(self, update: Message, state: State, client: Client, target: Message) -> Undo:
        """Apply an update of a request for `target`, and return how to undo it.

        Raises P4RuntimeError without changing anything.
        """
        self._check(state)
        kind = update.entity.WhichOneof("entity")
        if kind == "table_entry":
            if update.type == _Update.UNSPECIFIED:
                invalid("update: the type is missing")
            entry = update.entity.table_entry
            table = self.table(entry.table_id)
            table.check_pipe((entry.entry_tgt if entry.HasField("entry_tgt") else target).pipe_id)
            return table.write(update.type, entry, state)
        if kind == "table_operation":
            operation = update.entity.table_operation
            table = self.table(operation.table_id)
            if operation.table_operations_type not in table.operations:
                invalid(f"{table.name}: no operation {operation.table_operations_type}")
            table.operate(operation.table_operations_type, state)
            return lambda: None  # a read needs no undo
        if kind == "table_attribute":
            given = update.entity.table_attribute
            attribute = self._attribute(given)
            return attribute.write(getattr(given, attribute.kind), client, state)
        return unimplemented(f"update: {kind or 'nothing'} cannot be written")

    def has(self, entity: Message, state: State) -> bool:
        """Return whether the entry with an entity's key exists."""
        query = bfruntime_pb2.TableEntry(table_id=entity.table_entry.table_id, key=entity.table_entry.key)
        try:
            return bool(self.table(query.table_id).find(query, state))
        except P4RuntimeError:
            return False

    def _attribute(self, given: Message) -> Attribute:
        table = self.table(given.table_id)
        kind = given.WhichOneof("attribute")
        if kind is None:
            invalid(f"{table.name}: the attribute is missing")
        return table.attribute(kind)

    def read(self, entity: Message, state: State, target: Message) -> list[Message]:
        """Return the entities that a query of a request for `target` selects. Raises P4RuntimeError."""
        self._check(state)
        kind = entity.WhichOneof("entity")
        if kind == "table_entry":
            query = entity.table_entry
            has_target = query.HasField("entry_tgt")
            entries = self.table(query.table_id).read(query, state, query.entry_tgt if has_target else target)
            if has_target:
                for each in entries:
                    each.entry_tgt.CopyFrom(query.entry_tgt)
            return [bfruntime_pb2.Entity(table_entry=each) for each in entries]
        if kind == "handle":
            table = self.table(entity.handle.table_id)
            if entity.handle.WhichOneof("value") != "key":
                invalid(f"{table.name}: the key is missing")
            handle = bfruntime_pb2.HandleId(table_id=table.id, handle_id=table.handle(entity.handle.key, state))
            return [bfruntime_pb2.Entity(handle=handle)]
        if kind == "table_usage":
            ident = entity.table_usage.table_id
            usage = bfruntime_pb2.TableUsage(table_id=ident, usage=self.table(ident).usage(state))
            return [bfruntime_pb2.Entity(table_usage=usage)]
        if kind == "table_attribute":
            attribute = self._attribute(entity.table_attribute)
            found = bfruntime_pb2.TableAttribute(table_id=entity.table_attribute.table_id)
            getattr(found, attribute.kind).SetInParent()
            attribute.read(getattr(found, attribute.kind))
            return [bfruntime_pb2.Entity(table_attribute=found)]
        return unimplemented(f"read: {kind or 'nothing'} is not supported")

    def notices(self, state: State) -> list[Notice]:
        """Return the notifications that are due."""
        found: list[Notice] = []
        if state is self._checked:
            for table in self._tables.values():
                for attribute in table.attributes.values():
                    state.collect(attribute.notices(state), found)
        return found

    def listen(self, state: State) -> Undo:
        """Have the switch send digests that no P4Runtime controller has asked for, one at a time."""
        self._check(state)
        for ident in self._learn:
            if not _read(state, "digest_entry", p4runtime_pb2.DigestEntry(digest_id=ident)):
                entry = p4runtime_pb2.DigestEntry(digest_id=ident)
                entry.config.max_list_size = 1
                try:
                    _write(state, _P4Update.INSERT, "digest_entry", entry)
                except P4RuntimeError as error:
                    if error.code != code_pb2.UNIMPLEMENTED:
                        raise
                    _LOG.warning("nobody is told of digest %s: %s", self._learn[ident]["name"], error.message)
        return lambda: None

    def digest(self, found: Message) -> Message | None:
        """Convert a DigestList of P4Runtime to BfRuntime; return None for a digest that `bf-rt.json` does not have."""
        learn = self._learn.get(found.digest_id)
        if learn is None:
            return None
        (spec,) = (d.type_spec for d in self._p4info.digests if d.preamble.id == found.digest_id)
        made = bfruntime_pb2.DigestList(digest_id=learn["id"], list_id=found.list_id)
        for value in found.data:
            whole, data = p4data.decode(spec, self._p4info.type_info, value), made.data.add()
            for info in learn["fields"]:
                length = size(width_of(info))
                field = data.fields.add(field_id=info["id"])
                if info["type"]["type"] == "bool":
                    field.bool_val = any(whole[:length])
                else:
                    field.stream = whole[:length]
                whole = whole[length:]
        return made

    def _check(self, state: State) -> None:
        """Refuse to use a pipeline after another controller has set a new one."""
        if state is not self._checked:
            if state.pipeline.p4info != self._p4info:
                precondition("a controller has set another pipeline over P4Runtime")
            for table in self._tables.values():
                table.forget()
            self._checked = state


def _p4_ids(p4info: Any) -> Iterator[tuple[tuple[str, str], int]]:
    for kind in ("table", "action", "action_profile", "counter", "meter", "register", "value_set", "digest"):
        for each in getattr(p4info, f"{kind}s"):
            yield (kind, each.preamble.name), each.preamble.id
