"""What the control plane of a P4 program of one's own stands on: what it is told, and the entries it answers with."""

from harness.control.programs import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MulticastGroup,
    ProgramParameters,
    Range,
    SwitchView,
    TableEntry,
    Ternary,
    names,
    parameters,
)
from harness.control.programs.base import register

__all__ = [
    "Action",
    "CloneSession",
    "DefaultAction",
    "Entry",
    "Exact",
    "Lpm",
    "Match",
    "MulticastGroup",
    "ProgramParameters",
    "Range",
    "SwitchView",
    "TableEntry",
    "Ternary",
    "names",
    "parameters",
    "register",
]
