"""`Resubmit`: the original packet enters the ingress parser again, with data in place of the port metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS
from p4switch.architectures.tna.externs.sent import put_data
from p4switch.architectures.tna.package import TnaSwitch

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, ast


@EXTERNS.register("Resubmit")
class Resubmit(ExternType):
    @property
    def methods(self) -> Mapping[str, Method]:
        return {"emit": self._emit}

    def _emit(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.externs.only_in(call, "ingress_deparser")
        assert isinstance(to.package, TnaSwitch)
        put_data("ig_resubmit", to.externs.call_arguments(call), to.package.resubmit_bits, call, to)
