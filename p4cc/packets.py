"""Public interface for the declaration of control packets; see docs/adding-a-protocol.md."""

import p4cc._hosts  # noqa: F401  # isort: split
from host_agents.packets import (
    DECIMAL,
    HEXADECIMAL,
    TO_NOTIFICATION_POINT,
    TO_REACTION_POINT,
    Field,
    Header,
    Packet,
    Records,
)
from host_agents.template import Wrapper

__all__ = [
    "DECIMAL",
    "HEXADECIMAL",
    "TO_NOTIFICATION_POINT",
    "TO_REACTION_POINT",
    "Field",
    "Header",
    "Packet",
    "Records",
    "Wrapper",
]
