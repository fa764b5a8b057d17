"""`log_msg`: a line of text with values in it, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.fit.flow import Pipeline
    from p4switch.testgen.machine import Machine


@dataclass(slots=True, eq=False)
class LogMsg(ir.ExternOperation):
    """Each `{}` in `text` is one of `values`."""

    text: str
    values: list[ir.Expr]
    span: int | None = None
    primitive = "log_msg"
    effects = frozenset({ir.Effect.LOG})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return tuple(self.values)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return ()

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("string", self.text), self.values]

    def run(self, machine: Machine) -> None:
        """Do nothing: tests do not look at the log."""

    def fit(self, pipeline: Pipeline) -> None:
        """Add nothing: a chip has no log."""
