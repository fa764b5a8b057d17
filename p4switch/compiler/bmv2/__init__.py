"""Lowered programs for BMv2: storage is header instances, numbers have no width, each node has its name."""

from p4switch.compiler.bmv2.program import for_bmv2

__all__ = ["for_bmv2"]
