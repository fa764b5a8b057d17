"""What a congestion-control protocol of one's own stands on; see docs/adding-a-protocol.md.

Importing it puts the compiled hosts in place, unless `P4CC_NATIVE=0` or plain Python is in use already.
"""

from harness.worlds.native_hosts import prefer_native_hosts

prefer_native_hosts()

from host_agents.cc.base import Feedback, NotificationPoint, Path, ReactionPoint  # noqa: E402
from host_agents.ranges import NOT_NEGATIVE, POSITIVE, SHARE  # noqa: E402
from host_agents.registry import MechanismInfo, ProtocolInfo, protocols, register  # noqa: E402

__all__ = [
    "NOT_NEGATIVE",
    "POSITIVE",
    "SHARE",
    "Feedback",
    "MechanismInfo",
    "NotificationPoint",
    "Path",
    "ProtocolInfo",
    "ReactionPoint",
    "protocols",
    "register",
]
