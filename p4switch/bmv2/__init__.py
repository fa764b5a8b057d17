"""BMv2 JSON, p4c's or that of the built-in compiler, as programs of `p4switch.ir`.

    program = read(json)

`schema` checks its structure, `program` makes the nodes.
"""

from p4switch.bmv2.program import read, stands_outside
from p4switch.bmv2.schema import JsonError

__all__ = ["JsonError", "read", "stands_outside"]
