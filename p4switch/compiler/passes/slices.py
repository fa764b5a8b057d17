"""Pass that replaces an assignment to a slice by an assignment to the whole number."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.midend import fold
from p4switch.compiler.passes.base import spell_out


def run(program: ir.Program) -> None:
    spell_out(program, ir.AssignSlice, _assign)


def _assign(op: ir.AssignSlice) -> list[ir.Operation]:
    return [ir.Assign(op.dst, fold.with_slice(op.dst, op.high, op.low, op.src), op.span)]
