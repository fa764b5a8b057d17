"""`Digest`: values of the packet that are sent to the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4switch.architectures.psa.externs import digest
from p4switch.architectures.tna import EXTERNS

if TYPE_CHECKING:
    from p4switch.bfrt.schema import Schema
    from p4switch.compiler.midend.elaborate import ExternObject


@EXTERNS.register("Digest")
class Digest(digest.Digest):
    """Digest as in PSA. It is sent if the program has written `digest_type`."""

    bfrt = 0x8E

    def publish(self, extern: ExternObject, schema: Schema) -> None:
        if len(schema.calls(extern)) == 1:
            schema.learn_filters.append(
                {
                    "name": schema.name(extern.path),
                    "id": schema.id(self.bfrt, extern.path),
                    "annotations": schema.annotations(extern.annotations),
                    "fields": schema.fields(extern.type_args[0]),
                }
            )
