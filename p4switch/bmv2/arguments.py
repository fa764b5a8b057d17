"""Arguments of an extern's primitive, read one after the other by the class of the operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch import ir
from p4switch.bmv2.schema import JsonError

_PLACES = (ir.FieldRef, ir.LastField, ir.ElemField)
_VALUES = (*_PLACES, ir.Const, ir.Param, ir.Op, ir.Valid, ir.Lookahead, ir.LastIndex)


class Arguments:
    """Reader of arguments. Each method takes the next argument and raises JsonError if it has another kind.

    `span` is that of the primitive.
    """

    def __init__(
        self, primitive: str, given: Sequence[ir.Argument], calculations: Mapping[str, ir.Calculation],
        span: int | None,
    ) -> None:
        self._primitive, self._given, self._calculations = primitive, given, calculations
        self.span = span
        self._taken = 0

    def _next(self) -> ir.Argument:
        self._taken += 1
        if self._taken > len(self._given):
            raise self._error(f"takes at least {self._taken} parameters, got {len(self._given)}")
        return self._given[self._taken - 1]

    def _error(self, what: str) -> JsonError:
        return JsonError(f"BMv2 JSON: primitive {self._primitive} {what}")

    def finish(self) -> None:
        """Raise JsonError if arguments are left."""
        if self._taken != len(self._given):
            raise self._error(f"takes {self._taken} parameters, got {len(self._given)}")

    def place(self) -> ir.Place:
        found = self._next()
        if isinstance(found, ir.Op) and found.op == "cast" and found.type == ir.INT:
            (found,) = found.args
        if not isinstance(found, _PLACES):
            raise self._error(f"needs a field as parameter {self._taken}")
        return found

    def value(self) -> ir.Expr:
        found = self._next()
        if not isinstance(found, _VALUES):
            raise self._error(f"needs a value as parameter {self._taken}")
        return found

    def number(self) -> int:
        """Return a constant."""
        found = self._next()
        if not isinstance(found, ir.Const):
            raise self._error(f"needs a constant as parameter {self._taken}")
        return found.value

    def values(self) -> list[ir.Expr]:
        found = self._next()
        if not isinstance(found, list):
            raise self._error(f"needs a list of values as parameter {self._taken}")
        return found

    def name(self) -> str:
        """Return the name of an object, or a string."""
        found = self._next()
        if not isinstance(found, ir.Named):
            raise self._error(f"needs a name as parameter {self._taken}")
        return found.value

    def instance(self) -> str:
        """Return the name of a header instance."""
        found = self._next()
        if isinstance(found, ir.Named) and found.kind == "header":
            return found.value
        if not isinstance(found, ir.HeaderRef):
            raise self._error(f"needs a header as parameter {self._taken}")
        return found.name

    def calculation(self) -> ir.Calculation:
        name = self.name()
        if name not in self._calculations:
            raise JsonError(f"BMv2 JSON: there is no calculation {name}")
        return self._calculations[name]
