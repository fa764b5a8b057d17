"""`Counter` and `DirectCounter`: packet and byte counters, in an array of cells or one for each table entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.v1model.externs import counter
from p4switch.bfrt.fields import Id, Table, data_field, value_type
from p4switch.compiler.midend.values import EXPRS

if TYPE_CHECKING:
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import Builder, ExternObject, Lowering, Machine, Pipeline, Statements, ast

_UNITS = {
    "BYTES": (Id.COUNTER_SPEC_BYTES,),
    "PACKETS": (Id.COUNTER_SPEC_PKTS,),
    "PACKETS_AND_BYTES": (Id.COUNTER_SPEC_BYTES, Id.COUNTER_SPEC_PKTS),
}
_NOTHING = ir.Const(0, ir.Bits(32))


def adjustment(call: ast.Call, at: int, to: Lowering) -> ir.Expr:
    """Return argument `at` of a call: the number of bytes that are not counted."""
    values = to.externs.call_arguments(call)
    given = values[at] if at < len(values) else None
    return to.tables.simple(given) if isinstance(given, EXPRS) else _NOTHING


def _publish_counts(extern: ExternObject, table: Table) -> None:
    """Add the counts to the data of a table."""
    unit = extern.args["type"]
    assert isinstance(unit, ir.Const)
    for each in _UNITS[unit.member]:
        table.singleton(data_field(each, f"${each.name}", value_type("uint64", 0)))


@dataclass(slots=True, eq=False)
class Count(ir.ExternOperation):
    """Operation that counts a packet, and its bytes minus an adjustment, in a cell."""

    counter: str = field(metadata=ir.named("counter_array"))
    index: ir.Expr = field(metadata=ir.READ)
    adjust: ir.Expr = field(metadata=ir.READ)
    span: int | None = None
    primitive = "_Counter_count_bytes"
    effects = frozenset({ir.Effect.STATE})

    def emit(self, to: Statements) -> None:
        at = to.index("uint32_t", self.index)
        counter.emit_count(to, self.counter, at, counter.less(to.x.low(self.adjust, 32)))

    def run(self, machine: Machine) -> None:
        machine.pin(machine.value(self.index))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.counter, access="count")


@EXTERNS.register("Counter")
class Counter(ExternType):
    operations = (Count,)
    stateful = True
    p4info = "COUNTER"
    bfrt = 0x83
    bfrt_of_blocks = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"count": self._count}

    def _count(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        index = to.externs.scalar_argument(call, 0, to.externs.call_arguments(call)[0])
        to.emit(Count(extern.path, index, adjustment(call, 1, to), call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        to.out.counters.append(ir.Counter(extern.path, to.externs.size_argument(extern), span=extern.node.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.counters.add()
        builder.indexed(message, extern, type_argument=1)
        message.spec.unit = builder.unit(message.spec, extern)

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "Counter", extern.number("size"))
        table.key(Id.COUNTER_INDEX, "$COUNTER_INDEX", value_type("uint32"))
        _publish_counts(extern, table)
        table.operations.append("Sync")


@EXTERNS.register("DirectCounter")
class DirectCounter(counter.DirectCounter):
    """Direct counter, which counts the packets that hit each entry, as in v1model."""

    bfrt = 0x84

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        _publish_counts(extern, table)
        table.operations.append("SyncCounters")
