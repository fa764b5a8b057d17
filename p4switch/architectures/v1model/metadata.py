"""Intrinsic metadata of v1model that its externs and the packet path depend on."""

from __future__ import annotations

from p4switch import ir
from p4switch.architectures.ports import WIDTH_BITS

STANDARD = "standard_metadata"
EGRESS_SPEC = ir.FieldRef(STANDARD, "egress_spec", ir.Bits(WIDTH_BITS))
MCAST_GRP = ir.FieldRef(STANDARD, "mcast_grp", ir.Bits(16))
PACKET_LENGTH = ir.FieldRef(STANDARD, "packet_length", ir.Bits(32))
