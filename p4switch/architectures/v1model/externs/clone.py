"""`clone` and `clone_preserving_field_list`: a copy of the packet that begins in egress."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.architectures.v1model.package import v1switch
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Machine, Statements, ast

_SESSION_BITS = 15


class _Clone(ir.ExternOperation, abstract=True):
    __slots__ = ()
    session: ir.Expr
    fields: int

    def emit(self, to: Statements) -> None:
        session = cexpr.binary("&", to.x.low(self.session, 16), cexpr.literal((1 << _SESSION_BITS) - 1))
        asked = cexpr.binary("|", session, cexpr.literal(1 << _SESSION_BITS))
        to.em.set(cexpr.packet("clone_session"), asked)
        to.em.set(cexpr.packet("clone_list"), self.fields & 0xFFFF)

    def run(self, machine: Machine) -> None:
        machine.marks.clone = machine.pin(machine.value(self.session)) & (1 << _SESSION_BITS) - 1, self.fields


@dataclass(slots=True, eq=False)
class CloneIngress(_Clone):
    """Clone of the packet as it arrived.

    `fields` is the id of the field list that the copy keeps.
    """

    session: ir.Expr = field(metadata=ir.READ)
    fields: int = field(metadata=ir.number(ir.ENUM_TYPE))
    span: int | None = None
    primitive = "clone_ingress_pkt_to_egress"
    effects = frozenset({ir.Effect.CLONE_INGRESS})


@dataclass(slots=True, eq=False)
class CloneEgress(_Clone):
    """Clone of the packet as it is sent.

    `fields` is the id of the field list that the copy keeps.
    """

    session: ir.Expr = field(metadata=ir.READ)
    fields: int = field(metadata=ir.number(ir.ENUM_TYPE))
    span: int | None = None
    primitive = "clone_egress_pkt_to_egress"
    effects = frozenset({ir.Effect.CLONE_EGRESS})


@EXTERNS.register("clone")
@EXTERNS.register("clone_preserving_field_list")
class Clone(ExternFunction):
    operations = (CloneIngress, CloneEgress)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        args = to.externs.call_arguments(call)
        kind = args[0]
        if not isinstance(kind, ir.Const):
            raise to.error(call, "the clone type has to be a compile-time constant")
        to.externs.only_in(call, "ingress" if kind.member == "I2E" else "egress")
        clone = CloneIngress if kind.member == "I2E" else CloneEgress
        fields = v1switch(to).field_lists.index(call, args[2]) if len(args) > 2 else -1
        to.emit(clone(to.externs.scalar_argument(call, 1, args[1]), v1switch(to).field_lists.id(fields), call.pos))
