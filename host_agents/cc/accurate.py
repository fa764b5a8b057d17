"""ACCurate (Karampelas et al.): switches compute max-min fair rates, flows report theirs once a period.

The flow's heartbeat is the flow rate packet (FRP). Contention points (p4src/accurate.p4) lower its
current rate CR and its desired rate DR to their fair shares. The destination sends it back, and the
source sets its rate limiter by the response (sections II and IV-B). Frames: docs/wire-formats.md,
"Flow rate packet". Rates on the wire are in kb/s.

The path of a flow must not change, so it needs a load balancer that keeps a flow's entropy.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.packets import TO_NOTIFICATION_POINT, Field, Header, Packet
from host_agents.ranges import POSITIVE, SHARE_OR_NONE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

# Kinds of an FRP.
PERIODIC: Final = 0
INIT: Final = 1
STOP: Final = 2

FRP_HEADER: Final = Header(
    "frp",
    (
        Field("kind", 2, values={PERIODIC: "periodic", INIT: "init", STOP: "stop"}),
        Field("response", 1, "on its way back to the source"),
        Field("short_circuit", 1, "a response that a contention point sent, not the destination"),
        Field("counted", 1, "of a flow-stop: the flow has sent a periodic FRP or a flow-init in this period"),
        Field("reserved", 3),
        Field("source_qp", 24, "the sender's own queue pair, to which a response goes"),
        Field("current_rate", 32, "CR", unit="kb/s"),
        Field("desired_rate", 32, "DR", unit="kb/s"),
    ),
    "Flow rate packet of ACCurate.",
)
FRP: Final = Packet(
    "FRP",
    0xE8,
    (FRP_HEADER,),
    to=TO_NOTIFICATION_POINT,
    reply="response",
    meaning="flow rate packet: requests or returns the flow's fair share",
)


@dataclass(frozen=True)
class AccurateParameters:
    """The paper's constants (sections III and V).

    The switches' constants are parameters of the program (control_plane/programs).
    """

    period_ns: int = field(default=20_000, metadata=POSITIVE)  # RRP, the rate re-evaluation period
    # Position of the FRP within a period. At a quarter, nodes whose clocks differ by 2 us agree on
    # the period.
    send_at: float = field(default=0.25, metadata=SHARE_OR_NONE)
    # Largest error of a node's clock, either way; it is drawn for each node.
    clock_error_ns: int = 0
    # A burst of fewer bytes sends no FRPs, and leaves at line rate (section V).
    exempt_bytes: int = 4_096
    desired_rate_bps: float = 0.0  # the desired rate; 0: line rate
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)  # the smallest rate
    # Off: the CPs notice a flow's end only by its missing FRPs.
    flow_stop: bool = True


class Accurate(ReactionPoint):
    """Reaction point of ACCurate.

    It is *active* from a flow-init to a flow-stop, and sends one FRP per period in between.
    """

    def __init__(self, parameters: AccurateParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        wished = parameters.desired_rate_bps if parameters.desired_rate_bps > 0.0 else path.line_rate_bps
        self.wished_bps = min(wished, path.line_rate_bps)
        self.active = False
        self.sequence = 0  # sequence number of the last FRP that was sent
        self._obeyed = 0  # sequence number of the newest FRP whose response was obeyed
        # Limit of an exempt burst, including all headers; exempt bursts are smaller.
        packets = -(-parameters.exempt_bytes // path.mtu_bytes)
        self._exempt_bytes = packets * (path.wire_bytes - path.mtu_bytes) + parameters.exempt_bytes
        self._unannounced_bytes = self._exempt_bytes  # remaining bytes of the exemption
        self._clock_error_ns = 0
        self._counted_period = -1  # the last period in which a periodic FRP or a flow-init left

    @property
    def at_rest(self) -> bool:
        return not self.active

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._heartbeat = self.timer()
        limit = self.parameters.clock_error_ns
        if limit > 0:
            # The clock error of the node, which all of its flows share.
            self._clock_error_ns = random.Random(self.host.seed).randint(-limit, limit)

    def on_start(self, now_ns: int) -> None:
        self._unannounced_bytes = self._exempt_bytes

    def on_post(self, now_ns: int) -> None:
        if self.active:
            return
        if self.traffic.waiting_bytes < self._unannounced_bytes:
            self.set_rate(self.path.line_rate_bps)
        else:
            self._init(now_ns)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """Announce an exempt burst once it exceeds the exemption, and stop a flow after its last packet.

        Retransmissions count as parts of the burst.
        """
        if not self.active:
            self._unannounced_bytes -= wire_bytes
            if self._unannounced_bytes < 0:
                self._init(now_ns)
        if self.active and self.traffic.waiting_bytes == 0:
            self._stop(now_ns)

    def on_idle(self, now_ns: int) -> None:
        """Stop the flow when its last retransmission has become unnecessary."""
        super().on_idle(now_ns)
        if self.active and self.traffic.waiting_bytes == 0:
            self._stop(now_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self._period(now_ns) != self._counted_period:
            self._send(now_ns, PERIODIC)
        self._arm(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        if self.active:
            self._obey(frame, offset)

    def _obey(self, frame: bytes, offset: int) -> None:
        """Obey a response, which sets the rate to max(CR, DR); a short-circuit notification may only lower it."""
        frp = FRP.decode(frame, offset)
        sequence = wire.psn(frame)
        if (sequence - self._obeyed) & wire.PSN_MASK >= wire.PSN_HALF:
            return  # overtaken by a newer one
        self._obeyed = sequence
        rate_bps = max(float(max(frp["current_rate"], frp["desired_rate"])) * 1e3, self.parameters.min_rate_bps)
        if frp["short_circuit"]:
            rate_bps = min(rate_bps, self.rate_bps)
        self.set_rate(min(rate_bps, self.path.line_rate_bps))

    def _init(self, now_ns: int) -> None:
        """Announce the flow; it starts at its desired rate, and its FRP precedes its first packet."""
        self.active = True
        self.set_rate(self.wished_bps)
        self._obeyed = (self.sequence + 1) & wire.PSN_MASK
        self._send(now_ns, INIT)
        self._arm(now_ns)

    def _stop(self, now_ns: int) -> None:
        self.active = False
        self._unannounced_bytes = self._exempt_bytes  # for the next burst, which may begin before this one's ACKs
        self._heartbeat.cancel()
        if self.parameters.flow_stop:
            counted = self._period(now_ns) == self._counted_period
            self._send(now_ns, STOP, counted)

    def _send(self, now_ns: int, kind: int, counted: bool = False) -> None:
        if kind != STOP:
            self._counted_period = self._period(now_ns)
        self.sequence = (self.sequence + 1) & wire.PSN_MASK
        body = FRP.encode(
            kind=kind,
            counted=int(counted),
            source_qp=self.outlet.qpn(),
            current_rate=int(self.rate_bps / 1e3),
            desired_rate=int(self.wished_bps / 1e3),
        )
        self.outlet.send_control(FRP, body, psn=self.sequence, entropy=self.outlet.control_entropy(now_ns))

    def _period(self, now_ns: int) -> int:
        return (now_ns + self._clock_error_ns) // self.parameters.period_ns

    def _arm(self, now_ns: int) -> None:
        """Arm the heartbeat for the next time that is `send_at` into a period of the node's clock."""
        period_ns = self.parameters.period_ns
        phase_ns = int(self.parameters.send_at * float(period_ns)) - self._clock_error_ns
        self._heartbeat.arm(now_ns + period_ns - (now_ns - phase_ns) % period_ns)


class AccurateReceiver(NotificationPoint):
    """Destination, which sends each FRP back to its source.

    A flow-stop needs no answer.
    """

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        frp = FRP.decode(frame, offset)
        if frp["kind"] == STOP:
            return
        frp["response"] = 1
        frp["source_qp"] = self.outlet.qpn()
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        self.outlet.send_control(FRP, FRP_HEADER.encode(frp), psn=wire.psn(frame), entropy=entropy)


def reaction_point(parameters: AccurateParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Accurate(parameters, path)


def notification_point(parameters: AccurateParameters, path: Path) -> NotificationPoint:
    return AccurateReceiver(path)


register(
    ProtocolInfo(
        name="accurate",
        summary="max-min fair rates computed by the switches",
        source="Karampelas et al., Optimizing Network Congestion Control for High-Performance RDMA Transfers",
        program="accurate",
        agrees=("period_ns",),
        parameters=AccurateParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(FRP,),
        single_path=True,
        held_back_by="grants",
        rests=True,
    )
)
