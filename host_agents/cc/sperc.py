"""s-PERC (Jose et al., SIGMETRICS 2019; algorithm 3, section 5.1.1 of the thesis that 1RC is from).

A flow sends control packets, one at a time. Each link on the way to the receiver, the NIC's own among them
(`sperc_link`), computes the flow's allocation (`p4src/sperc.p4`); the receiver sends the packet back, and the source
sends at the least allocation, divided by the flow's weight. What the flow could use at all is a record, too: the
demand. A flow of up to `short_flow_bytes` leaves at line rate without control packets; another one waits for its first
response.

Frames: docs/wire-formats.md, "Control packet of s-PERC". Rates on the wire are in kb/s for each unit of weight.
A path must not change under a flow, so the load balancer is one that keeps a flow's entropy.

Not there: 1RC (section 5.2; the switches do their part), and weights that follow a host's number of flows (5.3): every
flow has weight 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from host_agents import wire
from host_agents.cc.base import UNLIMITED, NotificationPoint, Outlet, Path, ReactionPoint
from host_agents.cc.sperc_link import NEW_FLOW, NO_LIMIT, B, E, Link, Record
from host_agents.config import SCOPE_QP
from host_agents.packets import TO_NOTIFICATION_POINT, Field, Header, Packet, Records
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE
from host_agents.registry import ProtocolInfo, register
from host_agents.timers import Timer

MAX_SWITCHES: Final = 6
RECORDS: Final = MAX_SWITCHES + 2  # the NIC's own link, the demand

CONTROL_HEADER: Final = Header(
    "sperc",
    (
        Field("response", 1, "on its way back to the source"),
        Field("leaving", 1, "the flow has sent all"),
        Field("reserved", 6),
        Field("switches_passed", 8),
        Field("epoch", 16, "of the packet's sending: its source's clock, divided by the epoch's length"),
        Field("old_weight", 16, "n of the flow's control packet before; the flow's rate goes by 1/n", initial=1),
        Field("new_weight", 16, "n now", initial=1),
        Field("speculative_weight", 16, "n for speculative packets", initial=1),
        Field("let_through", 24, "the least number of speculative packets that a switch lets pass", initial=0xFFFFFF),
        Field("source_qp", 24, "the sender's own queue pair, to which a response goes"),
        Field("interval", 32, "the largest of the links' intervals between control packets of a flow", unit="ns"),
    ),
    "Control packet of s-PERC: what is the flow's own.",
)
RECORD_HEADER: Final = Header(
    "sperc_record",
    (
        Field("b", 32, "the link's bottleneck rate", unit="kb/s"),
        Field("x", 32, "the flow's allocation at the link", unit="kb/s"),
        Field("state", 2, "of the flow at the link", values={NEW_FLOW: "new_flow", E: "e", B: "b"}),
        Field("ignore", 1, "b says nothing", initial=1),
        Field("reserved", 13),
    ),
    "What a control packet of s-PERC knows of one link.",
)
CONTROL: Final = Packet(
    "SPERC",
    0xE5,
    (CONTROL_HEADER, Records(RECORD_HEADER, RECORDS)),
    to=TO_NOTIFICATION_POINT,
    reply="response",
    meaning="control packet of s-PERC: a flow's state at the links of its path",
)

SPECULATIVE: Final = Packet(
    "speculative",
    0xF0,
    (
        Header(
            "speculative",
            (
                Field("epoch", 16, "of the flow's start"),
                Field("weight", 16, "n for speculative packets", initial=1),
                Field("sequence", 24, "the packet's place among the speculative ones, from 0"),
                Field("reserved", 8),
            ),
            "Speculative data packet of 1RC.",
        ),
    ),
    opcodes=8,
    wraps=True,
    meaning="data that a switch may drop: reliable-connection opcode n as 0xF0 + n",
)
_WIRE_BYTES: Final = wire.OVERHEAD_BYTES + 14 + CONTROL.size_bytes  # Ethernet to ICRC
_OWN_LINK: Final = MAX_SWITCHES  # the places of the records that are the source's
_DEMAND: Final = MAX_SWITCHES + 1


@dataclass(frozen=True)
class SpercParameters:
    """The thesis gives the length of short flows only.

    The authors' simulator has headroom, control share and demand in another form, and rounds of 20 us; the tolerance is
    what lets rates settle where several links of a path have the same share.
    """

    headroom: float = field(default=0.05, metadata=SHARE_OR_NONE)  # of a link, that is not handed out
    round_ns: int = field(default=18_000, metadata=POSITIVE)  # 1.5 base RTTs of 12 us
    control_share: float = field(default=0.02, metadata=SHARE)  # of a link, for control packets
    tolerance: float = field(default=2**-12, metadata=SHARE_OR_NONE)  # of a link, in comparisons
    short_flow_bytes: int = 0  # up to this many bytes a flow is not counted; 0: one BDP (section 5.1.2)
    demand: bool = True  # the source's record of what the flow could use at most
    own_link: bool = True  # the NIC's link is one of the links; a switch in the NIC would do it instead
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)


class Sperc(ReactionPoint):
    """The reaction point. Its flow is *counted* from its first control packet to the one that says that it leaves."""

    def __init__(self, parameters: SpercParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.counted = False
        self.records: list[Record] = []  # the switches' in the order of the path, the NIC's, the demand
        self.sequence = 0  # of the control packet sent last
        self.outstanding = False  # it is not back
        self.interval_ns = 0  # the largest that the last response has brought
        self._sent_ns = 0  # when the last control packet left
        self._link: Link | None = None  # the NIC's own
        short = parameters.short_flow_bytes
        self._short_bytes = float(short) if short > 0 else path.bdp_bytes

    def bind(self, outlet: Outlet) -> None:
        super().bind(outlet)
        self._timer = self.timer()
        if self.parameters.own_link:
            link = self.host.part("s-PERC link", self._make_link)
            assert isinstance(link, Link)
            self._link = link

    def _make_link(self) -> Link:
        p = self.parameters
        capacity_kbps = round(self.path.line_rate_bps * (1.0 - p.headroom) / 1e3)
        control_ns = round(float(8 * _WIRE_BYTES) * 1e9 / (p.control_share * self.path.line_rate_bps))
        return Link(capacity_kbps, round(float(capacity_kbps) * p.tolerance), p.round_ns, control_ns)

    def on_post(self, now_ns: int) -> None:
        if self.counted:
            return
        if float(self.traffic.unacked_bytes()) <= self._short_bytes:
            self.set_rate(self.path.line_rate_bps)
            return
        self.counted = True
        self._begin(now_ns)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """After its last packet a flow leaves; a control packet that is under way has to come back first."""
        if self.counted and self.traffic.waiting_bytes == 0 and not self.outstanding:
            self._leave(now_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if not self.outstanding:
            self._send(now_ns)
        elif self.traffic.waiting_bytes > 0:
            self._begin(now_ns)  # no response: the links are asked anew, and keep what they have counted
        else:
            self.counted = False

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        passed = CONTROL.get("switches_passed", frame, offset)
        if passed > MAX_SWITCHES:
            self.outlet.count_malformed()
            return
        if not self.outstanding or wire.psn(frame) != self.sequence:
            return  # it has come too late: the flow has begun anew
        self.outstanding = False
        self._timer.cancel()
        arrived = CONTROL.decode_records(frame, offset)
        for place, record in enumerate(self.records):
            found = arrived[place - passed]
            record.b = found["b"]
            record.x = found["x"]
            record.state = found["state"]
            record.ignore = found["ignore"]
        self.interval_ns = CONTROL.get("interval", frame, offset)
        self._obey()
        if self.traffic.waiting_bytes == 0:
            self._leave(now_ns)
        elif self._sent_ns + self.interval_ns <= now_ns:
            self._send(now_ns)
        else:
            self._timer.arm(self._sent_ns + self.interval_ns)

    def _obey(self) -> None:
        """The rate is the least allocation. Where nothing but the demand limits it, the flow ends within an RTT."""
        least = NO_LIMIT
        for record in self.records[:_DEMAND]:
            if record.state != NEW_FLOW:
                least = min(least, record.x)
        demand = self.records[_DEMAND]
        if least == NO_LIMIT or (not demand.ignore and least >= demand.b):
            self.set_rate(self.path.line_rate_bps)
        else:
            rate_bps = max(float(least) * 1e3, self.parameters.min_rate_bps)
            self.set_rate(min(rate_bps, self.path.line_rate_bps))
        self.set_window(UNLIMITED)

    def _begin(self, now_ns: int) -> None:
        """Nothing leaves before the first response."""
        self.records = [Record() for _ in range(RECORDS)]
        self.interval_ns = 0
        self.set_window(0.0)
        self._send(now_ns)

    def _leave(self, now_ns: int) -> None:
        self._send(now_ns, True)
        self.outstanding = False  # it is not answered
        self.counted = False
        self._timer.cancel()

    def _send(self, now_ns: int, leaving: bool = False) -> None:
        if self.parameters.demand:
            demand = self.records[_DEMAND]
            demand.b = min(self.traffic.waiting_bytes * 8_000_000 // self.path.base_rtt_ns, NO_LIMIT)
            demand.ignore = 0
        interval_ns = 0
        link = self._link
        if link is not None:
            link.process(self.records, _OWN_LINK, 1, 1, leaving, now_ns)
            interval_ns = link.interval_ns
        self.sequence = (self.sequence + 1) & wire.PSN_MASK
        body = CONTROL.encode(
            [{"b": r.b, "x": r.x, "state": r.state, "ignore": r.ignore} for r in self.records],
            leaving=int(leaving),
            source_qp=self.outlet.qpn(),
            interval=interval_ns,
        )
        self.outlet.send_control(CONTROL, body, psn=self.sequence, entropy=self.outlet.next_entropy(now_ns))
        self.outstanding = True
        self._sent_ns = now_ns
        self._timer.arm(now_ns + 4 * max(self.interval_ns, self.path.base_rtt_ns))


class SpercReceiver(NotificationPoint):
    """The destination: it sends a control packet back to its source. One that leaves needs no answer."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        values = CONTROL.decode(frame, offset)
        if values["leaving"]:
            return
        values["response"] = 1
        values["source_qp"] = self.outlet.qpn()
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        body = CONTROL.encode(CONTROL.decode_records(frame, offset), **values)
        self.outlet.send_control(CONTROL, body, psn=wire.psn(frame), entropy=entropy)


def reaction_point(parameters: SpercParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    return Sperc(parameters, path)


def notification_point(parameters: SpercParameters, path: Path) -> NotificationPoint:
    return SpercReceiver(path)


register(
    ProtocolInfo(
        name="sperc",
        summary="max-min fair rates computed by the switches from bottleneck rates in control packets",
        source="Jose et al., A Distributed Algorithm to Calculate Max-Min Fair Rates Without Per-Flow State",
        program="sperc",
        agrees=("headroom", "round_ns", "control_share", "tolerance"),
        parameters=SpercParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(CONTROL, SPECULATIVE),
        scopes=(SCOPE_QP,),
        single_path=True,
        max_switches=MAX_SWITCHES,
    )
)
