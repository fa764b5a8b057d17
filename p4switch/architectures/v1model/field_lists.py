"""Lists of the metadata fields that cloned, resubmitted and recirculated packets keep (`@field_list`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import ast, types
from p4switch.compiler.midend.storage import header_field
from p4switch.compiler.midend.values import ListValue, StackValue, StructValue, UnionValue, Value

if TYPE_CHECKING:
    from p4switch.compiler.midend.lowering import Lowering


def _in_list(field: ast.Declaration, index: int) -> bool:
    """Return whether the field has `@field_list` with `index` among its arguments."""
    return any(
        isinstance(argument, ast.IntLiteral) and argument.value == index
        for annotation in field.annotations
        if annotation.name == "field_list"
        for argument in annotation.args or ()
    )


class FieldLists:
    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.metadata: Value | None = None  # the user's metadata, whose fields have the annotations
        self._ids: dict[int, int] = {}  # id of each list by its index in @field_list

    def index(self, call: ast.Call, index: Value) -> int:
        """Return the index of a field list, which is an argument of a call."""
        if not isinstance(index, ir.Const):
            raise self.low.error(call, "the index of the field list has to be a compile-time constant")
        return index.value

    def id(self, index: int) -> int:
        """Return the id of the list of the metadata fields marked with `@field_list(index)`."""
        if index not in self._ids:
            elements = [] if self.metadata is None else self._listed(self.metadata, index)
            self.low.out.field_lists.append(
                ir.FieldList(f"field_list{index}" if elements else f"empty{index}", elements)
            )
            self._ids[index] = len(self.low.out.field_lists)
        return self._ids[index]

    def _listed(self, value: Value, index: int) -> list[ir.Expr]:
        """Return the scalars in `value` that belong to list `index`, in order.

        Either the field itself or a field that contains it has the annotation `@field_list(index)`.
        """
        if isinstance(value, StructValue) and isinstance(value.type, types.Struct):
            fields = [(f.decl, value.fields[f.name]) for f in value.type.fields]
        elif isinstance(value, ir.HeaderRef):
            fields = [(f.decl, header_field(value, f.name)) for f in value.type.fields]
        elif isinstance(value, UnionValue):
            fields = [(f.decl, value.members[f.name]) for f in value.ref.type.fields]
        else:
            parts: Iterable[Value] = ()
            if isinstance(value, StructValue):
                parts = value.fields.values()
            elif isinstance(value, ListValue):
                parts = value.items
            elif isinstance(value, StackValue):
                parts = value.elements
            return [leaf for part in parts for leaf in self._listed(part, index)]
        every = self.low.externs.fields_of
        return [
            leaf
            for decl, inner in fields
            for leaf in (every(inner, decl) if _in_list(decl, index) else self._listed(inner, index))
        ]
