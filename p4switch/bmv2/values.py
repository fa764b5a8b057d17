"""Pieces of BMv2 JSON: numbers, pairs, expressions in their wrappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch.bmv2.schema import Json, JsonError


def unwrap(json: Json) -> Json:
    """Return X of `{"type": "expression", "value": X}`, at any depth."""
    while isinstance(json, Mapping) and json.get("type") == "expression":
        json = json.get("value")
    words = [json[key] for key in ("op", "type") if key in json] if isinstance(json, Mapping) else []
    if not isinstance(json, Mapping) or not words or not all(isinstance(word, str) for word in words):
        raise JsonError(f"BMv2 JSON: expected an expression, got {short(json)}")
    return json


def short(json: Json) -> str:
    text = str(json)
    return text if len(text) < 60 else text[:57] + "..."


def hex_value(json: Json) -> int:
    """Return the value of a hexstr."""
    try:
        return int(str(json), 16)
    except ValueError:
        raise JsonError(f"BMv2 JSON: expected a hexadecimal number, got {short(json)}") from None


def mask_value(json: Json) -> int:
    """Return the value of a hexstr that is a mask."""
    value = hex_value(json)
    if value < 0:
        raise JsonError(f"BMv2 JSON: mask {short(json)} is negative")
    return value


def pair(json: Json) -> tuple[Json, Json]:
    if not isinstance(json, Sequence) or isinstance(json, str) or len(json) != 2:
        raise JsonError(f"BMv2 JSON: expected a pair, got {short(json)}")
    return json[0], json[1]
