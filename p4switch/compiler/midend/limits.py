"""Size limits of the target's objects."""

MAX_STACK = 255
MAX_CELLS = 1 << 28
MAX_SIZE = (1 << 31) - 1
"""Largest size of header stacks, counters, meters, registers, tables, profiles and value sets in the engine."""
