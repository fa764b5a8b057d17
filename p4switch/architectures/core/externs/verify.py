"""`verify`: a condition without which the parser ends with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.core import EXTERNS
from p4switch.architectures.extern import ExternFunction
from p4switch.compiler.midend.values import EXPRS

if TYPE_CHECKING:
    from p4switch.tool_types import Lowering, Value, ast


@EXTERNS.register("verify")
class Verify(ExternFunction):
    def lower(self, call: ast.Call, to: Lowering) -> Value | None:
        if not to.site.parses:
            raise to.error(call, "'verify' can only be called in a parser")
        condition, error = to.externs.call_arguments(call)
        assert isinstance(condition, EXPRS)
        assert isinstance(error, EXPRS)
        to.emit(ir.Verify(condition, error, call.pos))
        return None
