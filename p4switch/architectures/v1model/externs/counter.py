"""`counter`: packet and byte counters in an array of cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.v1model import EXTERNS
from p4switch.engine import cexpr

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, C, ExternObject, Lowering, Machine, Pipeline, Statements, ast


@dataclass(slots=True, eq=False)
class Count(ir.ExternOperation):
    counter: str = field(metadata=ir.named("counter_array"))
    index: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "count"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        emit_count(to, self.counter, to.index("uint32_t", self.index), cexpr.packet("ingress_len"))

    def run(self, machine: Machine) -> None:
        machine.pin(machine.value(self.index))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.counter, access="count")


def less(adjust: C) -> C:
    """Return a C expression for the packet's length in bytes minus `adjust`, a number of 32 bits."""
    return cexpr.packet("ingress_len") - cexpr.cast("uint32_t", adjust)


def emit_count(to: Statements, counter: str, at: C, packet_bytes: C) -> None:
    """Write C that counts a packet of `packet_bytes` in a cell."""
    number, array = to.program.counter(counter)
    to.em.call("p4_count", "sw", number, array.size, at, packet_bytes)
    cell = cexpr.switch("counters")[number][cexpr.chosen(at < array.size, at, array.size, "uint32_t")]
    to.touch("counter", array.name, at, 0, (cell.address, cexpr.size_of_type("p4_counter")))


@EXTERNS.register("counter")
class Counter(ExternType):
    operations = (Count,)
    stateful = True
    p4info = "COUNTER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"count": self._count}

    def _count(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index = to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0])
        to.emit(Count(extern.path, index, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        to.out.counters.append(ir.Counter(extern.path, to.externs.size_argument(extern), span=extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.counters.add()
        builder.indexed(message, extern)
        message.spec.unit = builder.unit(message.spec, extern)


@EXTERNS.register("direct_counter")
class DirectCounter(ExternType):
    """Direct counter, which the table increments by itself; `count` only marks the actions that count."""

    stateful = direct = True
    p4info = "DIRECT_COUNTER"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"count": lambda call, extern, to: None}

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        table = to.externs.table_of(extern)
        if table is not None:
            to.out.counters.append(ir.Counter(extern.path, table.size, table.name, extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.direct_counters.add()
        builder.of_table(message, extern)
        message.spec.unit = builder.unit(message.spec, extern)
