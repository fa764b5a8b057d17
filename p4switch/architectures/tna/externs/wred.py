"""`Wred` and `DirectWred`: drop decisions by the average of the queue depths that packets supply (RED)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.filters import (
    MOST_BITS,
    cell_and_input,
    cells_of,
    declare_cells,
    declare_direct_cells,
    entry_and_input,
    now_ns,
)
from p4switch.bfrt.fields import data_field, value_type
from p4switch.engine import cexpr
from p4switch.engine.objects import values

if TYPE_CHECKING:
    from p4switch.bfrt.fields import Table
    from p4switch.bfrt.schema import Schema
    from p4switch.tool_types import ExternObject, Lowering, Machine, Pipeline, Statements, Value, ast

_BYTE = ir.Bits(8)
_INDEX = 65561  # an id of a field in bf-rt.json, like those below
_FIELDS = (
    (65571, "TIME_CONSTANT_NS", "float"),
    (65572, "MIN_THRESH_CELLS", "uint32"),
    (65573, "MAX_THRESH_CELLS", "uint32"),
    (65574, "MAX_PROBABILITY", "float"),
)


@dataclass(slots=True, eq=False)
class ExecuteWred(ir.ExternOperation):
    """Drop decision for a packet.

    `target` is set to the first of `results` if the packet is to be dropped, else to the second. An
    index beyond the last cell has no effect.
    """

    wred: str = field(metadata=ir.named("extern"))
    index: ir.Expr = field(metadata=ir.READ)
    value: ir.Expr = field(metadata=ir.READ)
    results: tuple[int, int] = field(metadata=ir.numbers(_BYTE, 2))
    target: ir.Place = field(metadata=ir.WRITTEN)
    span: int | None = None
    primitive = "_Wred_execute"
    effects = frozenset({ir.Effect.STATE})
    draws = True

    def emit(self, to: Statements) -> None:
        array, at = to.program.object(self.wred), to.index("uint32_t", self.index)
        with to.within(at, array.size):
            cell = array.cells[at]
            value = to.em.temp("uint32_t", to.x.low(self.value, MOST_BITS), "value")
            drops = to.em.temp("int", cexpr.call("P4_WRED", "int", cell, value, now_ns()), "drops")
            to.tell(self, array.name, at, cell)
            dropped, kept = map(cexpr.literal, self.results)
            to.store(to.x.place(self.target), cexpr.chosen(drops, dropped, kept, "uint64_t"))

    @staticmethod
    def told(data: bytes) -> str:
        return f"average {values(Wred, data)['value'] / 2**32:.3f}"

    def run(self, machine: Machine) -> None:
        """Decide to keep the packet, because a generated test enables no cell."""
        machine.inside(self.index, cells_of(machine, self.wred), f"an index outside of '{self.wred}'")
        machine.assign(self.target, machine.number(self.results[1]))

    def fit(self, pipeline: Pipeline) -> None:
        pipeline.step(self, self.primitive, kind="register", register=self.wred, access="count")


def _results(extern: ExternObject) -> tuple[int, int]:
    return extern.number("drop_value"), extern.number("no_drop_value")


@EXTERNS.register("Wred")
class Wred(ExternType):
    """Weighted random early detection.

    A cell keeps the average of its inputs in units of 2^-32, and drops packets once it is `enabled`.

    No packet is dropped below `least`, and every packet is dropped from `most` on. In between the drop probability
    grows to `probability`, in units of 2^-32.
    """

    operations = (ExecuteWred,)
    stateful = True
    bfrt = 0x87
    cell = (
        ("value", 64), ("since_ns", 64), ("constant_ps", 64), ("probability", 64), ("least", 32), ("most", 32),
        ("enabled", 8),
    )  # fmt: skip

    @staticmethod
    def cells(attributes: Mapping[str, int]) -> int:
        return attributes["size"]

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        at, value = cell_and_input(call, to)
        results = _results(extern)
        return to.externs.result(call, lambda place: ExecuteWred(extern.path, at, value, results, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        declare_cells(extern, "Wred", to.externs.size_argument(extern), to)

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        table = schema.table(self.bfrt, extern, "Wred", extern.number("size"))
        table.key(_INDEX, "$WRED_INDEX", value_type("uint32"))
        _publish_fields(table)


def _publish_fields(table: Table) -> None:
    """Add the fields of RED to the data of a table."""
    for number, name, kind in _FIELDS:
        table.singleton(data_field(number, f"$WRED_SPEC_{name}", value_type(kind)), mandatory=True)


@EXTERNS.register("DirectWred")
class DirectWred(ExternType):
    """Direct `Wred`, with a cell for each entry of its table."""

    stateful = direct = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"execute": self._execute}

    def _execute(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        entry, value = entry_and_input(extern, call, to)
        results = _results(extern)
        return to.externs.result(call, lambda place: ExecuteWred(extern.path, entry, value, results, place, call.pos))

    def declare(self, extern: ExternObject, to: Lowering) -> None:
        declare_direct_cells(extern, "Wred", to)

    def extend(self, extern: ExternObject, table: Table, schema: Schema) -> None:
        _publish_fields(table)
