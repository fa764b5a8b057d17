"""`Atcam`, `Alpm`, `IdleTimeout`: table layouts on a chip, which do not affect what the tables match."""

from __future__ import annotations

from p4switch.architectures.extern import ExternType
from p4switch.architectures.tna import EXTERNS


@EXTERNS.register("Atcam")
@EXTERNS.register("Alpm")
@EXTERNS.register("IdleTimeout")
class Layout(ExternType):
    """Layout of a table, given as a table property."""
