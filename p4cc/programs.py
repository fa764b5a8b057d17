"""Public interface for the control plane of a P4 program: its inputs and the entries that it returns."""

import p4cc._hosts  # noqa: F401  # isort: split
from control_plane.programs import ProgramParameters, SwitchView, names, parameters
from control_plane.programs.base import PortView, register
from control_plane.programs.entries import (
    Action,
    CloneSession,
    DefaultAction,
    Entry,
    Exact,
    Lpm,
    Match,
    MeterLimit,
    MulticastGroup,
    PathCell,
    PortGroup,
    Range,
    TableEntry,
    Ternary,
)
from control_plane.programs.forwarding import forwarding_entries
from topologies.routing import Route

__all__ = [
    "Action",
    "CloneSession",
    "DefaultAction",
    "Entry",
    "Exact",
    "Lpm",
    "Match",
    "MeterLimit",
    "MulticastGroup",
    "PathCell",
    "PortGroup",
    "PortView",
    "ProgramParameters",
    "Range",
    "Route",
    "SwitchView",
    "TableEntry",
    "Ternary",
    "forwarding_entries",
    "names",
    "parameters",
    "register",
]
