"""Data fields of entries: numbers, bools, and choices of strings, which are converted to numbers."""

from __future__ import annotations

from p4switch.bfrt.fields import Json
from p4switch.bfrt.keys import number, width_of
from p4switch.bfrt.messages import Message
from p4switch.p4runtime.bytestring import size
from p4switch.p4runtime.errors import invalid


def decode(field: Message, info: Json, table: str) -> int:
    """Return the number in a field of a table. Raises P4RuntimeError (INVALID_ARGUMENT)."""
    where = f"{table}: {info['name']}"
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


def encode(data: Message, info: Json, value: int) -> None:
    """Add a number to the data of an entry."""
    field = data.fields.add(field_id=info["id"])
    if info["type"]["type"] == "bool":
        field.bool_val = bool(value)
    elif info["type"]["type"] == "string":
        field.str_val = info["type"]["choices"][value]
    else:
        field.stream = value.to_bytes(size(width_of(info)), "big")
