"""Value sets of parsers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from p4switch.p4runtime.errors import already_exists, exhausted, invalid
from p4switch.p4runtime.match import decode_member, encode_match
from p4switch.p4runtime.messages import Message, p4runtime_pb2
from p4switch.p4runtime.pipeline import Pipeline, ValueSet
from p4switch.p4runtime.profiles import Undo

if TYPE_CHECKING:
    from p4switch.engine._engine import KeyField, Switch


class ValueSetStore:
    """Value sets of one device."""

    def __init__(self, pipeline: Pipeline, switch: Switch) -> None:
        self._switch = switch
        self._infos = pipeline.value_sets
        self._members: dict[int, list[tuple[KeyField, ...]]] = {ident: [] for ident in pipeline.value_sets}

    def _info(self, ident: int) -> ValueSet:
        info = self._infos.get(ident)
        if info is None:
            invalid(f"no value set has the id {ident}")
        return info

    def write(self, kind: int, message: Message) -> Undo:
        """Write the members of a value set and return how to undo it."""
        info = self._info(message.value_set_id)
        if kind != p4runtime_pb2.Update.MODIFY:
            invalid(f"{info.name}: a value set always exists; expected MODIFY")
        members = [decode_member(info.name, info.fields, member.match) for member in message.members]
        if len(members) > info.size:
            exhausted(f"{info.name}: {len(members)} members; the size is {info.size}")
        if len(set(members)) != len(members):
            already_exists(f"{info.name}: a member is given twice")
        old = self._members[info.id]
        self._set(info, members)
        return lambda: self._set(info, old)

    def _set(self, info: ValueSet, members: list[tuple[KeyField, ...]]) -> None:
        self._switch.value_set_set(info.name, members)
        self._members[info.id] = members

    def read(self, query: Message) -> Iterator[Message]:
        """Yield the value sets that a query selects."""
        for info in [self._info(query.value_set_id)] if query.value_set_id else self._infos.values():
            message = p4runtime_pb2.ValueSetEntry(value_set_id=info.id)
            for member in self._members[info.id]:
                encode_match(info.fields, member, message.members.add().match)
            yield message
