"""`Mirror`: a copy of the packet, with a header in front of it, that is sent to a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.tna import EXTERNS, MIRROR_CHUNKS
from p4switch.architectures.tna.externs.sent import put, put_data
from p4switch.compiler.midend.values import EXPRS

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, ast

_SESSION = ir.Bits(16)


@EXTERNS.register("Mirror")
class Mirror(ExternType):
    @property
    def methods(self) -> Mapping[str, Method]:
        return {"emit": self._emit}

    def _emit(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.externs.only_in(call, "ingress_deparser", "egress_deparser")
        session, *data = to.externs.call_arguments(call)
        assert isinstance(session, EXPRS)
        instance = "ig_mirror" if to.site.name == "ingress_deparser" else "eg_mirror"
        put(instance, "session", session, _SESSION, call, to)
        put_data(instance, data, 64 * MIRROR_CHUNKS, call, to)
