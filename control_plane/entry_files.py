"""Entries in a file: P4Runtime messages as text, or the JSON of p4lang/tutorials' `simple_controller`.

A text file holds a `WriteRequest`, or the entities of a `ReadResponse`. A JSON file (`*.json`) has
`table_entries` (`table`, `match`, `action_name`, `action_params`, `priority`, `default_action`),
`multicast_group_entries` and `clone_session_entries`; numbers may be written as such, as "0x1f", as
IPv4 addresses or as MAC addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

from google.protobuf import text_format
from pydantic import BaseModel, ConfigDict, Field

from control_plane.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    Range,
    TableEntry,
    Ternary,
)
from p4switch.errors import UserError, lookup, validate
from p4switch.p4runtime.messages import Message, p4info_pb2, p4runtime_pb2

_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_TWO_PARTS: dict[str, type[Lpm | Ternary | Range]] = {"LPM": Lpm, "TERNARY": Ternary, "RANGE": Range}
_CELLS = ("counter_entry", "direct_counter_entry", "meter_entry", "direct_meter_entry", "register_entry")
_EXPECTED = {
    "EXACT": "one value",
    "LPM": "[value, prefix length]",
    "TERNARY": "[value, mask]",
    "RANGE": "[low, high]",
}

Value = int | str | Annotated[list[int | str], Field(min_length=1, max_length=2)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _TableEntry(_Model):
    table: str
    match: dict[str, Value] = {}
    action_name: str
    action_params: dict[str, int | str] = {}
    priority: int = Field(0, ge=0)
    default_action: bool = False


class _Replica(_Model):
    egress_port: int = Field(ge=0)
    instance: int = Field(0, ge=0)


class _MulticastGroup(_Model):
    multicast_group_id: int = Field(ge=1)
    replicas: list[_Replica]


class _CloneSession(_Model):
    clone_session_id: int = Field(ge=1)
    replicas: list[_Replica]
    packet_length_bytes: int = Field(0, ge=0)


class _RuntimeFile(_Model):
    table_entries: list[_TableEntry] = []
    multicast_group_entries: list[_MulticastGroup] = []
    clone_session_entries: list[_CloneSession] = []


def read(path: Path, p4info: Message) -> list[Entry | Message]:
    """Return the entries or P4Runtime Updates of a file, in its order.

    Raises UserError that names the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
    return list(_of_json(path, text, p4info)) if path.suffix == ".json" else _of_text(path, text)


def _of_text(path: Path, text: str) -> list[Entry | Message]:
    try:
        return list(text_format.Parse(text, p4runtime_pb2.WriteRequest()).updates)
    except text_format.ParseError as error:
        mistake = error
    try:
        entities = text_format.Parse(text, p4runtime_pb2.ReadResponse()).entities
    except text_format.ParseError as error:
        if re.match(r"\s*(#.*\s*)*entities\b", text):
            mistake = error
        reason = str(mistake).replace("\n", " ")
        raise UserError(f"{path}: neither a WriteRequest nor entities of P4Runtime: {reason}") from None
    return [p4runtime_pb2.Update(type=_kind(entity), entity=entity) for entity in entities]


def _kind(entity: Message) -> int:
    """Return the update type of an entity.

    Default actions and cells of arrays exist from the start, so they are modified.
    """
    there = entity.WhichOneof("entity") in _CELLS or entity.table_entry.is_default_action
    return int(p4runtime_pb2.Update.MODIFY if there else p4runtime_pb2.Update.INSERT)


def _of_json(path: Path, text: str, p4info: Message) -> Iterator[Entry]:
    try:
        tables = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    if not isinstance(tables, Mapping):
        raise UserError(f"{path}: expected an object with table_entries")
    runtime = validate(_RuntimeFile, tables, str(path))
    known = {name: t for t in p4info.tables for name in (t.preamble.name, t.preamble.alias)}
    for index, entry in enumerate(runtime.table_entries):
        where = f"{path}: table_entries.{index}"
        try:
            yield _table_entry(entry, lookup("table", entry.table, known))
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
    for group in runtime.multicast_group_entries:
        yield MulticastGroup(group.multicast_group_id, _replicas(group.replicas))
    for session in runtime.clone_session_entries:
        yield CloneSession(session.clone_session_id, _replicas(session.replicas), session.packet_length_bytes)


def _replicas(replicas: Sequence[_Replica]) -> tuple[tuple[int, int], ...]:
    return tuple((replica.egress_port, replica.instance) for replica in replicas)


def _table_entry(entry: _TableEntry, table: Message) -> Entry:
    action = Action(entry.action_name, {name: _number(value, name) for name, value in entry.action_params.items()})
    if entry.default_action:
        return DefaultAction(entry.table, action)
    fields = {field.name: field for field in table.match_fields}
    match = {name: _match(value, lookup("match field", name, fields)) for name, value in entry.match.items()}
    return TableEntry(entry.table, match, action, entry.priority)


def _match(value: Value, field: Message) -> Match:
    kind = p4info_pb2.MatchField.MatchType.Name(field.match_type)
    parts = value if isinstance(value, list) else [value]
    numbers = [_number(part, field.name) for part in parts]
    for number in numbers[: 1 if kind == "LPM" else 2]:
        if not 0 <= number < 1 << field.bitwidth:
            raise UserError(f"{field.name}: {number} does not fit into {field.bitwidth} bits")
    if kind == "EXACT" and len(numbers) == 1:
        return Exact(numbers[0])
    if kind in _TWO_PARTS and len(numbers) == 2:
        return _TWO_PARTS[kind](*numbers)
    if kind not in _EXPECTED:
        raise UserError(f"{field.name}: a match of kind {kind} has no form in JSON; expected a file of P4Runtime text")
    raise UserError(f"{field.name}: expected {_EXPECTED[kind]}, got {value!r}")


def _number(value: int | str, name: str) -> int:
    if isinstance(value, int):
        return value
    if _MAC.fullmatch(value):
        return int(re.sub("[:-]", "", value), 16)
    try:
        return int(IPv4Address(value)) if value.count(".") == 3 else int(value, 0)
    except ValueError:
        raise UserError(f"{name}: expected a number, an IPv4 address or a MAC address, got {value!r}") from None
