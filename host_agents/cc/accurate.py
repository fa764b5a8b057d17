"""ACCurate (Karampelas et al.): switches compute max-min fair rates, a flow tells them its own once a period.

The flow's heartbeat is the flow rate packet (FRP). Contention points (p4src/accurate.p4) lower its current rate CR
and its desired rate DR to their fair shares; the destination bounces it, and the source sets its rate limiter by the
response (sections II and IV-B). Frames: docs/wire-formats.md, "Flow rate packet". Rates on the wire are in kb/s.

A path must not change under a flow, so the load balancer is one that keeps a flow's entropy.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import Outlet, Path, ReactionPoint
from host_agents.ranges import POSITIVE, SHARE_OR_NONE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

FRP: Final = 0xE8
FRP_BYTES: Final = 12

PERIODIC: Final = 0x00
INIT: Final = 0x40
STOP: Final = 0x80
KIND: Final = 0xC0
RESPONSE: Final = 0x20
SHORT_CIRCUIT: Final = 0x10
COUNTED: Final = 0x08

wire.register_control(FRP, "FRP", wire.TO_REACTION_POINT)


@dataclass(frozen=True)
class AccurateParameters:
    """The paper's constants (sections III and V); the switches' are the program's (harness/control/programs)."""

    period_ns: int = field(default=20_000, metadata=POSITIVE)  # RRP, the rate re-evaluation period
    # Where in a period the FRP leaves: at a quarter, nodes whose clocks are 2 us apart agree on the period.
    send_at: float = field(default=0.25, metadata=SHARE_OR_NONE)
    # A node's clock is off by up to this, either way; by how much is drawn for each node.
    clock_error_ns: int = 0
    # A burst of fewer bytes sends no FRPs (section V, inactive or small/slow flows).
    exempt_bytes: int = 4_096
    desired_rate_bps: float = 0.0  # the wished rate; 0: line rate
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)
    # Without it the CPs learn of a flow's end only when its FRP stays away.
    flow_stop: bool = True


