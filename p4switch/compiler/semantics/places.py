"""Places of code, which determine the calls that are allowed in them, and the largest numbers in P4Info."""

from __future__ import annotations

import enum


class Place(enum.Enum):
    """Place of the code being checked, which determines the calls that are allowed in it."""

    TOP = "the top level"
    PARSER = "a parser state"
    PARSER_LOCAL = "the declarations of a parser"
    CONTROL = "the apply block of a control"
    CONTROL_LOCAL = "the declarations of a control"
    ACTION = "an action"
    FUNCTION = "a function"
    METHOD = "a method"
    TABLE = "a table"


MAX_INT32 = (1 << 31) - 1
MAX_INT64 = (1 << 63) - 1
"""Largest number in P4Info."""
