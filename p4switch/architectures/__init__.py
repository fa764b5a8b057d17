"""Architectures: what blocks a package has, what surrounds them, and the externs that they may use."""
