"""Dispatch of the entities in requests to the tables of a program."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p4switch.bfrt.attributes import Attribute, Client, Notice
from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import own_name, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.entities import P4Update, read_p4, write_p4
from p4switch.p4runtime import p4data
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import P4RuntimeError, invalid, not_found, precondition, unimplemented
from p4switch.p4runtime.messages import code_pb2, p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_LOG = logging.getLogger(__name__)
_Update = bfruntime_pb2.Update
_STAGES = "the stages of a chip are not modelled"
_REFUSED: Mapping[tuple[int, int], tuple[str, str]] = {
    (24, 0x91): ("a SnapshotCfg table", _STAGES),
    (24, 0x92): ("a SnapshotTrigger table", _STAGES),
    (24, 0x93): ("a SnapshotData table", _STAGES),
    (24, 0x94): ("a SnapshotLiveness table", _STAGES),
    (24, 0x99): ("a TblDbgCnt table", _STAGES),
    (16, 0xFF05): ("a table of the traffic manager", "its settings are options of the switch"),
}
"""Name and reason of the chip's tables that are not supported; a key is a shift, and the id's bits above it."""


class Tables:
    """Tables of a pipeline's `bf-rt.json`, and fixed tables, on a device that runs the pipeline with this P4Info.

    `own` are the numbers of the pipes that run the pipeline, and `every` those of all pipes of the
    switch. `number` is the number of the device's pipe.
    """

    def __init__(
        self, bf_rt: Json, p4info: Any, fixed: Sequence[Json], own: Sequence[int], number: int, every: Sequence[int]
    ) -> None:
        self._p4info = p4info
        infos = [*bf_rt["tables"], *fixed]
        self._infos: dict[int, Json] = {t["id"]: t for t in infos}
        ids = dict(_p4_ids(p4info))
        profiles = {t["id"]: own_name(t["name"]) for t in bf_rt["tables"] if t["table_type"] == "Action"}
        for info in bf_rt["tables"]:
            if info["table_type"] == "Selector":
                profile = next(profiles[of] for of in info["depends_on"] if of in profiles)
                ids["selector", own_name(info["name"])] = ids["action_profile", profile]
        kinds = ((info, TABLE_KINDS.get(info["table_type"])) for info in infos)
        self._tables = {info["id"]: kind(info, ids) for info, kind in kinds if kind is not None}
        for info in fixed:
            if info["id"] in self._tables:
                self._tables[info["id"]].pipes = every
                self._tables[info["id"]].pipe = number
        for info in bf_rt["tables"]:
            if info["id"] in self._tables:
                self._tables[info["id"]].pipes = own
            for used in info["depends_on"] if info["table_type"].startswith("MatchAction") else ():
                if used in self._tables:
                    self._tables[used].scoped_by = self._tables[info["id"]]
        self._learn = {ids["digest", own_name(each["name"])]: each for each in bf_rt["learn_filters"]}
        self._checked: Any = None

    def has_table(self, ident: int) -> bool:
        """Return whether there is a table with this id, even if its kind is not supported."""
        return ident in self._infos

    def table(self, ident: int) -> Table:
        """Return a table. Raises P4RuntimeError: NOT_FOUND, or UNIMPLEMENTED for a kind that is not supported."""
        info = self._infos.get(ident)
        if info is None:
            for (low, number), (name, reason) in _REFUSED.items():
                if ident >> low == number:
                    unimplemented(f"table {ident:#x}: {name} is not supported; {reason}")
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
            table.check_target(entry.entry_tgt if entry.HasField("entry_tgt") else target)
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
        """Return the entities that a query of a request for `target` selects.

        Raises P4RuntimeError for an invalid or unsupported query.
        """
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
            reply = bfruntime_pb2.TableAttribute(table_id=entity.table_attribute.table_id)
            getattr(reply, attribute.kind).SetInParent()
            attribute.read(getattr(reply, attribute.kind))
            return [bfruntime_pb2.Entity(table_attribute=reply)]
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
        """Have the switch send, one at a time, the digests that no P4Runtime controller has enabled."""
        self._check(state)
        for ident in self._learn:
            if not read_p4(state, "digest_entry", p4runtime_pb2.DigestEntry(digest_id=ident)):
                entry = p4runtime_pb2.DigestEntry(digest_id=ident)
                entry.config.max_list_size = 1
                try:
                    write_p4(state, P4Update.INSERT, "digest_entry", entry)
                except P4RuntimeError as error:
                    if error.code != code_pb2.UNIMPLEMENTED:
                        raise
                    _LOG.warning("no controller receives digest %s: %s", self._learn[ident]["name"], error.message)
        return lambda: None

    def digest(self, p4_digest: Message) -> Message | None:
        """Convert a DigestList of P4Runtime to BfRuntime; return None for a digest that is not in `bf-rt.json`."""
        learn = self._learn.get(p4_digest.digest_id)
        if learn is None:
            return None
        (spec,) = (d.type_spec for d in self._p4info.digests if d.preamble.id == p4_digest.digest_id)
        converted = bfruntime_pb2.DigestList(digest_id=learn["id"], list_id=p4_digest.list_id)
        for value in p4_digest.data:
            whole, data = p4data.decode(spec, self._p4info.type_info, value), converted.data.add()
            for info in learn["fields"]:
                length = size(width_of(info))
                field = data.fields.add(field_id=info["id"])
                if info["type"]["type"] == "bool":
                    field.bool_val = any(whole[:length])
                else:
                    field.stream = whole[:length]
                whole = whole[length:]
        return converted

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
