"""Tables of a switch by name, with keys and parameters in usual notation, such as prefixes and ranges."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from control_plane.programs.entries import Action, DefaultAction, Exact, Lpm, Match, Range, TableEntry, Ternary
from p4switch.errors import UserError, suggest
from p4switch.p4runtime.client import Client
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.p4runtime.messages import Message, p4runtime_pb2

__all__ = ["Table"]

_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_EXACT, _LPM, _TERNARY, _RANGE, _OPTIONAL = 2, 3, 4, 5, 6  # values of P4Info's MatchField.MatchType


class Table:
    """Table of a switch.

    Names of keys and actions are those of P4Info, or their last component if it is unique.
    """

    def __init__(self, client: Client, known: Any, name: str) -> None:
        """Look the table up; `known` turns entries into updates (`control_plane.controller.Program`).

        Raises UserError if the program has no such table.
        """
        self._client = client
        self._known = known
        tables = {key: t for t in known.p4info.tables for key in (t.preamble.name, t.preamble.alias)}
        table = tables.get(name) or _by_suffix(name, tables)
        if table is None:
            raise UserError(f"no table {name!r}; {suggest(name, {t.preamble.alias for t in known.p4info.tables})}")
        self._info: Message = table
        self.name: str = table.preamble.alias
        self._fields = {f.name: f for f in table.match_fields}
        of_id = {a.preamble.id: a for a in known.p4info.actions}
        self._actions = {of_id[ref.id].preamble.alias: of_id[ref.id] for ref in table.action_refs}

    def add(
        self,
        *,
        action: str | Sequence[tuple[str, Mapping[str, Any]]],
        priority: int = 0,
        match: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Insert an entry: `table.add(dst="10.0.0.0/24", action="forward", port=1)`.

        Values are integers, addresses, "VALUE/LENGTH" for a prefix, "VALUE &&& MASK" or (value, mask) for a
        mask, and "LOW..HIGH" or (low, high) for a range.

        Parameters
        ----------
        action
            Name of an action, or for an action selector a list of (name, parameters).
        priority
            P4Runtime's priority: the highest wins.
        match, params
            Keys and parameters by name, if a key and a parameter have the same name.
        **values
            Keys and parameters by name. An omitted key matches anything.

        Raises
        ------
        UserError
            For unknown names, values that do not fit, and an existing entry.
        """
        self._send(self._updates(p4runtime_pb2.Update.INSERT, self._entry(action, priority, match, params, values)))

    def modify(
        self,
        *,
        action: str,
        priority: int = 0,
        match: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Change the action of an entry.

        Parameters
        ----------
        action
            Name of an action.
        priority, match, params, **values
            Key of the entry and parameters of the action, as in `add`.

        Raises
        ------
        UserError
            For a missing entry, and as `add`.
        """
        self._send(self._updates(p4runtime_pb2.Update.MODIFY, self._entry(action, priority, match, params, values)))

    def delete(self, *, priority: int = 0, match: Mapping[str, Any] | None = None, **values: Any) -> None:
        """Delete an entry.

        Parameters
        ----------
        priority, match, **values
            Key of the entry, as in `add`.

        Raises
        ------
        UserError
            For a missing entry.
        """
        keys = self._matches({**(match or {}), **values})
        anything = Action(next(iter(self._actions)), {})  # a deletion only needs the key, so any action will do
        (update,) = self._updates(p4runtime_pb2.Update.DELETE, TableEntry(self.name, keys, anything, priority))
        update.entity.table_entry.ClearField("action")
        self._send([update])

    def default(self, action: str, **params: Any) -> None:
        """Set the default action, for packets that match no entry.

        Parameters
        ----------
        action
            Name of an action.
        **params
            Its parameters.

        Raises
        ------
        UserError
            For an unknown action or parameter.
        """
        self._send(self._known.updates(DefaultAction(self.name, self._action(action, params))))

    def clear(self) -> None:
        """Delete all entries except constant ones.

        Raises
        ------
        UserError
            If the switch refuses.
        """
        query = p4runtime_pb2.Entity()
        query.table_entry.table_id = self._info.preamble.id
        try:
            entries = [e for e in self._client.read([query]) if not e.table_entry.is_const]
        except P4RuntimeError as error:
            raise UserError(f"table {self.name}: {error}") from None
        self._send([p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE, entity=entity) for entity in entries])

    def __len__(self) -> int:
        """Return the number of entries."""
        query = p4runtime_pb2.Entity()
        query.table_entry.table_id = self._info.preamble.id
        return sum(1 for _ in self._client.read([query]))

    def _entry(
        self,
        action: str | Sequence[tuple[str, Mapping[str, Any]]],
        priority: int,
        match: Mapping[str, Any] | None,
        params: Mapping[str, Any] | None,
        values: Mapping[str, Any],
    ) -> TableEntry:
        keys, parameters = dict(match or {}), dict(params or {})
        known = self._parameters(action) if isinstance(action, str) else set()
        for name, value in values.items():
            key = name in self._fields or _by_suffix(name, self._fields) is not None
            if key and name in known:
                raise UserError(f"table {self.name}: {name!r} is a key and a parameter; expected it in match or params")
            (keys if key else parameters)[name] = value
        does: Action | tuple[Action, ...]
        if isinstance(action, str):
            does = self._action(action, parameters)
        else:
            does = tuple(self._action(name, given) for name, given in action)
        return TableEntry(self.name, self._matches(keys), does, priority)

    def _parameters(self, action: str) -> set[str]:
        return {p.name for p in self._found_action(action).params}

    def _found_action(self, name: str) -> Message:
        action = self._actions.get(name) or _by_suffix(name, self._actions)
        if action is None:
            raise UserError(f"table {self.name}: no action {name!r}; {suggest(name, self._actions)}")
        return action

    def _action(self, name: str, params: Mapping[str, Any]) -> Action:
        info = self._found_action(name)
        widths = {p.name: p.bitwidth for p in info.params}
        for given in params:
            if given not in widths:
                raise UserError(f"table {self.name}: action {name}: no parameter {given!r}; {suggest(given, widths)}")
        if missing := [one for one in widths if one not in params]:
            raise UserError(f"table {self.name}: action {name}: missing {', '.join(missing)}")
        return Action(info.preamble.alias, {key: number(value) for key, value in params.items()})

    def _matches(self, values: Mapping[str, Any]) -> dict[str, Match]:
        matches: dict[str, Match] = {}
        for name, value in values.items():
            field = self._fields.get(name) or _by_suffix(name, self._fields)
            if field is None:
                known = {key.rpartition(".")[2] for key in self._fields}
                raise UserError(f"table {self.name}: no key {name!r}; {suggest(name, known)}")
            match = _match(field, value, f"table {self.name}, key {name}")
            if match is not None:
                matches[field.name] = match
        return matches

    def _updates(self, kind: int, entry: TableEntry) -> list[Message]:
        updates: list[Message] = self._known.updates(entry)
        optional = {f.id for f in self._fields.values() if f.match_type == _OPTIONAL}
        for update in updates:
            update.type = kind
            for match in update.entity.table_entry.match:
                if match.field_id in optional:
                    match.optional.value = match.ternary.value
        return updates

    def _send(self, updates: Iterable[Message]) -> None:
        try:
            self._client.write(list(updates))
        except P4RuntimeError as error:
            raise UserError(f"table {self.name}: {error}") from None


def _by_suffix(name: str, known: Mapping[str, Any]) -> Any:
    """Return the only value whose name ends in `.name`; None if there are none or several."""
    candidates = {id(value): value for key, value in known.items() if key.endswith(f".{name}")}
    return next(iter(candidates.values())) if len(candidates) == 1 else None


def number(value: Any) -> int:
    """Return an integer, an address, or a text of one as an integer.

    Raises UserError for a text that is neither a number nor an address.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    text = str(value).strip()
    if _MAC.fullmatch(text):
        return int(text.replace(":", ""), 16)
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(ipaddress.ip_address(text))
    except ValueError:
        raise UserError(f"{value!r}: expected a number or an address") from None


def _match(field: Message, value: Any, where: str) -> Match | None:
    """Return the match of a value; None if it matches anything."""
    kind, width = field.match_type, field.bitwidth
    if value is None:
        if kind in (_EXACT,):
            raise UserError(f"{where}: expected a value: it is matched exactly")
        return None
    if kind == _LPM:
        text, _, length = str(value).partition("/")
        return Lpm(number(text if isinstance(value, str) else value), number(length) if length else width)
    first, second = _pair(value)
    if kind == _TERNARY:
        mask = (1 << width) - 1 if second is None else number(second)
        return Ternary(number(first) & mask, mask)
    if kind == _RANGE:
        return Range(number(first), number(first if second is None else second))
    if second is not None:
        raise UserError(f"{where}: {value!r}: expected one value")
    if kind == _OPTIONAL:
        return Ternary(number(first), (1 << width) - 1)
    return Exact(number(first))


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, tuple | list) and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, str):
        for sign in ("&&&", ".."):
            first, separator, second = value.partition(sign)
            if separator:
                return first.strip(), second.strip()
    return value, None
