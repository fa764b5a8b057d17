"""Base of externs: lowering of calls to operations, and description of objects to the control plane.

The file of an extern also has the classes of its operations (`ir.ExternOperation`), which define how each tool treats
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from p4switch import ir
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Builder, ExternObject, Lowering, Value, ast


class Extern:
    """Extern function or type, registered by its P4 name."""

    operations: ClassVar[tuple[type[ir.ExternOperation], ...]] = ()
    """Operations that calls of the extern are lowered to."""


class ExternFunction(Extern, ABC):
    @abstractmethod
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        """Emit the operations of a call and return its value.

        Raises CompileError for a call that the target cannot do.
        """


Method = Callable[["ast.Call", "ExternObject", "Lowering"], "Value | None"]


class ExternType(Extern):
    """Extern type. The compiler warns about unused objects of a `stateful` type."""

    stateful: ClassVar[bool] = False
    direct: ClassVar[bool] = False
    """True if an object belongs to a table."""
    in_parsers: ClassVar[bool] = False
    """True if the methods can be called in parsers."""
    cell: ClassVar[tuple[tuple[str, int], ...]] = ()
    """Name and width in bits of each member of a cell in the engine; empty: objects have no cells."""
    p4info: ClassVar[str] = ""
    """Kind of the objects in P4Info, as named in `P4Ids.Prefix`; empty: P4Info does not have them."""
    bfrt: ClassVar[int] = 0
    """Highest byte of the objects' ids in `bf-rt.json`; 0: `bf-rt.json` does not have them."""
    bfrt_of_blocks: ClassVar[bool] = False
    """True if the pipeline's name is part of an object's name in `bf-rt.json` only for objects in blocks."""

    def algorithm(self, extern: ExternObject) -> str:
        """Return the name in BMv2 of an action selector's hash algorithm; empty for other objects."""
        return ""

    def profile(self, extern: ExternObject) -> ExternObject:
        """Return the action profile that a selector chooses from; by default the selector itself."""
        return extern

    @property
    def methods(self) -> Mapping[str, Method]:
        """Lowering of method calls to operations, by method name."""
        return {}

    def begin(self, extern: ExternObject, to: Lowering) -> None:
        """Emit the code that runs at the start of the parser or control that contains the object."""

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        """Add the object to the program."""

    @staticmethod
    def cells(attributes: Mapping[str, int]) -> int:
        """Return the number of cells that an object has in the engine, given the arguments of its constructor."""
        return 1

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        """Add the object to the P4Info. Called for types with a `p4info`."""

    def bfrt_names(self, extern: ExternObject) -> list[tuple[int, str]]:
        """Return the names that have an id in `bf-rt.json`, with the highest byte of the id."""
        return [(self.bfrt, extern.path)] if self.bfrt else []

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        """Add the object's own tables to `bf-rt.json`."""

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        """Extend the data of a table that has the object as a property."""


class KeyMasks(ExternType):
    """Masks of a table's exact keys, created by an annotation and set by the control plane."""

    annotation: ClassVar[str]
    """Annotation, with the argument 1, of the tables that have masks."""

    @abstractmethod
    def declare_for(self, table: ir.Table, to: Lowering) -> None:
        """Add the masks of a table to the program. The keys of the table are complete."""

    @abstractmethod
    def masked(self, table: ir.Table, number: int, value: ir.Expr, to: Lowering) -> ir.Expr:
        """Return the masked value of a key of a table; `number` is the position of the key."""
