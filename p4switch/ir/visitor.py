"""Visitors for tools, with a method for each kind of expression, terminator and operation of P4-16.

One further method is for all operations of externs.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from p4switch.ir import expressions, operations

if TYPE_CHECKING:
    from p4switch.ir import program

Result = TypeVar("Result")


class ExpressionVisitor(Generic[Result]):
    """Visitor of expressions. The definition of a subclass raises TypeError if a method is missing."""

    def __init_subclass__(cls) -> None:
        operations.require_complete(cls)

    @abstractmethod
    def const(self, expr: expressions.Const) -> Result: ...

    @abstractmethod
    def field(self, expr: expressions.FieldRef) -> Result: ...

    @abstractmethod
    def last_field(self, expr: expressions.LastField) -> Result: ...

    @abstractmethod
    def elem_field(self, expr: expressions.ElemField) -> Result: ...

    @abstractmethod
    def param(self, expr: expressions.Param) -> Result: ...

    @abstractmethod
    def op(self, expr: expressions.Op) -> Result: ...

    @abstractmethod
    def valid(self, expr: expressions.Valid) -> Result: ...

    @abstractmethod
    def lookahead(self, expr: expressions.Lookahead) -> Result: ...

    @abstractmethod
    def last_index(self, expr: expressions.LastIndex) -> Result: ...


class TerminatorVisitor(Generic[Result]):
    """Visitor of terminators. The definition of a subclass raises TypeError if a method is missing."""

    def __init_subclass__(cls) -> None:
        operations.require_complete(cls)

    @abstractmethod
    def goto(self, end: program.Goto) -> Result: ...

    @abstractmethod
    def branch(self, end: program.Branch) -> Result: ...

    @abstractmethod
    def apply(self, end: program.Apply) -> Result: ...

    @abstractmethod
    def select(self, end: program.Select) -> Result: ...


class OperationVisitor(Generic[Result]):
    """Visitor of operations.

    The definition of a subclass raises TypeError if a method is missing, so that a tool cannot forget an operation.
    """

    def __init_subclass__(cls) -> None:
        operations.require_complete(cls)

    @abstractmethod
    def assign(self, op: operations.Assign) -> Result: ...

    @abstractmethod
    def set_valid(self, op: operations.SetValid) -> Result: ...

    @abstractmethod
    def set_invalid(self, op: operations.SetInvalid) -> Result: ...

    @abstractmethod
    def copy_header(self, op: operations.CopyHeader) -> Result: ...

    @abstractmethod
    def copy_union(self, op: operations.CopyUnion) -> Result: ...

    @abstractmethod
    def copy_stack(self, op: operations.CopyStack) -> Result: ...

    @abstractmethod
    def move_stack(self, op: operations.MoveStack) -> Result: ...

    @abstractmethod
    def exit(self, op: operations.Exit) -> Result: ...

    @abstractmethod
    def extract(self, op: operations.Extract) -> Result: ...

    @abstractmethod
    def advance(self, op: operations.Advance) -> Result: ...

    @abstractmethod
    def verify(self, op: operations.Verify) -> Result: ...

    @abstractmethod
    def extern(self, op: operations.ExternOperation) -> Result: ...

    def composite(self, op: operations.CompositeOperation) -> Result:
        """Visit a composite operation, which exists only between passes."""
        raise AssertionError(f"a pass spells {op.name} out before a tool sees the program")
