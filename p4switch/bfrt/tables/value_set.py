"""Value sets of parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from p4switch.bfrt.attributes import Attribute, ParserScope
from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import Keys, width_of
from p4switch.bfrt.messages import Message, bfruntime_pb2
from p4switch.bfrt.tables.base import TABLE_KINDS, Table
from p4switch.bfrt.tables.entities import P4Update, read_p4, write_p4
from p4switch.p4runtime.bytestring import canonical
from p4switch.p4runtime.errors import already_exists, not_found, unimplemented
from p4switch.p4runtime.messages import p4runtime_pb2

if TYPE_CHECKING:
    from p4switch.p4runtime.device import State
    from p4switch.p4runtime.profiles import Undo

_Update = bfruntime_pb2.Update


@TABLE_KINDS.register("ParserValueSet")
class ValueSetTable(Table):
    """Value sets of parsers."""

    takes = frozenset({_Update.INSERT, _Update.DELETE})
    offers: ClassVar[Mapping[str, type[Attribute]]] = {"EntryScope": ParserScope}

    def __init__(self, info: Json, ids: Mapping[tuple[str, str], int]) -> None:
        super().__init__(info, ids)
        self._keys = Keys(info)

    def check_target(self, target: Message) -> None:
        """Refuse a write whose target lacks the pipes, direction or parser that the entries' scope requires."""
        super().check_target(target)
        scope = self.attributes.get(ParserScope.kind)
        if isinstance(scope, ParserScope):
            scope.check_target(target)

    def _set(self, state: State) -> Message:
        query = p4runtime_pb2.ValueSetEntry(value_set_id=self._p4_id("value_set"))
        (value_set,) = read_p4(state, "value_set_entry", query)
        return value_set

    def write_entry(self, kind: int, entry: Message, state: State) -> Undo:
        """Add or remove a value."""
        value_set = self._set(state)
        given = self._member(entry.key)
        place = next((i for i, m in enumerate(value_set.members) if m == given), None)
        if kind == _Update.DELETE:
            if place is None:
                not_found(f"{self.name}: the entry does not exist")
            del value_set.members[place]
        else:
            if place is not None:
                already_exists(f"{self.name}: the entry exists")
            value_set.members.append(given)
        return write_p4(state, P4Update.MODIFY, "value_set_entry", value_set)

    def _member(self, key: Message) -> Message:
        """Return a BfRuntime key, whose fields are ternary, as a P4Runtime member.

        Fields without a mask become exact.
        """
        member = p4runtime_pb2.ValueSetMember()
        matches, _ = self._keys.decode(key)
        whole = {f["id"]: canonical((1 << width_of(f)) - 1) for f in self._info["key"]}
        ternary_of = {m.field_id: m.ternary for m in matches}
        for ident, mask in whole.items():
            if ident not in ternary_of:
                unimplemented(f"{self.name}: a mask of zeros is not supported")
            match = member.match.add(field_id=ident)
            if ternary_of[ident].mask == mask:
                match.exact.value = ternary_of[ident].value
            else:
                match.ternary.CopyFrom(ternary_of[ident])
        return member

    def clear(self, state: State) -> Undo:
        """Delete all values."""
        return write_p4(
            state,
            P4Update.MODIFY,
            "value_set_entry",
            p4runtime_pb2.ValueSetEntry(value_set_id=self._p4_id("value_set")),
        )

    def find(self, entry: Message, state: State) -> list[Message]:
        """Return values."""
        members = list(self._set(state).members)
        if entry.WhichOneof("value") == "key":
            members = [m for m in members if m == self._member(entry.key)]
        masks = {f["id"]: canonical((1 << width_of(f)) - 1) for f in self._info["key"]}
        entries = []
        for member in members:
            reply = self._entry()
            ternary = [p4runtime_pb2.FieldMatch(field_id=m.field_id) for m in member.match]
            for match, m in zip(ternary, member.match, strict=True):
                if m.WhichOneof("field_match_type") == "ternary":
                    match.ternary.CopyFrom(m.ternary)
                else:
                    match.ternary.value, match.ternary.mask = m.exact.value, masks[m.field_id]
            reply.key.CopyFrom(self._keys.encode(ternary, 0))
            entries.append(reply)
        return entries
