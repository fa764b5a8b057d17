"""Base of all kinds of tables. Their reads and writes become reads and writes of P4Runtime entities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NoReturn

from p4switch.architectures.architecture import ARCHITECTURES
from p4switch.bfrt.attributes import ALL_PIPES, Attribute, EntryScope
from p4switch.bfrt.fields import Id, Json
from p4switch.bfrt.keys import number, own_name, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.data import decode, encode
from p4switch.bfrt.tables.entities import MOST, in_turn
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import P4RuntimeError, invalid, not_found, unimplemented
from p4switch.p4runtime.messages import p4runtime_pb2
from p4switch.registry import Registry

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update
_MOST_A_CYCLE, _MOST_BURST = 511, 255 << 31
"""Largest rate of a chip's meter, in bytes or packets per clock cycle, and its largest burst."""
_DEFAULT_ENTRY = 1  # the handle of a default entry
COUNTS = (Id.COUNTER_SPEC_BYTES, Id.COUNTER_SPEC_PKTS)
"""Fields of a counter."""
_RATES = {
    1000 // 8: (Id.METER_SPEC_CIR_KBPS, Id.METER_SPEC_PIR_KBPS, Id.METER_SPEC_CBS_KBITS, Id.METER_SPEC_PBS_KBITS),
    1: (Id.METER_SPEC_CIR_PPS, Id.METER_SPEC_PIR_PPS, Id.METER_SPEC_CBS_PKTS, Id.METER_SPEC_PBS_PKTS),
}


def type_name(kind: int) -> str:
    """Return the name of an update type."""
    found = next((name for name, value in _Update.Type.items() if value == kind), None)
    return found or str(kind)


