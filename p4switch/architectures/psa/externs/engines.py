"""`PacketReplicationEngine` and `BufferingQueueingEngine`, which have no methods."""

from __future__ import annotations

from p4switch.architectures.extern import ExternType
from p4switch.architectures.psa import EXTERNS


@EXTERNS.register("PacketReplicationEngine")
@EXTERNS.register("BufferingQueueingEngine")
class Engine(ExternType):
    pass
