"""Shared parts of the sending halves of a NIC's queue pairs, created on demand."""

from __future__ import annotations

from host_agents import wire
from host_agents.cc.base import Host, NotificationPoint, Path
from host_agents.config import SCOPE_PAIR, NicConfig
from host_agents.frames import FrameLengths
from host_agents.limiter import RateLimiter
from host_agents.outlet import Group
from host_agents.port import Port
from host_agents.registry import LoadBalancing, Protocol
from host_agents.transport import TransportConfig


class Sending:
    """Shared configuration of queue pairs with the same protocol, load balancer and priority.

    Each has a reaction point and a limiter of its own, or all share the reaction point of the group
    `shared` and, with the scope `pair`, its limiter.
    """

    def __init__(
        self,
        host: Host,
        port: Port,
        path: Path,
        kind: int,
        config: NicConfig,
        protocol: Protocol,
        load_balancing: LoadBalancing,
        data_priority: int,
        slack_ns: float,
        scope: str,
        shared: Group | None,
    ) -> None:
        self.path = path
        self.kind = kind  # kind of the peers' links; -1 for groups, and if all links are alike
        self.config = TransportConfig(config)
        self.protocol = protocol
        self.load_balancing = load_balancing
        self.data_priority = data_priority
        self.scope = scope
        self.shared = shared
        self.telemetry = protocol.info.telemetry
        self.lengths = FrameLengths(protocol.info.lengths, protocol.info.telemetry)
        # Notification point of all these queue pairs; None if each has its own, or before the first one.
        self.silent: NotificationPoint | None = None
        self.ecn = wire.ECT0 if protocol.info.ecn_capable else wire.NOT_ECT  # of data
        # Whether a queue pair that is done frees its sending half, through which no reaction point
        # sends for other queue pairs.
        self.retires = shared is None and protocol.retires
        self._host = host
        self._port = port
        self._slack_ns = slack_ns

    def group(self) -> Group:
        """Return the group that a queue pair joins: the shared one, or a new one."""
        if self.shared is not None:
            return self.shared
        return Group(self.protocol.reaction_point(self.path), self._host, self._port, False)

    def limiter(self, group: Group) -> RateLimiter:
        """Return the limiter of a queue pair of `group`: the shared one, or a new one."""
        limiter = group.limiter
        if limiter is None:
            limiter = RateLimiter(self._port, group.point, self.data_priority, self._slack_ns)
            if self.scope == SCOPE_PAIR:
                group.limiter = limiter
        return limiter
