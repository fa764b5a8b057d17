"""The intrinsic metadata of v1model that its externs and the packet's way depend on."""

from __future__ import annotations

from p4switch import ir

STANDARD = "standard_metadata"
DROP_PORT = 511
"""The port that `mark_to_drop` chooses: nothing is sent there."""

EGRESS_SPEC = ir.FieldRef(STANDARD, "egress_spec", ir.Bits(9))
MCAST_GRP = ir.FieldRef(STANDARD, "mcast_grp", ir.Bits(16))
