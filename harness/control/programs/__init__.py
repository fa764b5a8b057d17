"""The P4 programs of `p4src/`: one file a program, with its typed parameters and the table entries they become.

model = programs.parameters("ecn", {"kmin_bytes": 100_000})
entries = model.entries(switch_view)

Entries are of `entries`; `p4cc.programs` is what a program of one's own imports.
"""

from harness.control.programs.base import ProgramParameters, SwitchView, names
from harness.control.programs.catalog import Program, parameters, program

__all__ = ["Program", "ProgramParameters", "SwitchView", "names", "parameters", "program"]
