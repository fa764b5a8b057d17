"""Basic elements of BMv2 JSON: numbers, pairs, wrapped expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch import ir
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


def hexstr(value: int, width: int = 0) -> str:
    """Return `value` in hexadecimal, padded to whole bytes of `width` bits."""
    digits = -(-width // 8) * 2
    return f"{'-' if value < 0 else ''}0x{abs(value):0{digits}x}"


def hex_value(json: Json) -> int:
    """Return the value of a hexstr."""
    try:
        return int(str(json), 16)
    except ValueError:
        raise JsonError(f"BMv2 JSON: expected a hexadecimal number, got {short(json)}") from None


def number(value: int, width: int = 0) -> ir.Const:
    """Return a number as a constant.

    Numbers have no width in BMv2. The constant has the width of its digits if that is more than the
    value needs.
    """
    return _of_digits(value, -(-width // 8) * 2)


def written_number(json: Json) -> ir.Const:
    """Return the number of a hexstr."""
    return _of_digits(hex_value(json), len(str(json).strip().lstrip("+-")) - 2)


def _of_digits(value: int, digits: int) -> ir.Const:
    return ir.Const(value, ir.Bits(4 * digits) if 4 * digits - 4 >= max(value.bit_length(), 1) else ir.INT)


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
