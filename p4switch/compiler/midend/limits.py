"""Size limits of the target's objects."""

MAX_STACK = 255
MAX_CELLS = 1 << 28
MAX_SIZE = (1 << 31) - 1
"""Largest size that the engine accepts for header stacks, counters, meters, registers, tables, profiles, value sets."""
