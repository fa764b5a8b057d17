"""`Atcam`, `Alpm`, `IdleTimeout`: how a chip is to lay tables out, which makes no difference to what they match."""

from __future__ import annotations

from p4switch.architectures.extern import ExternType
from p4switch.architectures.tna import EXTERNS


@EXTERNS.register("Atcam")
@EXTERNS.register("Alpm")
@EXTERNS.register("IdleTimeout")
class Layout(ExternType):
    """A table's property."""
