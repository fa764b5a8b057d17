"""Reader that turns BMv2 JSON, written by p4c or the built-in compiler, into programs of `p4switch.ir`.

    program = read(json)

`schema` checks the structure of the JSON, and `program` creates the nodes.
"""

from p4switch.bmv2.program import read, stands_outside
from p4switch.bmv2.schema import JsonError

__all__ = ["JsonError", "read", "stands_outside"]
