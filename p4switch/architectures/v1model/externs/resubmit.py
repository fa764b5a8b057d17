"""`resubmit_preserving_field_list` and `recirculate_preserving_field_list`: the packet enters the parser again."""

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


class _Again(ir.ExternOperation, abstract=True):
    __slots__ = ()
    fields: int

    def emit(self, to: Statements) -> None:
        to.em.set(cexpr.packet(self.primitive), self.fields & 0xFFFF)

    def run(self, machine: Machine) -> None:
        machine.marks.again = self.fields


@dataclass(slots=True, eq=False)
class Resubmit(_Again):
    """Resubmission of the original packet at the end of ingress.

    `fields` is the id of the field list that it keeps.
    """

    fields: int = field(metadata=ir.number(ir.ENUM_TYPE))
    span: int | None = None
    primitive = "resubmit"
    effects = frozenset({ir.Effect.RESUBMIT})


@dataclass(slots=True, eq=False)
class Recirculate(_Again):
    """Recirculation of the deparsed packet at the end of egress.

    `fields` is the id of the field list that it keeps.
    """

    fields: int = field(metadata=ir.number(ir.ENUM_TYPE))
    span: int | None = None
    primitive = "recirculate"
    effects = frozenset({ir.Effect.RECIRCULATE})


@EXTERNS.register("resubmit_preserving_field_list")
class ResubmitFunction(ExternFunction):
    operations = (Resubmit,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "ingress")
        index = v1switch(to).field_lists.index(call, to.externs.call_arguments(call)[0])
        to.emit(Resubmit(v1switch(to).field_lists.id(index), call.pos))


@EXTERNS.register("recirculate_preserving_field_list")
class RecirculateFunction(ExternFunction):
    operations = (Recirculate,)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "egress")
        index = v1switch(to).field_lists.index(call, to.externs.call_arguments(call)[0])
        to.emit(Recirculate(v1switch(to).field_lists.id(index), call.pos))
