"""What both halves of a queue pair stand on."""

from __future__ import annotations

from host_agents.cc.base import NotificationPoint
from host_agents.config import NicConfig
from host_agents.frames import Frames
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.messages import Connection
from host_agents.port import Port


class Transport:
    """One queue pair's parts; the reaction point is its limiter's."""

    def __init__(
        self,
        connection: Connection,
        port: Port,
        frames: Frames,
        limiter: RateLimiter,
        load_balancer: LoadBalancer,
        notification_point: NotificationPoint,
        config: NicConfig,
        first_psn: int,
    ) -> None:
        self.connection = connection
        self.port = port
        self.frames = frames
        self.limiter = limiter
        self.load_balancer = load_balancer
        self.notification_point = notification_point
        self.config = config
        self.first_psn = first_psn  # of the first packet, in each direction
