"""`Random`: a random number between two bounds, both included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs.random import Random as Draw

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast


@EXTERNS.register("Random")
class Random(ExternType):
    operations = (Draw,)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"read": self._read}

    def _read(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        low, high = extern.args["min"], extern.args["max"]
        assert isinstance(low, ir.Const)
        assert isinstance(high, ir.Const)
        if low.value > high.value:
            given = f"the range {low.value} to {high.value}"
            raise to.error(extern.node, f"{given} is empty: its low end is above its high end")
        return to.externs.result(call, lambda place: Draw(place, low, high, call.pos))
