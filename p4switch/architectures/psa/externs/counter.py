"""`Counter` and `DirectCounter`: packet and byte counters, in an array of cells or one for each table entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs import counter

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject, Lowering, ast

_KINDS = ("PACKETS", "BYTES", "PACKETS_AND_BYTES")


@dataclass(slots=True, eq=False)
class Count(counter.Count):
    primitive = "_Counter_count"

    @property
    def arguments(self) -> list[ir.Argument]:
        return [ir.Named("extern", self.counter), self.index]


@EXTERNS.register("Counter")
class Counter(ExternType):
    operations = (Count,)
    stateful = True
    p4info = "COUNTER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"count": self._count}

    def _count(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        if len(to.facts.bindings[call].bound) > 1:
            raise to.error(call, "'count' with the length of the packet is not supported: the target knows the length")
        index = to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0])
        to.emit(Count(extern.path, index, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        size = to.externs.size_argument(extern, "n_counters")
        kind = _KINDS.index(to.externs.enum_argument(extern, "type"))
        to.out.counters.append(ir.Counter(extern.path, size, span=extern.node.pos))
        attributes = {"n_counters": ir.Const(size, ir.Bits(32)), "type": ir.Const(kind, ir.ENUM_TYPE)}
        to.out.externs.append(ir.ExternInstance(extern.path, "Counter", attributes, extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.counters.add()
        builder.indexed(message, extern, type_argument=1, size_argument="n_counters")
        message.spec.unit = builder.unit(message.spec, extern)


EXTERNS.add("DirectCounter", counter.DirectCounter)  # as in v1model
