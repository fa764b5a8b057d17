"""Public interface for load balancers of the hosts; see docs/adding-a-protocol.md.

Importing it puts the compiled hosts in place, as `p4cc.cc` does.
"""

import p4cc._hosts  # noqa: F401  # isort: split
from host_agents.cc.base import Feedback, Path
from host_agents.lb.base import LoadBalancer
from host_agents.ranges import NOT_NEGATIVE, POSITIVE, SHARE
from host_agents.registry import LoadBalancerInfo, load_balancers, register

__all__ = [
    "NOT_NEGATIVE",
    "POSITIVE",
    "SHARE",
    "Feedback",
    "LoadBalancer",
    "LoadBalancerInfo",
    "Path",
    "load_balancers",
    "register",
]
