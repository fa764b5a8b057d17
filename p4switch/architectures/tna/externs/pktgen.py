"""`Pktgen`: a trigger of the packet generator, which puts 16 bytes of the packet into each generated packet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS, PKTGEN_CHUNKS
from p4switch.architectures.tna.externs.sent import put_data

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, ast


@EXTERNS.register("Pktgen")
class Pktgen(ExternType):
    @property
    def methods(self) -> Mapping[str, Method]:
        return {"emit": self._emit}

    def _emit(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.externs.only_in(call, "ingress_deparser")
        put_data("ig_pktgen", to.externs.call_arguments(call), 64 * PKTGEN_CHUNKS, call, to)
