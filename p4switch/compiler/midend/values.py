"""Values of expressions during lowering: trees whose leaves are scalar `ir` expressions.

The same trees represent l-values, whose leaves are places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from p4switch import ir
from p4switch.compiler import ast, types

if TYPE_CHECKING:
    from p4switch.compiler.midend.elaborate import Block, ExternObject, PackageObject


@dataclass(slots=True, eq=False)
class StructValue:
    """A struct or a tuple (whose fields are named "0", "1", ...)."""

    type: types.Type
    fields: dict[str, Value]


@dataclass(slots=True, eq=False)
class HeaderValue:
    """Header without storage: `{...}`, or `{#}`, which has no fields."""

    type: types.Header | None
    fields: dict[str, ir.Expr] | None


@dataclass(slots=True, eq=False)
class UnionValue:
    """Header union, or an element of a stack of unions at a run-time index, at `next` or at `last`."""

    ref: ir.UnionRef
    members: dict[str, ir.HeaderRef]


@dataclass(slots=True, eq=False)
class StackValue:
    ref: ir.StackRef
    elements: list[ir.HeaderRef | UnionValue]


@dataclass(slots=True, eq=False)
class ListValue:
    """Array whose elements are not headers, or list or stack without storage."""

    items: list[Value]


@dataclass(slots=True, eq=False)
class ElementPlace:
    """Target of an assignment to an array item at a run-time index."""

    base: ListValue
    index: ir.Expr


@dataclass(slots=True, eq=False)
class SlicePlace:
    """Target of an assignment to bits `high` to `low` of `base`."""

    base: Value
    high: int
    low: int


@dataclass(slots=True, eq=False)
class MovingSlicePlace:
    """Target of an assignment to `width` bits of `base`. The lowest bit, `low`, is known only at run time."""

    base: Value
    low: ir.Expr
    width: int


@dataclass(slots=True, eq=False)
class Text:
    value: str


@dataclass(slots=True, eq=False)
class Ignored:
    """`_` as an argument for an `out` parameter, or an omitted optional argument."""


Value: TypeAlias = (
    "ir.Expr | ir.HeaderRef | StructValue | HeaderValue | UnionValue | StackValue | ListValue | ElementPlace"
    " | SlicePlace | MovingSlicePlace | Text | Ignored | Block | PackageObject | ExternObject"
)

EXPRS = (ir.Const, ir.FieldRef, ir.LastField, ir.ElemField, ir.Param, ir.Op, ir.Valid, ir.Lookahead, ir.LastIndex)
PLACES = (ir.FieldRef, ir.LastField, ir.ElemField)


@dataclass(slots=True, eq=False)
class Frame:
    """Meaning of the names in one activation of a parser, control, action or function."""

    parent: Frame | None
    values: dict[ast.Declaration, Value] = field(default_factory=dict)
    types: dict[ast.TypeParam, types.Type] = field(default_factory=dict)

    def lookup(self, decl: ast.Declaration) -> Value | None:
        frame: Frame | None = self
        while frame is not None:
            value = frame.values.get(decl)
            if value is not None:
                return value
            frame = frame.parent
        return None
