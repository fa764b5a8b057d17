"""Operations: the statements of a basic block.

Each class declares its reads, its writes and its other effects, so that an analysis does not depend on individual
operations. Operations of P4-16 itself are here; those of an extern are in the extern's file
(`p4switch/architectures`).
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

from p4switch.compiler.types import INT, Header, Varbit
from p4switch.ir.expressions import Expr, HeaderRef, Place, StackRef, UnionRef
from p4switch.ir.operands import (
    CHANGED,
    READ,
    VALIDITIES,
    VALIDITY,
    WRITTEN,
    Argument,
    Operand,
    Read,
    Written,
    number,
    role,
    roles,
)

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.engine.statements import Statements
    from p4switch.fit.flow import Pipeline
    from p4switch.ir.visitor import OperationVisitor
    from p4switch.testgen.machine import Machine
    from p4switch.testgen.proof import Prover, State

Result = TypeVar("Result")


class Effect(enum.Enum):
    """Effect of an operation besides reading and writing fields."""

    TAKE = "moves on in the packet"
    FAIL = "may end the parser with an error"
    LEAVE = "ends the control"
    ASSERT = "a packet for which it does not hold breaks the program"
    ASSUME = "packets for which it does not hold do not occur"
    DROP = "marks the packet to be dropped"
    TRUNCATE = "shortens the packet"
    RESUBMIT = "has the packet parsed again as it came"
    RECIRCULATE = "has the packet parsed again as it is sent"
    CLONE_INGRESS = "makes a copy of the packet as it came"
    CLONE_EGRESS = "makes a copy of the packet as it is sent"
    DIGEST = "tells the control plane"
    STATE = "reads or changes what is kept from packet to packet"
    LOG = "writes to the log"


NOTHING: frozenset[Effect] = frozenset()


def require_complete(cls: type, constants: Iterable[str] = ()) -> None:
    """Raise TypeError if a class lacks methods or constants. This is called when the class is defined."""
    missing = [name for name in dir(cls) if getattr(getattr(cls, name), "__isabstractmethod__", False)]
    missing += [name for name in constants if not hasattr(cls, name)]
    if missing:
        raise TypeError(f"class {cls.__name__} has no {', '.join(sorted(missing))}")


class Operation:
    """Step of a block.

    Its reads and writes follow from the roles of its attributes, unless the class declares them
    itself. The definition of a class raises TypeError if a declaration or the role of an attribute
    is missing.
    """

    __slots__ = ()
    _constants: ClassVar[tuple[str, ...]] = ("effects", "primitive")
    _roles: ClassVar[tuple[tuple[str, Operand[NoReturn]], ...]] = ()
    span: int | None
    effects: ClassVar[frozenset[Effect]]
    primitive: ClassVar[str]
    """Name in BMv2 JSON, or one of the names if the operation has several."""

    def __init_subclass__(cls, abstract: bool = False) -> None:
        if not abstract:
            require_complete(cls, cls._constants)
        if cls.reads is Operation.reads:
            cls._roles = roles(cls)

    @property
    def reads(self) -> tuple[Read, ...]:
        """Expressions that are evaluated, except the indices in written places."""
        return tuple(each for name, operand in self._roles for each in operand.read(getattr(self, name)))

    @property
    def writes(self) -> tuple[Written, ...]:
        """Places that may be changed."""
        return tuple(each for name, operand in self._roles for each in operand.written(getattr(self, name)))

    @property
    def arguments(self) -> list[Argument]:
        """Arguments in BMv2 JSON and in the text of a program, in order."""
        return [each for name, operand in self._roles for each in operand.arguments(getattr(self, name))]

    @property
    def bmv2_name(self) -> str:
        """Name in BMv2 JSON, and in traces."""
        return self.primitive

    @abstractmethod
    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        """Call the visitor's method for this class."""


# Operations of P4-16 itself


@dataclass(slots=True, eq=False)
class Assign(Operation):
    dst: Place = field(metadata=WRITTEN)
    src: Expr = field(metadata=READ)
    span: int | None = None
    effects = NOTHING
    primitive = "assign"

    @property
    def bmv2_name(self) -> str:
        return "assign_VL" if isinstance(self.dst.type, Varbit) else self.primitive

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.assign(self)


@dataclass(slots=True, eq=False)
class SetValid(Operation):
    """`setValid`. The fields of a header that was not valid are undefined afterwards."""

    header: HeaderRef = field(metadata=VALIDITY)
    span: int | None = None
    effects = NOTHING
    primitive = "add_header"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.set_valid(self)


@dataclass(slots=True, eq=False)
class SetInvalid(Operation):
    header: HeaderRef = field(metadata=VALIDITY)
    span: int | None = None
    effects = NOTHING
    primitive = "remove_header"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.set_invalid(self)


@dataclass(slots=True, eq=False)
class CopyHeader(Operation):
    """Copy of all fields and the validity of a header."""

    dst: HeaderRef = field(metadata=WRITTEN)
    src: HeaderRef = field(metadata=READ)
    span: int | None = None
    effects = NOTHING
    primitive = "assign_header"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.copy_header(self)


@dataclass(slots=True, eq=False)
class CopyUnion(Operation):
    dst: UnionRef = field(metadata=WRITTEN)
    src: UnionRef = field(metadata=READ)
    span: int | None = None
    effects = NOTHING
    primitive = "assign_union"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.copy_union(self)


@dataclass(slots=True, eq=False)
class CopyStack(Operation):
    """Copy of all elements of a stack, and of the position of `next`."""

    dst: StackRef = field(metadata=WRITTEN)
    src: StackRef = field(metadata=READ)
    span: int | None = None
    effects = NOTHING
    primitive = "assign_header_stack"

    @property
    def bmv2_name(self) -> str:
        return self.primitive if isinstance(self.dst.element, Header) else "assign_union_stack"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.copy_stack(self)


