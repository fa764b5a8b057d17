"""The largest objects that the target has."""

MAX_STACK = 255
MAX_CELLS = 1 << 28
MAX_SIZE = (1 << 31) - 1
"""Sizes that the engine loads: header stacks; counters, meters, registers; tables, profiles, value sets."""
