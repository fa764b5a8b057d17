"""Places of a program that a pipeline built for tracing tells about, and counts how often it passes them.

The code generator numbers them in the order it comes to them, so that the same BMv2 JSON has the same points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from p4switch.engine.schema import Json

Kind = Literal[
    "state", "transition", "extract", "statement", "branch", "checksum", "table", "hit", "miss", "action", "entry",
    "register", "counter", "meter",
]


class Place(NamedTuple):
    """Where in the source; line and column count from 1. `text` begins there."""

    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Point:
    """`name` is that of the state, table, register ...; of a transition the state that it leaves.

    `detail`: where a transition goes; which way a branch goes ("true", "false"); the action that a table runs; the
    operation of a statement; the number of an entry.
    """

    number: int
    kind: Kind
    name: str
    place: Place | None
    detail: str = ""
    counted: bool = True
    """Whether it is passed by itself, and not only told about."""


@dataclass
class Points:
    """All points of a program, by number."""

    all: list[Point] = field(default_factory=list)

    def add(
        self, kind: Kind, name: str, source: Mapping[str, Json] | None, detail: str = "", *, counted: bool = True
    ) -> int:
        """The number of a new point. `source` is the JSON's source_info."""
        number = len(self.all)
        self.all.append(Point(number, kind, name, place_of(source), detail, counted))
        return number


def place_of(source: Mapping[str, Json] | None) -> Place | None:
    """None where the JSON does not say, or says something else than it should."""
    if not source:
        return None
    file, line, column = source.get("filename"), source.get("line"), source.get("column", 1)
    if not isinstance(file, str) or not file or not isinstance(line, int) or not isinstance(column, int):
        return None
    return Place(file, line, column, str(source.get("source_fragment") or ""))
