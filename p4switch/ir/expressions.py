"""Expressions and references, which operations read and write. Expressions have no side effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from p4switch.compiler.types import BOOL, Bits, Header, Type, Union

if TYPE_CHECKING:
    from p4switch.ir.visitor import ExpressionVisitor

Result = TypeVar("Result")
ENUM_TYPE = Bits(32)


@dataclass(slots=True, eq=False)
class Const:
    value: int  # 0 and 1 for bool
    type: Type
    member: str = ""  # name of the enum member or error that has this number

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.const(self)


@dataclass(slots=True, eq=False)
class FieldRef:
    """Field of a header or metadata instance."""

    header: str
    name: str
    type: Type

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.field(self)


@dataclass(slots=True, eq=False)
class LastField:
    """Field of the last valid element of a stack, in parsers."""

    stack: str
    name: str
    type: Type
    member: str = ""  # member of the union, in a stack of unions

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.last_field(self)


@dataclass(slots=True, eq=False)
class ElemField:
    """Field of the stack element whose index is known at run time.

    `position` is the position of the field in its header.
    """

    stack: str
    index: Expr
    name: str
    position: int
    type: Type
    member: str = ""  # member of the union at `member_position`, in a stack of unions
    member_position: int = 0

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.elem_field(self)


@dataclass(slots=True, eq=False)
class Param:
    """Parameter of an action, which the table entry supplies."""

    index: int
    type: Type

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.param(self)


@dataclass(slots=True, eq=False)
class Op:
    """Operator `op`, as in P4, or `neg`, `cast`, `?:` (condition, then, else) or `slice` (operand, two constants)."""

    op: str
    args: tuple[Expr, ...]
    type: Type
    depth: int = field(init=False)
    size: int = field(init=False)  # number of nodes in the expression as a tree

    def __post_init__(self) -> None:
        inner = [a for a in self.args if isinstance(a, Op)]
        self.depth = 1 + max((a.depth for a in inner), default=0)
        self.size = 1 + sum(a.size for a in inner)

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.op(self)


@dataclass(slots=True, eq=False)
class Valid:
    header: HeaderRef
    type: Type = BOOL

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.valid(self)


@dataclass(slots=True, eq=False)
class Lookahead:
    """Next bits of the packet. It is the whole right side of an assignment, or a whole select key."""

    offset: int
    width: int
    type: Type

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.lookahead(self)


@dataclass(slots=True, eq=False)
class LastIndex:
    stack: str
    type: Type = ENUM_TYPE

    def accept(self, visitor: ExpressionVisitor[Result]) -> Result:
        return visitor.last_index(self)


Expr: TypeAlias = "Const | FieldRef | LastField | ElemField | Param | Op | Valid | Lookahead | LastIndex"
Place: TypeAlias = "FieldRef | LastField | ElemField"


# References to headers


@dataclass(slots=True, eq=False)
class HeaderRef:
    """Header: instance `name`, or an element of `stack`: the one at `index`, `next` or `last`.

    In a stack of unions, `member` is the name of the union's member, and `position` its position.
    """

    type: Header
    name: str = ""
    stack: str = ""
    index: Expr | None = None
    where: str = ""
    member: str = ""
    position: int = 0


@dataclass(slots=True, eq=False)
class UnionRef:
    type: Union
    name: str


@dataclass(slots=True, eq=False)
class StackRef:
    name: str
    element: Header | Union
    size: int


Reference: TypeAlias = "HeaderRef | UnionRef | StackRef"
