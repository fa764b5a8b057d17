"""`packet_out`: the packet that a deparser appends headers to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.core import EXTERNS
from p4switch.architectures.extern import ExternType, Method
from p4switch.compiler.midend.values import StackValue, StructValue, UnionValue

if TYPE_CHECKING:
    from p4switch.tool_types import ExternObject, Lowering, Value, ast


@EXTERNS.register("packet_out")
class PacketOut(ExternType):
    @property
    def methods(self) -> Mapping[str, Method]:
        return {"emit": _emit}


def _emit(call: ast.Call, packet: ExternObject, to: Lowering) -> None:
    _emit_all(to.externs.call_arguments(call)[0], call, to)


def _emit_all(value: Value, call: ast.Call, to: Lowering) -> None:
    if isinstance(value, ir.HeaderRef) and not value.stack:
        to.package.emit_header(value)
    elif isinstance(value, StructValue):
        for inner in value.fields.values():
            _emit_all(inner, call, to)
    elif isinstance(value, StackValue):
        for element in value.elements:
            _emit_all(element, call, to)
    elif isinstance(value, UnionValue) and value.ref.name:
        for member in value.members.values():
            _emit_all(member, call, to)
    else:
        raise to.error(call, "only headers, stacks, unions and structs of them can be emitted on this target")
