"""Pass that replaces a condition in a parser by a field and a select, the only branch in BMv2's parsers."""

from __future__ import annotations

from p4switch import ir
from p4switch.ir.graph import reverse_postorder

FLAG = ir.FieldRef("scalars", "parser.$branch", ir.BOOL)


def run(program: ir.Program) -> None:
    for block in (block for parser in program.parsers for block in reverse_postorder(parser.start)):
        end = block.end
        if isinstance(end, ir.Branch):
            program.scalars[FLAG.name] = ir.BOOL
            block.ops.append(ir.Assign(FLAG, end.condition))
            cases: list[tuple[list[tuple[int, int | None]] | str, ir.Block | None]] = [
                ([(1, None)], end.if_true),
                ([(0, 0)], end.if_false),
            ]
            block.end = ir.Select([FLAG], cases, [end.span] * 2)
