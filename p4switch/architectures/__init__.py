"""Architectures of P4 programs: the blocks of a package, the code that surrounds them, and the externs they may use."""
