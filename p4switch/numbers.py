"""Numbers as TOML and JSON files have them."""

from __future__ import annotations


def integral(value: object) -> object:
    """Return a float without fraction as an integer: TOML writes 100 Gb/s more readably as 100e9."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
