"""Conversion of lowered programs to BMv2's form.

Storage is header instances, numbers have no width, and each node has a name.
"""

from p4switch.compiler.bmv2.program import fitted

__all__ = ["fitted"]
