"""`clone` and `clone_preserving_field_list`: a copy of the packet that begins in egress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir

if TYPE_CHECKING:
    from p4switch.testgen.machine import Machine

_SESSION_BITS = 15


class _Clone(ir.ExternOperation, abstract=True):
    __slots__ = ()
    session: ir.Expr
    fields: int

    @property
    def reads(self) -> tuple[ir.Read, ...]:
        return (self.session,)

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return ()

    @property
    def arguments(self) -> list[ir.Argument]:
        return [self.session, ir.Const(self.fields, ir.ENUM_TYPE)]

    def run(self, machine: Machine) -> None:
        machine.marks.clone = machine.pin(machine.value(self.session)) & (1 << _SESSION_BITS) - 1, self.fields


@dataclass(slots=True, eq=False)
class CloneIngress(_Clone):
    """Of the packet as it came. `fields`: the id of the field list that the copy keeps."""

    session: ir.Expr
    fields: int
    span: int | None = None
    primitive = "clone_ingress_pkt_to_egress"
    effects = frozenset({ir.Effect.CLONE_INGRESS})


@dataclass(slots=True, eq=False)
class CloneEgress(_Clone):
    """Of the packet as it is sent. `fields`: the id of the field list that the copy keeps."""

    session: ir.Expr
    fields: int
    span: int | None = None
    primitive = "clone_egress_pkt_to_egress"
    effects = frozenset({ir.Effect.CLONE_EGRESS})
