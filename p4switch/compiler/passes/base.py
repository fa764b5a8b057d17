"""What a pass is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from p4switch import ir


@dataclass(frozen=True)
class Pass:
    """One transformation of a program. `help` is a line about it.

    `run` may raise UnsupportedError.
    """

    name: str
    help: str
    run: Callable[[ir.Program], None]
