"""Meanings of the outputs of a run, by table or file, and by column or key.

They come from `harness/columns` and `recorded.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness.columns.flows import totals
from harness.columns.nics import NICS
from harness.columns.tables import TABLES
from harness.columns.traffic_manager import PORT, PRIORITY
from harness.plan.scenario import read

TOTALS, _NICS = "@totals", "@nic"
FILES = ("summary", "performance", "provenance")


@cache
def recorded() -> Mapping[str, Mapping[str, str]]:
    """Return meanings by section and name.

    Names may have `*` for any part, and `[]` after a list.
    """
    tables = {
        table.name: {column.name: column.meaning for column in table.columns} for table in (*TABLES, PORT, PRIORITY)
    }
    said = read(Path(__file__).with_name("recorded.toml"))
    declared = {
        TOTALS: {total.name: total.meaning for total in totals()},
        _NICS: {f"{NICS.name}.{column.name}": column.meaning for column in NICS.columns},
    }
    return tables | {section: with_declared(words, declared) for section, words in said.items()}


def with_declared(words: Mapping[str, str], declared: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the entries of a section with declared counts in place of their placeholders."""
    entries: dict[str, str] = {}
    for name, said in words.items():
        entries |= declared.get(name, {name: said})
    return entries


def meaning(section: str, name: str) -> str:
    """Return the meaning of a column or a key of a file; "" if there is none."""
    words = recorded().get(section, {})
    if name in words:
        return words[name]
    return next((said for pattern, said in words.items() if _matches(pattern, name)), "")


def _matches(pattern: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def leaves(value: Any, above: str = "") -> Iterator[str]:
    """Yield the dotted names of the leaves of a JSON value; an empty table or list is a leaf."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from leaves(below, f"{above}.{name}" if above else name)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for below in value:
            yield from leaves(below, f"{above}[]")
    else:
        yield above
