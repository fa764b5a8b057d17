"""The largest objects that the target has."""

MAX_STACK = 255
MAX_CELLS = 1 << 28
MAX_SIZE = (1 << 31) - 1
"""Of header stacks; of counters, meters and registers; of tables, profiles and value sets: what the engine loads."""