class Table(ABC):
    """Base of tables.

    `info` is the table's object in `bf-rt.json`. `ids` has the id in P4Info of each object, by kind
    and name.
    """

    takes: ClassVar[frozenset[int]] = frozenset({_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY})
    """Update types that the table supports, in addition to DELETE without a key."""
    offers: ClassVar[Mapping[str, type[Attribute]]] = {"EntryScope": EntryScope}
    """Attributes that the table may have, by their names in `bf-rt.json`."""
    always: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that the table has although `bf-rt.json` does not list them."""

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        self.name: str = info["name"]
        self.id: int = info["id"]
        self.operations: list[str] = info["supported_operations"]
        self.scoped_by: Table | None = None
        """Table whose scope of entries also applies to this table, such as the match table of an action profile."""
        self.pipes: Sequence[int] = (0,)
        """Numbers of the pipes that have the table. They share its entries or have their own."""
        self.pipe = 0
        """Number of the pipe to which the entries of a fixed table belong."""
        self._info = info
        self._ids = ids
        self._handles: dict[bytes, int] = {}
        """Handles that clients have requested, by key. The default entry has the first handle."""
        self._keys_of: dict[int, Message] = {}
        self._known: dict[bytes, dict[int, bytes]] = {}
        """Counts by key and field, as they were last written or read from the hardware."""
        self._data = {f["id"]: f for data in info["data"] for f in data.get("oneof", [data.get("singleton")])}
        kinds = (self.offers.get(name) for name in [*info["attributes"], *self.always])
        self.attributes: dict[str, Attribute] = {kind.kind: kind(self) for kind in kinds if kind is not None}

    @property
    def object_name(self) -> str:
        """Name of the object behind the table in the program."""
        return own_name(self.name)

    def _p4_id(self, kind: str, name: str = "") -> int:
        """Return P4Info's id of the object behind the table, or of another object with a given name."""
        return self._ids[kind, name or self.object_name]

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
        """Execute an operation of the table, such as an update of the known counts.

        Raises P4RuntimeError (UNIMPLEMENTED).
        """
        if not name.startswith("Sync"):
            unimplemented(f"{self.name}: the operation {name} is not supported")
        if self._counts:
            self._know_read(self.find(bfruntime_pb2.TableEntry(table_id=self.id), state))

    @property
    def is_symmetric(self) -> bool:
        """True if all pipes have the same entries."""
        scope = (self.scoped_by or self).attributes.get(EntryScope.kind)
        return not isinstance(scope, EntryScope) or scope.is_symmetric

    def scope(self, pipe: int) -> list[int]:
        """Return the pipes that have the entries of a pipe."""
        scope = (self.scoped_by or self).attributes.get(EntryScope.kind)
        return scope.scope(pipe) if isinstance(scope, EntryScope) else [pipe]

    def joined(self, by_pipe: Sequence[Sequence[Message]]) -> list[Message]:
        """Return the results of a query in several pipes as one list.

        An entry that pipes share appears once, with the sum of its counts.
        """
        if not self.is_symmetric:
            return [entry for entries in by_pipe for entry in entries]
        whole: dict[bytes, Message] = {}
        for entries in by_pipe:
            for entry in entries:
                known = whole.setdefault(entry.key.SerializeToString(deterministic=True), entry)
                if known is not entry:
                    self._join(known, entry)
        return list(whole.values())

    def _summed(self) -> Collection[int]:
        """Return the ids of the fields that are summed over pipes."""
        return COUNTS

    def _join(self, into: Message, entry: Message) -> None:
        """Add the counts of another pipe to an entry."""
        summed = self._summed()
        counts = {field.field_id: field for field in into.data.fields if field.field_id in summed}
        for field in entry.data.fields:
            if field.field_id in counts:
                known = counts[field.field_id]
                total = int.from_bytes(known.stream, "big") + int.from_bytes(field.stream, "big")
                known.stream = (total & (1 << 8 * len(known.stream)) - 1).to_bytes(len(known.stream), "big")

    def check_target(self, target: Message) -> None:
        """Refuse a write for a single pipe, because all pipes share the entries.

        Raises P4RuntimeError (INVALID_ARGUMENT).
        """
        pipe = target.pipe_id
        scoped = EntryScope.kind in (self.scoped_by or self).attributes
        if pipe != ALL_PIPES and scoped and self.is_symmetric:
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
            return in_turn((undo, lambda: setattr(self, "_known", old)))
        if kind not in self.takes:
            unimplemented(f"{self.name}: {type_name(kind)} is not supported")
        if value is None and self._info["key"]:
            invalid(f"{self.name}: the key is missing")
        undo = self.write_entry(kind, entry, state)
        return in_turn((undo, self._know_written(kind, entry))) if self._counts else undo

    def write_default(self, kind: int, entry: Message, state: State) -> Undo:
        """Write the default entry of a table that has one."""
        self._refuse_default()

    def _refuse_default(self) -> NoReturn:
        unimplemented(f"{self.name}: a {self._info['table_type']} table has no default entry")

    def _restores(self, kind: int) -> bool:
        """Return whether an update restores the program's default entry (RESET, DELETE) instead of setting it.

        Raises P4RuntimeError (UNIMPLEMENTED) for updates that do neither.
        """
        if kind in (_Update.RESET, _Update.DELETE):
            return True
        if kind not in (_Update.INSERT, _Update.MODIFY, _Update.INSERT_OR_MODIFY):
            unimplemented(f"{self.name}: {type_name(kind)} of the default entry is not supported")
        return False

    @abstractmethod
    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Write an entry with a key."""

    @abstractmethod
    def clear(self, state: State) -> Undo:
        """Delete all entries, or set them to their initial values."""

    def read(self, entry: Message, state: State, target: Message) -> list[Message]:
        """Return the entries that a query for `target` selects.

        Raises P4RuntimeError for an invalid or unsupported query, and if an entry that it names does not exist.
        """
        flags = entry.table_flags
        value = entry.WhichOneof("value")
        self.check_read(entry, target.pipe_id)
        for flag in ("reset_ttl", "reset_stats"):
            if getattr(flags, flag):
                unimplemented(f"{self.name}: the flag {flag} is not supported")
        unknown = [f.field_id for f in entry.data.fields if f.field_id not in self.data_ids()]
        if unknown:
            invalid(f"{self.name}: no data field has the id {unknown[0]}")
        entries = self._with_action(entry, self.find(self._by_key(entry), state))
        if self._counts and not entry.is_default_entry:
            (self._know_read if flags.from_hw else self._as_known)(entries)
        wanted = {f.field_id for f in entry.data.fields}
        for each in entries:
            each.is_default_entry = entry.is_default_entry
            if flags.key_only:
                each.ClearField("data")
                if value == "handle_id":
                    each.entry_tgt.CopyFrom(target)
            elif wanted:
                kept = [f for f in each.data.fields if f.field_id in wanted]
                del each.data.fields[:]
                each.data.fields.extend(kept)
        if not entries and value is not None:
            not_found(f"{self.name}: the entry does not exist")
        return entries

    def _with_action(self, query: Message, entries: list[Message]) -> list[Message]:
        """Return the entries that have the action of a query, if it has one.

        Raises P4RuntimeError (INVALID_ARGUMENT) if a single requested entry has another action.
        """
        action = query.data.action_id
        kept = [each for each in entries if action in (0, each.data.action_id)]
        if entries and not kept and query.WhichOneof("value") is not None:
            invalid(f"{self.name}: the entry has another action than {action}")
        return kept

    def check_read(self, entry: Message, pipe: int) -> None:
        """Raise P4RuntimeError unless a query's pipe suits the scope of the entries.

        Shared entries have to be read from all pipes at once, and the entries of a pipe from that pipe. A
        read from the hardware may also ask a single pipe for its copy of shared entries.
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
        return frozenset(COUNTS) & self._data.keys()

    def canonical_key(self, key: Message) -> Message:
        """Return a key as clients receive it."""
        return key

    def _know_written(self, kind: int, entry: Message) -> Undo:
        """Remember the counts with which an entry was written, and return how to undo it."""
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

    def _know_read(self, entries: Sequence[Message]) -> None:
        """Remember the present counts of entries."""
        for each in entries:
            if each.HasField("key"):
                key = each.key.SerializeToString(deterministic=True)
                self._known[key] = {f.field_id: f.stream for f in each.data.fields if f.field_id in self._counts}

    def _as_known(self, entries: Sequence[Message]) -> None:
        """Replace the counts in entries by the remembered ones, or by 0 if there are none."""
        for each in entries:
            known = self._known.get(each.key.SerializeToString(deterministic=True), {})
            for field in each.data.fields:
                if field.field_id in self._counts:
                    field.stream = known.get(field.field_id, bytes(len(field.stream)))

    def handle(self, key: Message, state: State) -> int:
        """Return the handle of an entry. A key keeps its handle as long as the program runs.

        Raises P4RuntimeError (NOT_FOUND).
        """
        entries = self.find(bfruntime_pb2.TableEntry(table_id=self.id, key=key), state)
        if not entries:
            not_found(f"{self.name}: the entry does not exist")
        whole = entries[0].key.SerializeToString(deterministic=True)
        if whole not in self._handles:
            self._handles[whole] = _DEFAULT_ENTRY + 1 + len(self._handles)
            self._keys_of[self._handles[whole]] = entries[0].key
        return self._handles[whole]

    def _by_key(self, entry: Message) -> Message:
        """Return a query with its handle replaced by the key. Raises P4RuntimeError (NOT_FOUND)."""
        if entry.WhichOneof("value") != "handle_id":
            return entry
        query = bfruntime_pb2.TableEntry()
        query.CopyFrom(entry)
        if entry.handle_id == _DEFAULT_ENTRY:
            query.ClearField("handle_id")
            query.is_default_entry = True
            return query
        key = self._keys_of.get(entry.handle_id)
        if key is None:
            not_found(f"{self.name}: no entry has the handle {entry.handle_id}")
        query.key.CopyFrom(key)
        return query

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
        """Return the given data fields by id. Raises P4RuntimeError (INVALID_ARGUMENT) for a field not in `fields`."""
        given: dict[int, Message] = {}
        for field in data.fields:
            if field.field_id not in fields:
                invalid(f"{self.name}: no data field has the id {field.field_id}")
            given[field.field_id] = field
        return given

    def _number(self, field: Message, info: Json) -> int:
        return decode(field, info, self.name)

    def _at_most(self, most: int, field: Message, info: Json) -> int:
        """Return the number in a field, which is at most `most`. Raises P4RuntimeError (INVALID_ARGUMENT)."""
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
        entry = bfruntime_pb2.TableEntry(table_id=self.id)
        entry.data.SetInParent()
        if index is not None:
            (info,) = self._info["key"]
            entry.key.fields.add(field_id=info["id"]).exact.value = index.to_bytes(size(width_of(info)), "big")
        return entry

    def _put(self, data: Message, ident: int, value: int) -> None:
        encode(data, self._data[ident], value)

    # Counts and rates, which counter and meter tables and tables with direct counters and meters have

    def _rate_fields(self) -> tuple[int, tuple[Id, ...]] | None:
        return next(((unit, ids) for unit, ids in _RATES.items() if ids[0] in self._data), None)

    def _put_counts(self, into: Message, counter: Message) -> None:
        for ident, value in zip(COUNTS, (counter.byte_count, counter.packet_count), strict=True):
            if ident in self._data:
                self._put(into, ident, value)

    def _take_counts(self, given: Mapping[int, Message], into: Message) -> bool:
        """Set the counts that are given, and return whether there are any."""
        for ident, name in zip(COUNTS, ("byte_count", "packet_count"), strict=True):
            if ident in given:
                value = self._at_most(MOST, given[ident], self._data[ident])
                setattr(into, name, value)
        return any(ident in given for ident in COUNTS)

    def _put_rates(self, into: Message, config: Message | None, state: State) -> None:
        """Put rates and bursts into data; those without a limit are the largest of the chip's meters."""
        fields = self._rate_fields()
        if fields is None:
            return
        unit, ids = fields
        rate = _MOST_A_CYCLE * ARCHITECTURES.find(state.pipeline.p4info.pkg_info.arch).clock_hz
        largest = {"cir": rate, "pir": rate, "cburst": _MOST_BURST, "pburst": _MOST_BURST}
        for ident, (name, most) in zip(ids, largest.items(), strict=True):
            value = MOST if config is None else getattr(config, name)
            self._put(into, ident, round(most / unit) if value == MOST else value // unit)

    def _take_rates(self, given: Mapping[int, Message], into: Message) -> bool:
        """Set the rates and bursts that are given, and return whether there are any."""
        fields = self._rate_fields()
        if fields is None or not any(ident in given for ident in fields[1]):
            return False
        unit, ids = fields
        for ident, name in zip(ids, ("cir", "pir", "cburst", "pburst"), strict=True):
            if ident in given:
                setattr(into, name, min(self._number(given[ident], self._data[ident]) * unit, MOST))
        return True


class ReadOnlyTable(Table):
    """Base of tables that clients only read."""

    takes = frozenset()

    def write_entry(self, kind: int, entry: Message, state: State) -> NoReturn:
        """Refuse to write."""
        self._refuse_write()

    def clear(self, state: State) -> NoReturn:
        """Refuse to write."""
        self._refuse_write()

    def _refuse_write(self) -> NoReturn:
        unimplemented(f"{self.name}: the table can only be read")


def no_limits() -> Message:
    return p4runtime_pb2.MeterConfig(cir=MOST, pir=MOST, cburst=MOST, pburst=MOST)


TABLE_KINDS: Registry[type[Table]] = Registry(
    "table type of BfRuntime", group="p4cc.bfrt_tables", package="p4switch.bfrt.tables", base=Table
)
"""Classes of tables, by `table_type` in `bf-rt.json`."""
