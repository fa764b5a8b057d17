"""Pass that replaces the assignment of a whole header value by `setValid` and assignments of its fields."""

from __future__ import annotations

from p4switch import ir
from p4switch.compiler.midend import fold
from p4switch.compiler.passes.base import spell_out


def run(program: ir.Program) -> None:
    spell_out(program, ir.FillHeader, _fill)


def _fill(op: ir.FillHeader) -> list[ir.Operation]:
    values = [(place, fold.cast(v, place.type) if isinstance(v, ir.Const) else v) for place, v in op.fields]
    return [ir.SetValid(op.header, op.span), *(ir.Assign(place, value, op.span) for place, value in values)]