@dataclass(slots=True, eq=False)
class MoveStack(Operation):
    """`push_front(by)`, and `pop_front(-by)` for a negative `by`."""

    stack: StackRef = field(metadata=CHANGED)
    by: int = field(metadata=number(INT))
    span: int | None = None
    effects = NOTHING
    primitive = "push"

    @property
    def bmv2_name(self) -> str:
        return self.primitive if self.by >= 0 else "pop"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.move_stack(self)


@dataclass(slots=True, eq=False)
class Exit(Operation):
    """`exit` in an action of a table, which ends the control."""

    span: int | None = None
    effects = frozenset({Effect.LEAVE})
    primitive = "exit"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.exit(self)


# Operations of parsers


@dataclass(slots=True, eq=False)
class Extract(Operation):
    header: HeaderRef = field(metadata=WRITTEN)
    length: Expr | None = field(default=None, metadata=READ)  # bits of the varbit field
    span: int | None = None
    effects = frozenset({Effect.TAKE, Effect.FAIL})
    primitive = "extract"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.extract(self)


@dataclass(slots=True, eq=False)
class Advance(Operation):
    bits: Expr = field(metadata=READ)
    span: int | None = None
    effects = frozenset({Effect.TAKE, Effect.FAIL})
    primitive = "advance"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.advance(self)


@dataclass(slots=True, eq=False)
class Verify(Operation):
    condition: Expr = field(metadata=READ)
    error: Expr = field(metadata=READ)
    span: int | None = None
    effects = frozenset({Effect.FAIL})
    primitive = "verify"

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.verify(self)


# Composite operations


def _values(fields: list[tuple[Place, Expr]]) -> list[Expr]:
    return [value for _, value in fields]


_VALUES = Operand[list[tuple[Place, Expr]]](lambda fields: [_values(fields)], read=_values)


class CompositeOperation(Operation, abstract=True):
    """Operation that a pass replaces by other operations before any tool sees it."""

    __slots__ = ()
    _constants = ("effects", "name")
    name: ClassVar[str]  # name in the text of a program

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.composite(self)


@dataclass(slots=True, eq=False)
class AssignSlice(CompositeOperation):
    """Assignment to bits `high` to `low` of a number; the other bits keep their values."""

    dst: Place = field(metadata=CHANGED)
    high: int = field(metadata=number(INT))
    low: int = field(metadata=number(INT))
    src: Expr = field(metadata=READ)
    span: int | None = None
    effects = NOTHING
    name = "assign_slice"


@dataclass(slots=True, eq=False)
class FillHeader(CompositeOperation):
    """Assignment of a value to each field of a header, which becomes valid.

    No value depends on a field that was assigned before it.
    """

    header: HeaderRef = field(metadata=WRITTEN)
    fields: list[tuple[Place, Expr]] = field(metadata=role(_VALUES))
    span: int | None = None
    effects = NOTHING
    name = "fill_header"


@dataclass(slots=True, eq=False)
class Invalidate(CompositeOperation):
    """Operation that makes a header invalid, and also the `others` if the header is a member of a union."""

    header: HeaderRef = field(metadata=VALIDITY)
    others: list[HeaderRef] = field(metadata=VALIDITIES)
    span: int | None = None
    effects = NOTHING
    name = "invalidate"


@dataclass(slots=True, eq=False)
class AssignHeader(CompositeOperation):
    """Assignment of a header. If the target is a member of a union, the `others` become invalid.

    `src` is not one of the others.
    """

    dst: HeaderRef = field(metadata=WRITTEN)
    src: HeaderRef = field(metadata=READ)
    others: list[HeaderRef] = field(metadata=VALIDITIES)
    span: int | None = None
    effects = NOTHING
    name = "assign_header"


@dataclass(slots=True, eq=False)
class RewindStack(CompositeOperation):
    """Reset of a stack's `next` to the first element, for stacks that are variables of a parser."""

    stack: StackRef = field(metadata=WRITTEN)
    span: int | None = None
    effects = NOTHING
    name = "rewind"


# Operations of externs


class ExternOperation(Operation, abstract=True):
    """Operation of an extern, with a method for each tool, whose argument is the tool."""

    __slots__ = ()
    draws: ClassVar[bool] = False  # True if it draws a random number

    def accept(self, visitor: OperationVisitor[Result]) -> Result:
        return visitor.extern(self)

    @classmethod
    def read(cls, arguments: Arguments) -> ExternOperation:
        """Return the operation for a primitive's arguments.

        Raises JsonError for wrong arguments.
        """
        construct: Callable[..., ExternOperation] = cls
        return construct(*(operand.take(arguments) for _, operand in cls._roles if operand.take), span=arguments.span)

    def stored(self, register: str) -> ExternOperation:
        """Return an operation that reads the register's first cell instead of drawing a random number.

        An operation without draws returns itself.
        """
        return self

    @staticmethod
    def told(data: bytes) -> str:
        """Return the text in traces for `data`, which the C code reported (`Statements.tell`)."""
        return data.hex()

    @abstractmethod
    def emit(self, to: Statements) -> None:
        """Add the C code of the operation to a function of the engine."""

    @abstractmethod
    def run(self, machine: Machine) -> None:
        """Execute the operation in the test generator, on numbers and formulas."""

    def prove(self, prover: Prover, state: State) -> None:
        """Apply the operation to the packets of `state`.

        By default, written places may have any value afterwards.
        """
        prover.anything_in(self, state)

    def fit(self, pipeline: Pipeline) -> None:
        """Add the operation's vertices to the graph of a pipeline. By default it has one vertex."""
        pipeline.step(self, self.primitive)
