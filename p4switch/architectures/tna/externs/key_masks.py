"""`@dynamic_table_key_masks`: masks of a table's exact keys, which the control plane may change.

A key consists of parts of up to 64 bits. Each part has a cell with the mask of its ignored bits. The cells are in the
order of the keys, and a key's highest part comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import KeyMasks
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.hash import joined
from p4switch.compiler import types
from p4switch.compiler.midend import fold
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Pipeline, Statements

PART_BITS = 64
"""Bits of a key that one cell masks."""


@dataclass(slots=True, eq=False)
class ReadKeyMask(ir.ExternOperation):
    """`target` is set to the mask of a part of a key."""

    masks: str = field(metadata=ir.named("extern"))
    cell: int = field(metadata=ir.number(ir.Bits(8)))
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "_KeyMasks_read"
    effects = ir.NOTHING

    def emit(self, to: Statements) -> None:
        ignored = to.program.object(self.masks).cells[self.cell].dot("ignored", "uint64_t")
        to.store(to.x.place(self.target), cexpr.unary("~", ignored))

    def run(self, machine: Machine) -> None:
        """Return a mask of ones, because a generated test sets no masks."""
        width = types.width_of(self.target.type) or 1
        machine.assign(self.target, machine.number((1 << width) - 1, self.target.type))

    def fit(self, pipeline: Pipeline) -> None:
        """Add nothing, because the mask is part of the key's hashing on a chip."""


@EXTERNS.register("KeyMasks")
class TableKeyMasks(KeyMasks):
    operations = (ReadKeyMask,)
    cell = (("ignored", PART_BITS),)
    annotation = "dynamic_table_key_masks"

    @staticmethod
    def cells(attributes: Mapping[str, int]) -> int:
        return attributes["size"]

    def declare_for(self, table: ir.Table, to: Lowering) -> None:
        cells = sum(parts_of(types.width_of(key.target.type) or 1) for key in table.keys)
        size = {"size": ir.Const(cells, ir.ENUM_TYPE)}
        to.out.externs.append(ir.ExternInstance(masks_of(table.name), "KeyMasks", size, table.span))

    def masked(self, table: ir.Table, number: int, value: ir.Expr, to: Lowering) -> ir.Expr:
        first = sum(parts_of(types.width_of(key.target.type) or 1) for key in table.keys[:number])
        t = types.strip_newtype(value.type)
        width = types.width_of(t) or 1
        parts: list[ir.Expr] = []
        for at in range(parts_of(width)):
            place = to.temp(ir.Bits(PART_BITS if at or not width % PART_BITS else width % PART_BITS), "mask")
            assert isinstance(place, ir.FieldRef)
            to.emit(ReadKeyMask(masks_of(table.name), first + at, place, table.span))
            parts.append(place)
        number_type = ir.Bits(width)
        return fold.make("cast", t, fold.make("&", number_type, fold.make("cast", number_type, value), joined(parts)))


def masks_of(table: str) -> str:
    """Return the name of the object with the masks of a table."""
    return f"{table}.$key_masks"


def parts_of(width: int) -> int:
    """Return the number of cells for a key of this width."""
    return -(-width // PART_BITS)
