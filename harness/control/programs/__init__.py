"""The P4 programs of `p4src/`: one file a program, with its typed parameters and the table entries they become.

model = programs.parameters("ecn", {"kmin_bytes": 100_000})
entries = model.entries(switch_view)
"""

from harness.control.programs.base import ProgramParameters, SwitchView, names
from harness.control.programs.catalog import Program, parameters, program
from harness.control.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    EntryFile,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    PortGroup,
    Range,
    TableEntry,
    Ternary,
)

__all__ = [
    "Action",
    "CloneSession",
    "DefaultAction",
    "Entry",
    "EntryFile",
    "Exact",
    "Lpm",
    "Match",
    "MulticastGroup",
    "PortGroup",
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
