"""Base of passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from p4switch import ir
from p4switch.ir.graph import code


@dataclass(frozen=True)
class Pass:
    """Transformation of a program by `run`, which may raise UnsupportedError.

    `help` is a line that describes the pass.
    """

    name: str
    help: str
    run: Callable[[ir.Program], None]
    gone: frozenset[type[ir.Operation]] = frozenset()
    """Kinds of operations that no longer occur after this pass and after later passes."""


Op = TypeVar("Op", bound=ir.Operation)


def spell_out(program: ir.Program, kind: type[Op], spelled: Callable[[Op], list[ir.Operation]]) -> None:
    """Replace each operation of class `kind` by the operations that `spelled` returns for it."""
    for block in code(program):
        if any(isinstance(op, kind) for op in block.ops):
            block.ops = [new for op in block.ops for new in (spelled(op) if isinstance(op, kind) else [op])]
