"""`digest`: values of the packet for the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine


@dataclass(slots=True, eq=False)
class Digest(ir.ExternOperation):
    """`fields`: the id of the learn list, whose fields are read at the end of ingress."""

    receiver: ir.Expr
    fields: int
    span: int | None = None
    primitive = "generate_digest"
    effects = frozenset({ir.Effect.DIGEST})

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return (self.receiver,)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return ()

    @property
    def arguments(self) -> list[ir.Argument]:
        return [self.receiver, ir.Const(self.fields, ir.ENUM_TYPE)]

    def run(self, machine: Machine) -> None:
        """Do nothing: tests do not look at digests."""
