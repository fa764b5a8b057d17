"""Architectures of P4 programs: packages with their blocks, the code around the blocks, and externs."""
