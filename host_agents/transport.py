"""Parts of a queue pair that are passed to both its halves."""

from __future__ import annotations

from host_agents.cc.base import NotificationPoint
from host_agents.config import NicConfig
from host_agents.frames import Frames
from host_agents.messages import Connection
from host_agents.port import Port


class Transport:
    """Parts of one queue pair that are passed to both halves; each half keeps those that it uses."""

    def __init__(
        self,
        connection: Connection,
        port: Port,
        frames: Frames,
        notification_point: NotificationPoint,
        config: NicConfig,
        first_psn: int,
    ) -> None:
        self.connection = connection
        self.port = port
        self.frames = frames
        self.notification_point = notification_point
        self.config = config
        self.first_psn = first_psn  # PSN of the first packet, in each direction
