"""Points of a program, which a pipeline built for tracing reports and counts when packets pass them.

The code generator numbers them in the order in which it reaches them, so that the same BMv2 JSON gives the same points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from p4switch.ir.places import Place

Kind = Literal[
    "state", "transition", "extract", "statement", "branch", "checksum", "checksum update", "table", "hit", "miss",
    "action", "entry", "register", "counter", "meter", "extern",
]


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a program.

    `name` is the name of the state, table, register, field of a checksum and so on; for a
    transition it is the state that it leaves. `detail` is the target of a transition, the outcome
    of a condition ("true", "false"), the action that a table runs, the operation of a statement, or
    the number of an entry.
    """

    number: int
    kind: Kind
    name: str
    place: Place | None
    detail: str = ""
    counted: bool = True
    """True if passes of packets are counted; False if the point is only part of reports."""
    parser: str = ""
    """Name of the parser of a state."""


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

