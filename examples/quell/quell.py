"""Quell: the sender asks the path for its queueing delay once per RTT, and keeps it at a target.

A probe goes to the receiver; each switch raises its `delay` to that of the port it leaves by (delays.p4), and the
receiver sends it back. Above the target the rate is cut in proportion, below it is raised by a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4cc.cc import POSITIVE, SHARE, Feedback, NotificationPoint, Path, ProtocolInfo, ReactionPoint, register
from p4cc.packets import TO_NOTIFICATION_POINT, Field, Header, Packet

PROBE = Packet(
    "probe",
    0xFE,
    (
        Header(
            "probe",
            (
                Field("answer", 1, "on its way back to the sender"),
                Field("reserved", 7),
                Field("delay", 24, "the largest smoothed queueing delay so far", unit="1.024 ns"),
            ),
            "Probe of Quell.",
        ),
    ),
    to=TO_NOTIFICATION_POINT,
    reply="answer",
)


@dataclass(frozen=True)
class QuellParameters:
    target_ns: float = field(default=2_000.0, metadata=POSITIVE)  # queueing delay
    most_cut: float = field(default=0.5, metadata=SHARE)  # largest share of the rate that one answer takes away
    increase_bps: float = 500e6  # increase by an answer below the target
    min_rate_bps: float = field(default=100e6, metadata=POSITIVE)


class Quell(ReactionPoint):
    def __init__(self, parameters: QuellParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.delay_ns = 0.0  # delay in the last answer
        self._mark = 0  # a packet sent from here on being acknowledged, an RTT is over

    def on_start(self, now_ns: int) -> None:
        self._ask()

    def on_ack(self, feedback: Feedback) -> None:
        if feedback.order >= self._mark:
            self._ask()

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        p = self.parameters
        self.delay_ns = PROBE.get("delay", frame, offset) * 1.024
        rate_bps = self.rate_bps + p.increase_bps
        if self.delay_ns > p.target_ns:
            rate_bps = self.rate_bps * (1 - p.most_cut * (self.delay_ns - p.target_ns) / self.delay_ns)
        self.set_rate(min(max(rate_bps, p.min_rate_bps), self.path.line_rate_bps))

    def _ask(self) -> None:
        self._mark = self.traffic.sent_packets
        self.outlet.send_control(PROBE, PROBE.encode(answer=0, delay=0))


class Answerer(NotificationPoint):
    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        self.outlet.send_control(PROBE, PROBE.encode(answer=1, delay=PROBE.get("delay", frame, offset)))


def reaction_point(parameters: QuellParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Quell(parameters, path)


def notification_point(parameters: QuellParameters, path: Path) -> NotificationPoint:
    return Answerer(path)


register(
    ProtocolInfo(
        name="quell",
        summary="rate: keeps the queueing delay that probes find at a target",
        source="an example",
        program="delays",
        parameters=QuellParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(PROBE,),
    )
)
