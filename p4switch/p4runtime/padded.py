"""Byte strings in the form of early versions of P4Runtime, where zeros in front fill up the field's width."""

from __future__ import annotations

from typing import Any

from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.messages import Message


class Padder:
    """Padder of the match fields and action parameters of a program with this P4Info."""

    def __init__(self, p4info: Any) -> None:
        self._fields = {(t.preamble.id, f.id): size(f.bitwidth) for t in p4info.tables for f in t.match_fields}
        self._params = {(a.preamble.id, p.id): size(p.bitwidth) for a in p4info.actions for p in a.params}

    def pad(self, entity: Message) -> None:
        """Pad the byte strings of an entity that was read."""
        kind = entity.WhichOneof("entity")
        if kind in ("direct_counter_entry", "direct_meter_entry"):
            self._entry(getattr(entity, kind).table_entry)
        elif kind == "table_entry":
            self._entry(entity.table_entry)
        elif kind == "action_profile_member":
            self._action(entity.action_profile_member.action)

    def _entry(self, entry: Message) -> None:
        for field in entry.match:
            length = self._fields[entry.table_id, field.field_id]
            match = getattr(field, field.WhichOneof("field_match_type"))
            for descriptor, value in match.ListFields():
                if isinstance(value, bytes):
                    setattr(match, descriptor.name, value.rjust(length, b"\0"))
        if entry.action.WhichOneof("type") == "action":
            self._action(entry.action.action)
        for one in entry.action.action_profile_action_set.action_profile_actions:
            self._action(one.action)

    def _action(self, action: Message) -> None:
        for param in action.params:
            param.value = param.value.rjust(self._params[action.action_id, param.param_id], b"\0")
