"""Lowered programs for BMv2: storage is header instances, numbers have no width, each node has its name."""

from p4switch.compiler.bmv2.program import fitted

__all__ = ["fitted"]
