"""Random numbers given by tests, which replace the program's own draws on every switch.

A draw becomes a read of a register that the test writes. Such a test therefore does not test the switch's own `random`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from p4switch import ir
from p4switch.ir.graph import reverse_postorder
from p4switch.stf.language import Command, StfError

REGISTER = "p4cc.random."
"""Prefix of the registers' names. The rest of a name is the place of the draw in the source."""
DRAW_BITS = 64


def draws(commands: Sequence[Command]) -> list[Command]:
    """Return the commands that name a draw."""
    return [command for command in commands if command.name == "random"]


def with_draws(program: ir.Program, commands: Sequence[Command]) -> ir.Program:
    """Replace the draws that `commands` name by reads of registers, and return `program`.

    Raises StfError for unknown draws.
    """
    named = {command.args.rpartition(" ")[0] or command.args: command for command in draws(commands)}
    known = list(_draws(program))
    places = sorted({place for place, _, _ in known})
    for place, command in named.items():
        if place not in places:
            there = ", ".join(places) or "none"
            raise StfError(command.line, f"no random number is drawn at '{place}'; expected one of: {there}")
        program.registers.append(ir.Register(REGISTER + place, 1, DRAW_BITS))
    for place, block, op in known:
        if place in named:
            block.ops[block.ops.index(op)] = op.stored(REGISTER + place)
    return program


def _draws(program: ir.Program) -> Iterator[tuple[str, ir.Block, ir.ExternOperation]]:
    """Yield the place (`FILE:LINE`), the block and the operation of each draw."""
    for action in program.actions:
        for block in reverse_postorder(action.body):
            for op in block.ops:
                if isinstance(op, ir.ExternOperation) and op.draws:
                    where = program.place(op.span)
                    yield "" if where is None else f"{Path(where.file).name}:{where.line}", block, op
