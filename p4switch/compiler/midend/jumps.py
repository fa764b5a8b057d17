"""Targets of the jumps in the body of a control or action."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4switch import ir
from p4switch.compiler.midend.values import Value


@dataclass(slots=True)
class Jumps:
    """Stacks of the targets of `exit`, `return`, `break` and `continue`, innermost last."""

    exit: ir.Block | None = None
    soft_exit: ir.FieldRef | None = None  # flag that `exit` sets before it leaves an action
    in_action: bool = False
    returns: list[tuple[ir.Block, Value | None]] = field(default_factory=list)  # targets, with the place of the result
    loops: list[tuple[ir.Block, ir.Block]] = field(default_factory=list)  # (break, continue)
    cleanups: list[list[tuple[Value, Value]]] = field(default_factory=list)  # (to, from): copies that an `exit` makes
