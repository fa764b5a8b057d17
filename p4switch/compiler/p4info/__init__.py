"""P4Info from a lowered program (P4Runtime specification 1.4, section 6)."""

from p4switch.compiler.p4info.build import build_p4info

__all__ = ["build_p4info"]
