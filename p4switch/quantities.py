"""Quantities as people write them: `"100 Gb/s"`, `"1 us"`, `"64 KiB"`, for keys whose names end in their unit.

A number without a unit is in the unit of its key's name: `link_rate_bps = 100e9`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from p4switch.errors import Mistakes, UserError

_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_PREFIXES = {**_DECIMAL, **_BINARY}
_BITS_A_SECOND = {
    **{f"{prefix}{unit}": factor for prefix, factor in _DECIMAL.items() for unit in ("b/s", "bit/s", "bps")},
    **{f"{prefix}B/s": 8 * factor for prefix, factor in _PREFIXES.items()},
}
_SECONDS = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
_NANOSECONDS = {unit: factor * 10**9 for unit, factor in {**_SECONDS, "s": Fraction(1)}.items()}
_BYTES = {f"{prefix}B": factor for prefix, factor in _PREFIXES.items()}
# Units and an example for each last word of a key's name.
_UNITS: dict[str, tuple[Mapping[str, int | Fraction], str]] = {
    "bps": (_BITS_A_SECOND, "100 Gb/s"),
    "ns": (_NANOSECONDS, "1 us"),
    "bytes": (_BYTES, "64 KiB"),
}
_QUANTITY = re.compile(r"([+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-zµ\u03bc/]+)")
_MOST_CHARACTERS = 40  # largest length of a number
_MOST_EXPONENT = 30
_LIMIT = 2**63
_WRONG = object()  # marks a value that is left out
SLOWEST_BPS = 1_000_000  # a lower link rate is probably a mistake


def with_numbers(tables: Mapping[str, Any], mistakes: Mistakes | None = None) -> dict[str, Any]:
    """Return the tables of a file with each quantity converted to a number.

    The number is in the unit at the end of the key's name. A key whose quantity has a wrong unit is
    left out, and its error is added to `mistakes`. If `mistakes` is None, UserError is raised
    instead.
    """
    collected = Mistakes() if mistakes is None else mistakes
    converted = _table(tables, "", collected)
    if mistakes is None:
        collected.tell()
    return converted


def quantity(name: str, text: str, unit: str) -> int:
    """Return a quantity, or a whole number without a unit, as a number in `unit`.

    Parameters
    ----------
    name
        Name of the key, for the message.
    unit
        "ns", "bps" or "bytes".

    Raises
    ------
    UserError
        For anything else.
    """
    if text.isdecimal():
        return int(text)
    units, example = _UNITS[unit]
    converted = _number(text, units, example, name)
    if not isinstance(converted, int) or converted < 0:
        raise UserError(f"{name} {text!r}: expected a whole number of {unit}, or a quantity, as in '{example}'")
    return converted


def _table(tables: Mapping[str, Any], where: str, mistakes: Mistakes) -> dict[str, Any]:
    converted = {key: _value(key, value, f"{where}.{key}" if where else key, mistakes) for key, value in tables.items()}
    return {key: value for key, value in converted.items() if value is not _WRONG}


def _value(key: str, value: Any, where: str, mistakes: Mistakes) -> Any:
    if isinstance(value, Mapping):
        return _table(value, where, mistakes)
    if isinstance(value, list):
        converted = [_value(key, one, f"{where}.{i}", mistakes) for i, one in enumerate(value)]
        return [one for one in converted if one is not _WRONG]
    unit = key.rpartition("_")[2]
    if not isinstance(value, str) or unit not in _UNITS:
        return value
    number = mistakes.attempt(lambda: _number(value, *_UNITS[unit], where))
    return _WRONG if number is None else number


def _number(text: str, units: Mapping[str, int | Fraction], example: str, where: str) -> int | float | str:
    """Return a quantity as a number, and any other text unchanged.

    Only the reader of the key can check another text.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        return text
    number, unit = match[1], match[2].replace("\u03bc", "µ")  # accept the Greek letter mu instead of the micro sign
    if unit not in units:
        raise UserError(f"{where}: no unit {unit!r} here; expected one of {', '.join(units)}, as in '{example}'")
    # Check the text before it is converted: the number could have more digits than fit into memory.
    exponent = re.split("[eE]", number)[1:]
    if len(number) > _MOST_CHARACTERS or any(abs(int(power)) > _MOST_EXPONENT for power in exponent):
        raise _out_of_range(text, example, where)
    exact = Fraction(number.replace("_", "")) * units[unit]
    if abs(exact) >= _LIMIT:
        raise _out_of_range(text, example, where)
    return int(exact) if exact.denominator == 1 else float(exact)


def _out_of_range(text: str, example: str, where: str) -> UserError:
    shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    return UserError(f"{where}: {shown!r} is out of range; expected a number below 2^63, as in '{example}'")


def doubts(tables: Mapping[str, Any], where: str = "") -> list[str]:
    """Return a line for each link rate that is probably a mistake, with its probable intention."""
    remarks = []
    for key, value in tables.items():
        place = f"{where}.{key}" if where else key
        if isinstance(value, Mapping):
            remarks += doubts(value, place)
        elif key.endswith("rate_bps") and isinstance(value, int | float) and 0 < value < SLOWEST_BPS:
            unit = "Gb/s" if value < 10_000 else "Mb/s"
            meant = value if value < 10_000 else value / 1000
            remarks.append(f"{place}: {value:g} b/s is slow for a link; '{meant:g} {unit}' was probably meant")
    return remarks
