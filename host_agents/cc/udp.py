"""UDP at a fixed rate: cross traffic that does not react to congestion, continuous or on and off.

Packets are sent once and are not ECN-capable (`host_agents.datagram`). Their headers are those of RoCEv2, which is UDP
itself, and what follows UDP's own is part of the payload (`host_agents.lengths`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from host_agents.cc.base import Path, ReactionOutlet, ReactionPoint
from host_agents.config import DATAGRAM, NicConfig
from host_agents.lengths import UDP
from host_agents.nic_tables import SleekConfig
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer


@dataclass(frozen=True)
class UdpParameters:
    rate_bps: float = 0.0  # charged rate while it sends; 0 or more than the link's rate: the link's rate
    on_ns: int = 0  # length of sending periods, from the start of a flow on; 0: continuous
    off_ns: int = 0  # length of silent periods
    exponential: bool = False  # `on_ns` and `off_ns` are means of exponential times


class Udp(ReactionPoint):
    """Reaction point with a constant rate, and with periods without sending."""

    def __init__(self, parameters: UdpParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        if parameters.rate_bps > 0.0:
            self.rate_bps = min(parameters.rate_bps, path.line_rate_bps)
        self._silent = False

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._switch = self.timer()

    def may_send(self, inflight_bytes: int) -> bool:
        return not self._silent

    def on_start(self, now_ns: int) -> None:
        p = self.parameters
        if p.on_ns > 0 and p.off_ns > 0:
            self._silent = False
            self._switch.arm(now_ns + self._time_ns(p.on_ns))

    def on_idle(self, now_ns: int) -> None:
        self._silent = False
        self._switch.cancel()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self._silent = not self._silent
        p = self.parameters
        timer.arm(now_ns + self._time_ns(p.off_ns if self._silent else p.on_ns))
        if not self._silent:
            self.outlet.window_opened()

    def _time_ns(self, mean_ns: int) -> int:
        if not self.parameters.exponential:
            return mean_ns
        return max(1, round(self.host.random.expovariate(1.0 / mean_ns)))


def nic(parameters: UdpParameters, config: NicConfig) -> NicConfig:
    """Return the NIC's settings for UDP: only the last packet of a message requests an answer."""
    return replace(config, reliability=DATAGRAM, ack_every_packets=1 << 20, ack_every_bytes=0, sleek=SleekConfig())


def reaction_point(parameters: UdpParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Udp(parameters, path)


register(
    ProtocolInfo(
        name="udp",
        summary="UDP at a constant or on-off rate: cross traffic without congestion control",
        source="RFC 768",
        program="ecn",
        parameters=UdpParameters,
        reaction_point=reaction_point,
        nic=nic,
        lengths=UDP,
        ecn_capable=False,
        held_back_by="nothing",
    )
)
