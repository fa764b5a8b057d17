"""The P4 programs of `p4src/`: one file a program, with its typed parameters and the table entries they become.

model = programs.parameters("ecn", {"kmin_bytes": 100_000})
entries = model.entries(switch_view)
"""

from harness.control.programs.base import Program, ProgramParameters, SwitchView, names, parameters, program
from harness.control.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    Range,
    TableEntry,
    Ternary,
)

from harness.control.programs import accurate as _accurate, ecn as _ecn, int as _int, trim as _trim  # isort: skip  # noqa: F401  # each registers itself

__all__ = [
    "Action",
    "CloneSession",
    "DefaultAction",
    "Entry",
    "Exact",
    "Lpm",
    "Match",
    "MulticastGroup",
    "Program",
    "ProgramParameters",
    "Range",
    "SwitchView",
    "TableEntry",
    "Ternary",
    "names",
    "parameters",
    "program",
]
