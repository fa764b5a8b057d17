"""`Digest`: values of the packet that are sent to the control plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from p4switch import ir
from p4switch.architectures.extern import ExternType, Method
from p4switch.architectures.psa import EXTERNS
from p4switch.architectures.v1model.externs.digest import Digest as GenerateDigest
from p4switch.architectures.v1model.externs.digest import learn_list

if TYPE_CHECKING:
    from p4switch.tool_types import Builder, ExternObject, Lowering, ast


@EXTERNS.register("Digest")
class Digest(ExternType):
    operations = (GenerateDigest,)
    p4info = "DIGEST"

    @property
    def methods(self) -> Mapping[str, Method]:
        return {"pack": self._pack}

    def _pack(self, call: ast.Call, extern: ExternObject, to: Lowering) -> None:
        to.externs.only_in(call, "ingress_deparser")
        number = learn_list(extern.path, extern.type_args[0], to.externs.call_arguments(call)[0], call, to)
        to.emit(GenerateDigest(ir.Const(0, ir.Bits(32)), number, call.pos))

    def describe(self, extern: ExternObject, builder: Builder) -> None:
        message = builder.info.digests.add()
        builder.object(message, extern)
        message.type_spec.CopyFrom(builder.specs.convert(extern.type_args[0]))
