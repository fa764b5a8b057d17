"""Kinds of attack: each file has one subclass of `Attack`, which is found by its place in this package."""
