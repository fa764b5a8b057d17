"""`mark_to_drop`: the packet is dropped, unless a later operation sends it to a port."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.ports import DROP_PORT
from p4switch.architectures.v1model import EXTERNS
from p4switch.architectures.v1model.metadata import EGRESS_SPEC, MCAST_GRP, STANDARD
from p4switch.architectures.v1model.package import v1switch
from p4switch.compiler.midend.values import StructValue
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.bmv2.arguments import Arguments
    from p4switch.tool_types import Lowering, Machine, Prover, State, Statements, ast


@dataclass(slots=True, eq=False)
class MarkToDrop(ir.ExternOperation):
    """Drop of a packet by writing `metadata`.

    `metadata` is the intrinsic metadata, or the copy of it that p4c makes for a parameter and later
    copies back.
    """

    metadata: str = STANDARD
    span: int | None = None
    primitive = "mark_to_drop"
    effects = frozenset({ir.Effect.DROP})
    reads = ()

    @property
    def writes(self) -> tuple[ir.FieldRef, ir.FieldRef]:
        return replace(EGRESS_SPEC, header=self.metadata), replace(MCAST_GRP, header=self.metadata)

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("header", self.metadata)]

    @classmethod
    def read(cls, arguments: Arguments) -> MarkToDrop:
        return cls(arguments.instance(), arguments.span)

    def emit(self, to: Statements) -> None:
        if self.metadata == STANDARD:
            to.em.call("mark_to_drop", "sw", "p")
            return
        egress_spec, mcast_grp = self.writes
        to.x.place(egress_spec).store(to.em, cexpr.widened(cexpr.switch("drop_port")))
        to.x.place(mcast_grp).store(to.em, cexpr.literal(0))

    def run(self, machine: Machine) -> None:
        machine.assign(EGRESS_SPEC, machine.number(DROP_PORT))
        machine.assign(MCAST_GRP, machine.number(0))

    def prove(self, prover: Prover, state: State) -> None:
        prover.assign(EGRESS_SPEC, prover.number(DROP_PORT), state)
        prover.assign(MCAST_GRP, prover.number(0), state)


@dataclass(slots=True, eq=False)
class Drop(MarkToDrop):
    """Drop in the form that older compilers write."""

    primitive = "drop"

    @property
    def arguments(self) -> list[ir.Argument]:
        return []

    @classmethod
    def read(cls, arguments: Arguments) -> Drop:
        return cls(span=arguments.span)


@EXTERNS.register("mark_to_drop")
class MarkToDropFunction(ExternFunction):
    operations = (MarkToDrop, Drop)

    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "ingress", "egress")
        to.emit(MarkToDrop(span=call.pos))
        for arg in to.externs.call_arguments(call):
            # A copy of the standard metadata has to be updated as well, because it is copied back later.
            if isinstance(arg, StructValue):
                for field in (EGRESS_SPEC, MCAST_GRP):
                    to.copies.assign(arg.fields[field.name], v1switch(to).standard.fields[field.name], call.pos)
