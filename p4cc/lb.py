"""What a load balancer of one's own, at the hosts, stands on; see docs/adding-a-protocol.md.

Importing it puts the compiled hosts in place, as `p4cc.cc` does.
"""

from harness.worlds.native_hosts import prefer_native_hosts

prefer_native_hosts()

from host_agents.cc.base import Feedback, Path  # noqa: E402
from host_agents.lb.base import LoadBalancer  # noqa: E402
from host_agents.ranges import NOT_NEGATIVE, POSITIVE, SHARE  # noqa: E402
from host_agents.registry import LoadBalancerInfo, load_balancers, register  # noqa: E402

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
