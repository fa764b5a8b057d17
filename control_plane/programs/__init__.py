"""P4 programs of `p4src/`: one file for each, with its typed parameters and table entries.

model = programs.parameters("ecn", {"kmin_bytes": 100_000})
entries = model.entries(switch_view)

The classes of entries are in `entries`. Programs outside p4cc import `p4cc.programs`.
"""

from control_plane.programs.base import ProgramParameters, SwitchView, names
from control_plane.programs.catalog import Program, parameters, program

__all__ = ["Program", "ProgramParameters", "SwitchView", "names", "parameters", "program"]
