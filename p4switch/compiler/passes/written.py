"""Pass that sets the companion field of a metadata field at each assignment to the field."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler import types
from p4switch.ir.graph import code

_FLAG = types.Bits(1)


def run(program: ir.Program) -> None:
    flags = {(m.name, field): flag for m in program.metadata for field, flag in m.written.items()}
    if not flags:
        return
    for block in code(program):
        ops: list[ir.Operation] = []
        for op in block.ops:
            ops.append(op)
            for place in op.writes:
                flag = flags.get((place.header, place.name)) if isinstance(place, ir.FieldRef) else None
                if flag is not None:
                    assert isinstance(place, ir.FieldRef)
                    ops.append(ir.Assign(ir.FieldRef(place.header, flag, _FLAG), ir.Const(1, _FLAG), op.span))
        block.ops = ops