class Accurate(ReactionPoint):
    """The reaction point. It is *active* from a flow-init to a flow-stop, and sends an FRP a period in between."""

    def __init__(self, parameters: AccurateParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        wished = parameters.desired_rate_bps if parameters.desired_rate_bps > 0.0 else path.line_rate_bps
        self.wished_bps = min(wished, path.line_rate_bps)
        self.active = False
        self.sequence = 0  # of the FRP sent last
        self._obeyed = 0  # sequence number of the newest FRP whose response was obeyed
        self._unannounced_bytes = 0  # wire bytes that may still leave before an exempt burst is announced
        self._clock_error_ns = 0
        self._counted_period = -1  # the last period in which a periodic FRP or a flow-init left

    def bind(self, outlet: Outlet) -> None:
        super().bind(outlet)
        self._heartbeat = self.timer()
        limit = self.parameters.clock_error_ns
        if limit > 0:
            # The node's, so the same for all of its flows.
            self._clock_error_ns = random.Random(self.host.seed).randint(-limit, limit)

    def on_start(self, now_ns: int) -> None:
        exempt_bytes = self.parameters.exempt_bytes
        # On the wire these are as many packets, with their headers.
        exempt_packets = -(-exempt_bytes // self.path.mtu_bytes)
        exempt = self.traffic.unacked_bytes() < exempt_bytes
        self._unannounced_bytes = exempt_packets * self.path.wire_bytes if exempt else 0
        if self._unannounced_bytes == 0 and not self.active:
            self._init(now_ns)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """A burst that outgrows the exemption is announced after all; after its last packet a flow stops."""
        if not self.active:
            self._unannounced_bytes -= wire_bytes
            if self._unannounced_bytes < 0:
                self._init(now_ns)
        if self.active and self.traffic.waiting_bytes == 0:
            self._stop(now_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self._period(now_ns) != self._counted_period:
            self._send(now_ns, PERIODIC)
        self._arm(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        if len(frame) < offset + FRP_BYTES:
            return
        flags = frame[offset]
        if not flags & RESPONSE:
            self._bounce(frame, offset)
        elif self.active:
            self._obey(frame, offset)

    def _obey(self, frame: bytes, offset: int) -> None:
        """A response sets the rate to max(CR, DR); a short-circuit notification may only lower it."""
        sequence = int.from_bytes(frame[wire.ACK_PSN + 1 : wire.AFTER_BTH], "big")
        if (sequence - self._obeyed) & wire.PSN_MASK >= wire.PSN_HALF:
            return  # overtaken by a newer one
        self._obeyed = sequence
        current_kbps = int.from_bytes(frame[offset + 4 : offset + 8], "big")
        desired_kbps = int.from_bytes(frame[offset + 8 : offset + 12], "big")
        rate_bps = max(float(max(current_kbps, desired_kbps)) * 1e3, self.parameters.min_rate_bps)
        if frame[offset] & SHORT_CIRCUIT:
            rate_bps = min(rate_bps, self.rate_bps)
        self.set_rate(min(rate_bps, self.path.line_rate_bps))

    def _bounce(self, frame: bytes, offset: int) -> None:
        """The destination's part: the FRP goes back to its source. A flow-stop needs no answer."""
        if frame[offset] & KIND == STOP:
            return
        body = (
            bytes((frame[offset] | RESPONSE,)) + self.outlet.qpn().to_bytes(3, "big") + frame[offset + 4 : offset + 12]
        )
        sequence = int.from_bytes(frame[wire.ACK_PSN + 1 : wire.AFTER_BTH], "big")
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        self.outlet.send_control(FRP, body, psn=sequence, entropy=entropy)

    def _init(self, now_ns: int) -> None:
        """Flow-init: the flow starts at its wished rate, and its FRP goes ahead of its first packet."""
        self.active = True
        self.set_rate(self.wished_bps)
        self._obeyed = (self.sequence + 1) & wire.PSN_MASK
        self._send(now_ns, INIT)
        self._arm(now_ns)

    def _stop(self, now_ns: int) -> None:
        self.active = False
        self._unannounced_bytes = 0
        self._heartbeat.cancel()
        if self.parameters.flow_stop:
            counted = self._period(now_ns) == self._counted_period
            self._send(now_ns, STOP | (COUNTED if counted else 0))

    def _send(self, now_ns: int, flags: int) -> None:
        if flags & KIND != STOP:
            self._counted_period = self._period(now_ns)
        self.sequence = (self.sequence + 1) & wire.PSN_MASK
        current_kbps = int(self.rate_bps / 1e3)
        desired_kbps = int(self.wished_bps / 1e3)
        body = (
            bytes((flags,))
            + self.outlet.qpn().to_bytes(3, "big")
            + current_kbps.to_bytes(4, "big")
            + desired_kbps.to_bytes(4, "big")
        )
        self.outlet.send_control(FRP, body, psn=self.sequence, entropy=self.outlet.next_entropy(now_ns))

    def _period(self, now_ns: int) -> int:
        return (now_ns + self._clock_error_ns) // self.parameters.period_ns

    def _arm(self, now_ns: int) -> None:
        """The next moment, after now, that lies `send_at` into a period of the node's clock."""
        period_ns = self.parameters.period_ns
        phase_ns = int(self.parameters.send_at * float(period_ns)) - self._clock_error_ns
        self._heartbeat.arm(now_ns + period_ns - (now_ns - phase_ns) % period_ns)


def reaction_point(parameters: AccurateParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Accurate(parameters, path)


register(
    ProtocolInfo(
        name="accurate",
        summary="max-min fair rates computed by the switches",
        source="Karampelas et al., Optimizing Network Congestion Control for High-Performance RDMA Transfers",
        program="accurate",
        parameters=AccurateParameters,
        reaction_point=reaction_point,
    )
)
