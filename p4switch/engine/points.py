"""Places of a program that a pipeline built for tracing reports and whose passes it counts.

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
    """Place of a program.

    `name` is that of the state, table, register, field of a checksum and so on; for a transition it is the state that
    it leaves. `detail` is the target of a transition, the direction of a branch ("true", "false"), the action that a
    table runs, the operation of a statement, or the number of an entry.
    """

    number: int
    kind: Kind
    name: str
    place: Place | None
    detail: str = ""
    counted: bool = True
    """True if packets pass the point; False if it is only mentioned in reports."""
    parser: str = ""
    """Parser of a state."""


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

