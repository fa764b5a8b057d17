"""`Hash`: a hash of fields, optionally mapped to a range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.psa.algorithms import ALGORITHMS
from p4switch.architectures.v1model.externs.hash import Hash as HashOperation
from p4switch.architectures.v1model.externs.hash import calculation
from p4switch.compiler import types

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast

_LARGEST_BITS = 63  # largest width of a modulus that a primitive takes


@EXTERNS.register("Hash")
class Hash(ExternType):
    operations = (HashOperation,)
    in_parsers = True

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"get_hash": self._get_hash}

    def _get_hash(self, call: ast.Call, extern: ExternObject, to: Lowering) -> Value | None:
        args = to.externs.call_arguments(call)
        algorithm = ALGORITHMS[to.externs.enum_argument(extern, "algo")]
        if len(args) > 1:
            hashing = calculation(algorithm, args[1], call, to)
            low, size = to.externs.scalar_argument(call, 0, args[0]), to.externs.scalar_argument(call, 2, args[2])
        else:
            hashing = calculation(algorithm, args[0], call, to)
            bits = min(types.width_of(to.type_of(call)) or 1, _LARGEST_BITS)
            low, size = ir.Const(0, ir.Bits(64)), ir.Const(1 << bits, ir.Bits(64))
        return to.externs.result(call, lambda place: HashOperation(place, low, hashing, size, call.pos))
