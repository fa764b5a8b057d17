"""RCP (Dukkipati et al., "Processor Sharing Flows in the Internet", IWQoS 2005): one rate for all flows of a link.

In the paper each data packet has RCP's header. Here the header is a packet of its own, the rate
packet, which a flow sends several times in a base RTT. Every link on the path lowers its rate to
the link's own (p4src/rcp.p4). The destination sends it back, and the source sets its rate by it. A
flow that starts, or continues after idleness, sends no data before its first response. Frames:
docs/wire-formats.md, "RCP".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import UNLIMITED, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.packets import TO_NOTIFICATION_POINT, Field, Header, Packet
from host_agents.ranges import POSITIVE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

RATE: Final = Packet(
    "rate",
    0xED,
    (
        Header(
            "rcp",
            (
                Field("response", 1, "on its way back to the source"),
                Field("reserved", 31),
                Field("rate", 32, "the least rate of the links passed so far and the requested rate", unit="kb/s"),
            ),
            "Rate packet of RCP.",
        ),
    ),
    to=TO_NOTIFICATION_POINT,
    reply="response",
    meaning="requests or returns the rate of the path",
)
_RATE: Final = RATE.place("rate")


@dataclass(frozen=True)
class RcpParameters:
    """Parameters of RCP's hosts; alpha and beta are the program's (control_plane/programs/rcp.py)."""

    ask_base_rtts: float = field(default=0.25, metadata=POSITIVE)  # time between two rate packets
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)  # the smallest rate


class Rcp(ReactionPoint):
    def __init__(self, parameters: RcpParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.sequence = 0  # sequence number of the last rate packet
        self._obeyed = 0  # sequence number of the newest response that was used
        self._heard_ns = 0  # time of the last response, of the start of a burst, or of a time-out
        self._busy = 0  # number of queue pairs with data to send or unacknowledged data
        self._ask_ns = max(1, round(parameters.ask_base_rtts * path.base_rtt_ns))

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._timer = self.timer()

    def on_start(self, now_ns: int) -> None:
        self._busy += 1
        if self._busy == 1:
            self.set_window(0.0)
            self._obeyed = self.sequence
            self._heard_ns = now_ns
            self._ask(now_ns)

    def on_idle(self, now_ns: int) -> None:
        self._busy -= 1
        if self._busy == 0:
            self._timer.cancel()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self._heard_ns + self.host.rto_ns <= now_ns:
            self._heard_ns = now_ns
            if not self.outlet.may_retry(now_ns):
                return
        self._ask(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        newer = (wire.psn(frame) - self._obeyed) & wire.PSN_MASK
        if not 0 < newer <= (self.sequence - self._obeyed) & wire.PSN_MASK:
            return  # a newer one has overtaken it, or it belongs to an earlier burst or to a packet that was never sent
        self._obeyed = wire.psn(frame)
        self._heard_ns = now_ns
        rate_bps = max(float(_RATE.get(frame, offset)) * 1e3, self.parameters.min_rate_bps)
        self.set_rate(min(rate_bps, self.path.line_rate_bps))
        self.set_window(UNLIMITED)

    def _ask(self, now_ns: int) -> None:
        self.sequence = (self.sequence + 1) & wire.PSN_MASK
        body = RATE.encode(rate=int(self.path.line_rate_bps / 1e3))
        self.outlet.send_control(RATE, body, psn=self.sequence, entropy=self.outlet.control_entropy(now_ns))
        self._timer.arm(now_ns + self._ask_ns)


class RcpReceiver(NotificationPoint):
    """Destination, which sends rate packets back to their source."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        body = RATE.encode(response=1, rate=_RATE.get(frame, offset))
        self.outlet.send_control(RATE, body, psn=wire.psn(frame), entropy=entropy)


def reaction_point(parameters: RcpParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Rcp(parameters, path)


def notification_point(parameters: RcpParameters, path: Path) -> NotificationPoint:
    return RcpReceiver(path)


register(
    ProtocolInfo(
        name="rcp",
        summary="every link gives all its flows one rate, from its traffic and its queue",
        source="Dukkipati et al., Processor Sharing Flows in the Internet, IWQoS 2005",
        program="rcp",
        parameters=RcpParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(RATE,),
        own_packets=0.5,  # rate packets, in both directions
        single_path=True,
        held_back_by="grants",
    )
)
