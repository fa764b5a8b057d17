"""Arguments of an extern's primitive, which the class of the operation reads one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p4switch import ir
from p4switch.bmv2.schema import JsonError

_PLACES = (ir.FieldRef, ir.LastField, ir.ElemField)
_VALUES = (*_PLACES, ir.Const, ir.Param, ir.Op, ir.Valid, ir.Lookahead, ir.LastIndex)


class Arguments:
    """Reader of arguments. Each method reads the next argument, and raises JsonError if it has another kind.

    `span` is the source position of the primitive.
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
        argument = self._next()
        if isinstance(argument, ir.Op) and argument.op == "cast" and argument.type == ir.INT:
            (argument,) = argument.args
        if not isinstance(argument, _PLACES):
            raise self._error(f"needs a field as parameter {self._taken}")
        return argument

    def value(self) -> ir.Expr:
        argument = self._next()
        if not isinstance(argument, _VALUES):
            raise self._error(f"needs a value as parameter {self._taken}")
        return argument

    def number(self) -> int:
        """Return a constant."""
        argument = self._next()
        if not isinstance(argument, ir.Const):
            raise self._error(f"needs a constant as parameter {self._taken}")
        return argument.value

    def values(self) -> list[ir.Expr]:
        argument = self._next()
        if not isinstance(argument, list):
            raise self._error(f"needs a list of values as parameter {self._taken}")
        return argument

    def name(self) -> str:
        """Return the name of an object, or a string."""
        argument = self._next()
        if not isinstance(argument, ir.Named):
            raise self._error(f"needs a name as parameter {self._taken}")
        return argument.value

    def instance(self) -> str:
        """Return the name of a header instance."""
        argument = self._next()
        if isinstance(argument, ir.Named) and argument.kind == "header":
            return argument.value
        if not isinstance(argument, ir.HeaderRef):
            raise self._error(f"needs a header as parameter {self._taken}")
        return argument.name

    def calculation(self) -> ir.Calculation:
        name = self.name()
        if name not in self._calculations:
            raise JsonError(f"BMv2 JSON: there is no calculation {name}")
        return self._calculations[name]
