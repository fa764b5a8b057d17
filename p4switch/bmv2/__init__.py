"""BMv2 JSON, p4c's or that of the built-in compiler, checked and with its code as nodes of `p4switch.ir`.

    document = read(json)

`schema` has its structure, `Document` also its code: actions, parser states, conditions, calculations.
"""

from p4switch.bmv2.document import Checksum, Document, read
from p4switch.bmv2.places import Place
from p4switch.bmv2.schema import JsonError

__all__ = ["Checksum", "Document", "JsonError", "Place", "read"]
