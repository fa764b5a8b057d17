"""Sizes of types: widths for `minSizeInBits()` and similar methods, and numbers of parts."""

from __future__ import annotations

from p4switch.compiler import types
from p4switch.compiler.types import Type


def lacks_width(t: Type) -> bool:
    """Return whether `t` is or contains `int`."""
    if isinstance(t, types.Tuple):
        return any(map(lacks_width, t.elements))
    if isinstance(t, types.AnonRecord):
        return any(map(lacks_width, t.types))
    return isinstance(t, types.InfInt)


def size_limits(t: Type) -> tuple[int | None, int | None]:
    """Return the minimum and maximum width in bits of a value of type `t`."""
    most = types.width_of(t)
    if most is None:
        return None, None
    return _least(t), most


def _least(t: Type) -> int:
    if isinstance(t, types.Varbit):
        return 0
    if isinstance(t, types.NewType):
        return _least(t.underlying)
    if isinstance(t, types.Stack):
        return _least(t.element) * t.size
    if isinstance(t, types.Tuple):
        return sum(map(_least, t.elements))
    if isinstance(t, types.Union):
        return min((_least(f.type) for f in t.fields), default=0)
    if isinstance(t, types.Record):
        return sum(_least(f.type) for f in t.fields)
    return types.width_of(t) or 0


class PartCounts:
    """Numbers of parts of a value, by type. The result for a struct or header is kept."""

    def __init__(self) -> None:
        self._known: dict[types.Record, int] = {}

    def of(self, t: Type) -> int:
        """Return how many parts a value of type `t` has: scalars, and the structs and tuples that contain them."""
        if isinstance(t, types.Stack):
            return t.size * self.of(t.element)
        if isinstance(t, types.Tuple):
            return 1 + sum(map(self.of, t.elements))
        if not isinstance(t, types.Record):
            return 1
        known = self._known.get(t)
        if known is None:
            known = self._known[t] = 1 + sum(self.of(f.type) for f in t.fields)
        return known
