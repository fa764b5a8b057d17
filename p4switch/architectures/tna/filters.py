"""Parts that `Lpf` and `Wred` share: arrays of cells by index or by table entry, and the arguments of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.compiler import types
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import C, ExternObject, Lowering, Machine, ast

MOST_BITS = 32
"""Largest width of a filter's input."""


def now_ns() -> C:
    """Return a C expression for the time in nanoseconds."""
    return cexpr.packet("now") * cexpr.switch("tick_ns")


def cells_of(machine: Machine, name: str) -> int:
    """Return the number of cells of an object, given by its attribute `size`."""
    size = next(extern.attributes["size"] for extern in machine.program.externs if extern.name == name)
    assert isinstance(size, ir.Const)
    return size.value


def declare_cells(extern: ExternObject, kind: str, cells: int, to: Lowering) -> None:
    """Add an object of `kind` with this number of cells to the program.

    Raises CompileError unless its inputs are numbers of up to 32 bits.
    """
    t = types.strip_newtype(extern.type_args[0])
    if not isinstance(t, types.Bits) or t.signed or t.width > MOST_BITS:
        expected = f"expected a number of up to {MOST_BITS} bits without a sign"
        raise to.error(extern.node, f"{extern.decl.name} of {extern.type_args[0]} is not supported: {expected}")
    size = {"size": ir.Const(cells, ir.ENUM_TYPE)}
    to.out.externs.append(ir.ExternInstance(extern.path, kind, size, extern.node.pos))


def declare_direct_cells(extern: ExternObject, kind: str, to: Lowering) -> None:
    """Add a direct object of `kind`, with a cell for each entry of its table; do nothing if no table uses it.

    Raises CompileError like `declare_cells`.
    """
    cells = to.externs.entry_cells(extern)
    if cells is not None:
        declare_cells(extern, kind, cells, to)


def cell_and_input(call: ast.Call, to: Lowering) -> tuple[ir.Expr, ir.Expr]:
    """Return the index of the cell and the input of `execute(input, index)`."""
    given, index = to.externs.call_arguments(call)
    value = to.externs.scalar_argument(call, 0, given)
    return to.externs.scalar_argument(call, 1, index), value


def entry_and_input(extern: ExternObject, call: ast.Call, to: Lowering) -> tuple[ir.Expr, ir.Expr]:
    """Return the number of the entry that the packet hit, and the input of `execute(input)`."""
    entry = to.tables.entry(extern, call)
    return entry, to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0])
