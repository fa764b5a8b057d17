"""Parts of a queue pair that are passed to both its halves."""

from __future__ import annotations

from host_agents.cc.base import NotificationPoint
from host_agents.config import NicConfig
from host_agents.frames import Frames
from host_agents.messages import Connection
from host_agents.nic_tables import SleekConfig
from host_agents.port import Port


class TransportConfig:
    """Settings of both halves of queue pairs from the NIC's configuration, adapted to their protocol.

    They are read once for many queue pairs, because `NicConfig` is not compiled.
    """

    def __init__(self, config: NicConfig) -> None:
        self.reliability: str = config.reliability
        self.mtu_bytes: int = config.mtu_bytes
        self.line_rate_bps: int = config.line_rate_bps
        self.base_rtt_ns: int = config.base_rtt_ns
        self.rto_ns: int = config.rto_ns
        self.retry_count: int = config.retry_count
        self.ack_every_packets: int = config.ack_every_packets
        self.ack_every_bytes: int = config.ack_every_bytes
        self.ack_wait_ns: int | None = config.ack_wait_ns
        self.answers_early: bool = config.answers_early
        self.loss_packets: int = config.loss_packets
        self.receive_window_packets: int = config.receive_window_packets
        self.last_hop_dscp: int = config.last_hop_dscp
        self.stamps: bool = config.stamps
        self.sleek: SleekConfig | None = config.sleek if config.sleek.windows > 0.0 else None


class Transport:
    """Parts of one queue pair that are passed to both halves; each half keeps those that it uses."""

    def __init__(
        self,
        connection: Connection,
        port: Port,
        frames: Frames,
        notification_point: NotificationPoint,
        config: TransportConfig,
        first_psn: int,
    ) -> None:
        self.connection = connection
        self.port = port
        self.frames = frames
        self.notification_point = notification_point
        self.config = config
        self.first_psn = first_psn  # PSN of the first packet, in each direction
