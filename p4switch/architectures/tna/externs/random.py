"""`Random`: a uniformly distributed number of W bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.v1model.externs.random import Random as Draw
from p4switch.compiler import types
from p4switch.compiler.midend import fold

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast

_LARGEST_BITS = 64


@EXTERNS.register("Random")
class Random(ExternType):
    operations = (Draw,)

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"get": self._get}

    def _get(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        width = types.width_of(to.type_of(call)) or 1
        if width > _LARGEST_BITS:
            raise to.error(call, f"a random number of {width} bits is not supported, at most {_LARGEST_BITS}")
        low, high = fold.const(0, ir.Bits(width)), fold.const((1 << width) - 1, ir.Bits(width))
        return to.externs.result(call, lambda place: Draw(place, low, high, call.pos))
