"""Pass that invalidates the other members of a union when one becomes valid (language specification, 8.20)."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.passes.base import spell_out


def run(program: ir.Program) -> None:
    spell_out(program, ir.Invalidate, _invalidate)
    spell_out(program, ir.AssignHeader, _assign)


def _invalidate(op: ir.Invalidate) -> list[ir.Operation]:
    every = sorted([op.header, *op.others], key=lambda header: header.position)
    return [ir.SetInvalid(header, op.span) for header in every]


def _assign(op: ir.AssignHeader) -> list[ir.Operation]:
    # Copying an invalid header invalidates all members.
    return [*(ir.SetInvalid(header, op.span) for header in op.others), ir.CopyHeader(op.dst, op.src, op.span)]
