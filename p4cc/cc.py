"""Public interface for congestion-control protocols; see docs/adding-a-protocol.md.

Importing it puts the compiled hosts in place, unless `P4CC_NATIVE=0` or plain Python is in use already.
"""

import p4cc._hosts  # noqa: F401  # isort: split
from host_agents.cc.base import (
    Feedback,
    NotificationOutlet,
    NotificationPoint,
    Outlet,
    Path,
    ReactionOutlet,
    ReactionPoint,
    Traffic,
    Trimmed,
)
from host_agents.ranges import NOT_NEGATIVE, POSITIVE, SHARE
from host_agents.registry import MechanismInfo, ProtocolInfo, protocols, register
from p4cc._telemetry import LinkHistory, LinkReport, LinkSample, link_reports

__all__ = [
    "NOT_NEGATIVE",
    "POSITIVE",
    "SHARE",
    "Feedback",
    "LinkHistory",
    "LinkReport",
    "LinkSample",
    "MechanismInfo",
    "NotificationOutlet",
    "NotificationPoint",
    "Outlet",
    "Path",
    "ProtocolInfo",
    "ReactionOutlet",
    "ReactionPoint",
    "Traffic",
    "Trimmed",
    "link_reports",
    "protocols",
    "register",
]
