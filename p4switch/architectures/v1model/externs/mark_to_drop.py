"""`mark_to_drop`: the packet goes nowhere, unless a later operation says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternFunction
from p4switch.architectures.v1model import EXTERNS
from p4switch.architectures.v1model.metadata import EGRESS_SPEC, MCAST_GRP, STANDARD
from p4switch.architectures.v1model.package import v1switch
from p4switch.architectures.v1model.ports import DROP_PORT
from p4switch.compiler.midend.values import StructValue

if TYPE_CHECKING:
    from p4switch.compiler import ast
    from p4switch.compiler.midend.lowering import Lowering
    from p4switch.testgen.machine import Machine
    from p4switch.testgen.proof import Prover, State


@dataclass(slots=True, eq=False)
class MarkToDrop(ir.ExternOperation):
    span: int | None = None
    primitive = "mark_to_drop"
    effects = frozenset({ir.Effect.DROP})
    reads = ()

    @property
    def writes(self) -> tuple[ir.Written, ...]:
        return EGRESS_SPEC, MCAST_GRP

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("header", STANDARD)]

    def run(self, machine: Machine) -> None:
        machine.assign(EGRESS_SPEC, machine.number(DROP_PORT))
        machine.assign(MCAST_GRP, machine.number(0))

    def prove(self, prover: Prover, state: State) -> None:
        prover.assign(EGRESS_SPEC, prover.number(DROP_PORT), state)
        prover.assign(MCAST_GRP, prover.number(0), state)


@EXTERNS.register("mark_to_drop")
class MarkToDropFunction(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> None:
        to.externs.only_in(call, "ingress", "egress")
        to.emit(MarkToDrop(call.pos))
        for arg in to.externs.call_arguments(call):
            # In a copy of the standard metadata the fields have to follow: it is copied back later.
            if isinstance(arg, StructValue):
                for field in (EGRESS_SPEC, MCAST_GRP):
                    to.copies.assign(arg.fields[field.name], v1switch(to).standard.fields[field.name], call.pos)
