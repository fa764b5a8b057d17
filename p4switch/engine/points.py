"""Places of a program that a pipeline built for tracing tells about, and counts how often it passes them.

The code generator numbers them in the order it comes to them, so that the same BMv2 JSON has the same points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from p4switch.ir.places import Place

Kind = Literal[
    "state", "transition", "extract", "statement", "branch", "checksum", "table", "hit", "miss", "action", "entry",
    "register", "counter", "meter", "extern",
]


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
    """True if packets pass it, rather than only report about it."""
    parser: str = ""
    """The parser that has a state."""


@dataclass
class Points:
    """All points of a program, by number."""

    all: list[Point] = field(default_factory=list)

    def add(
        self, kind: Kind, name: str, place: Place | None, detail: str = "", *, counted: bool = True, parser: str = ""
    ) -> int:
        """Return the number of a new point."""
        number = len(self.all)
        self.all.append(Point(number, kind, name, place, detail, counted, parser))
        return number

