"""Everything with a name that a user meets: keys, columns, figures, variables, exit statuses, words, claims."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from p4cc.reference.glossary import claimed, glossary, of_reports
from p4cc.reference.keys import Key, all_keys
from p4cc.reference.recorded import recorded
from p4cc.reference.spelling import normal

_BY_ITSELF = ("environment",)  # sections whose names need no prefix


@dataclass(frozen=True)
class Entry:
    name: str
    meaning: str
    of: tuple[str, ...] = ()  # topologies, workloads or probes that have such a key; () if it is always there
    key: Key | None = None  # type, default and other properties of a key

    @property
    def plain(self) -> str:
        """Name without the brackets of lists."""
        return self.name.replace("[]", "")

    def is_named(self, name: str) -> bool:
        """Return whether a name means this entry: with or without brackets, in any spelling, or by a pattern."""
        if self.key is None and "*" in self.name:
            return fnmatchcase(normal(name), normal(self.name))
        return normal(name) == normal(self.name)

    def record(self) -> dict[str, Any]:
        """Return the entry as data for programs."""
        return {"name": self.name, "of": list(self.of), "meaning": self.meaning} | (
            {} if self.key is None else {name: value for name, value in self.key.record().items() if name != "of"}
        )


def words() -> list[Entry]:
    """Return the glossary, the terms of reports, and the claims of papers."""
    entries = [*glossary().items(), *of_reports().items(), *claimed().items()]
    return [Entry(name, said) for name, said in entries]


def entries() -> list[Entry]:
    """Return all entries; keys that are declared once for several objects are one entry."""
    by_declaration: dict[tuple[Any, ...], list[Key]] = {}
    for key in all_keys():
        by_declaration.setdefault((key.name, key.source, key.default_text, key.range), []).append(key)
    every = [
        Entry(same[0].name, same[0].meaning, tuple(key.of for key in same if key.of), same[0])
        for same in by_declaration.values()
    ]
    for section, words in recorded().items():
        every += [Entry(name if section in _BY_ITSELF else f"{section}.{name}", said) for name, said in words.items()]
    return every
