"""s-PERC (Jose et al., SIGMETRICS 2019; algorithm 3, section 5.1.1 of the thesis that 1RC is from).

A flow sends control packets, one at a time. Each link on the way to the receiver computes the
flow's allocation (`p4src/sperc.p4`), and so does the NIC's own link (`sperc_link`). The receiver
sends the packet back. The source sends at the least allocation, divided by the flow's weight. A
further record has the flow's demand: the largest rate that it could use. A flow of up to
`short_flow_bytes` leaves at line rate without control packets. Other flows wait for their first
response. With 1RC (`one_rc`) no flow is exempt and none waits: flows send speculative packets until
the first response. With weights (`weights`) each of a host's n flows weighs 1/n.

Frames: docs/wire-formats.md, "Control packet of s-PERC". Rates on the wire are in kb/s for each
unit of weight. The path of a flow must not change, so it needs a load balancer that keeps a flow's
entropy.

If a control packet is lost, the links before the loss have counted the flow, and its source does
not know which links these are. So after four intervals without a response a flow sends single data
packets, and repeats its request only when an acknowledgement shows that packets arrive. The request
has the links' records that the source knows. So a link that has answered does not count the flow
twice. A link that has never answered may do so, once. The state at the NIC's own link is always
known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from librt.strings import BytesWriter, read_i64_be, write_i64_be
from mypy_extensions import i64

from host_agents import wire
from host_agents.cc.base import UNLIMITED, Feedback, NotificationPoint, Path, ReactionOutlet, ReactionPoint
from host_agents.cc.one_rc import (
    DATA_PRIORITY,
    SPECULATIVE,
    HostFlows,
    OneRcParameters,
    Speculation,
)
from host_agents.cc.sperc_link import DIGITS, MAX_WEIGHT, NEW_FLOW, NO_LIMIT, B, E, Link, Record
from host_agents.cc.weights import SHARE_HOST, WeightsParameters
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
        Field("leaving", 1, "the flow has sent all its data"),
        Field("reserved", 6),
        Field("switches_passed", 8),
        Field("epoch", 16, "in which the packet was sent: its source's clock, divided by the epoch's length"),
        Field("old_weight", 16, "n in the flow's previous control packet; its weight is 1/n", initial=1),
        Field("new_weight", 16, "n in this packet", initial=1),
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
        Field("ignore", 1, "b is not valid", initial=1),
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
    meaning="control packet with the flow's state at each link of its path",
)

_HEADER_BYTES: Final = CONTROL_HEADER.size_bytes
_RECORD_BYTES: Final = RECORD_HEADER.size_bytes
_SOURCE_QP: Final = CONTROL.place("source_qp").byte
_WIRE_BYTES: Final = wire.OVERHEAD_BYTES + 14 + CONTROL.size_bytes  # Ethernet to ICRC
_PASSED: Final = CONTROL.place("switches_passed")
_LET_THROUGH: Final = CONTROL.place("let_through")
_INTERVAL: Final = CONTROL.place("interval")
_RESPONSE: Final = 0x80  # bit of the first byte that marks a response
_LEAVING: Final = 0x40
_MAX_SIGNED: Final = 0x7FFF_FFFF
_writer: Final = BytesWriter()
_OWN_LINK: Final = MAX_SWITCHES  # indices of the source's own records
_DEMAND: Final = MAX_SWITCHES + 1
_ONE_PACKET: Final = 1.0  # a window of this many bytes, which a packet may exceed


@dataclass(frozen=True)
class SpercParameters:
    """Parameters of s-PERC; the thesis specifies only the length of short flows.

    The authors' simulator has headroom, control share and demand in another form, and rounds of 20
    us for an RTT of 12 us. The tolerance lets rates settle if several links of a path have the same
    share.
    """

    headroom: float = field(default=0.05, metadata=SHARE_OR_NONE)  # share of a link that is not distributed
    round_rtts: float = field(default=1.5, metadata=POSITIVE)  # length of a round, in base RTTs of the network
    control_share: float = field(default=0.02, metadata=SHARE)  # share of a link for control packets
    tolerance: float = field(default=2**-12, metadata=SHARE_OR_NONE)  # share of a link that comparisons tolerate
    digits: int = field(default=DIGITS, metadata={"ge": 10, "le": DIGITS})  # significant binary digits of b
    # Flows of up to this size are not counted; 0: one BDP (section 5.1.2). With 1RC every flow is
    # counted.
    short_flow_bytes: int = 0
    demand: bool = True  # the source has a record of the rate that the flow could use at most
    own_link: bool = True  # the NIC's link is one of the links; alternatively a switch in the NIC handles it
    min_rate_bps: float = field(default=1e6, metadata=POSITIVE)  # the smallest rate


def control_body(
    records: list[Record],
    leaving: bool,
    epoch: int,
    old_weight: int,
    new_weight: int,
    speculative_weight: int,
    source_qp: int,
    interval_ns: int,
) -> bytes:
    """Return the body of a control packet to the receiver, as `CONTROL.encode` but without its dictionaries."""
    w = _writer
    w.truncate(0)
    first: i64 = (_LEAVING if leaving else 0) << 56 | epoch << 32 | old_weight << 16 | new_weight
    second: i64 = speculative_weight << 48 | 0xFFFFFF << 24 | source_qp
    write_i64_be(w, first)
    write_i64_be(w, second)
    w.append(interval_ns >> 24)
    w.append(interval_ns >> 16 & 0xFF)
    w.append(interval_ns >> 8 & 0xFF)
    w.append(interval_ns & 0xFF)
    for record in records:
        b = record.b
        if b > _MAX_SIGNED:
            b -= 1 << 32  # the same bits as a signed number
        rates: i64 = b << 32 | record.x
        write_i64_be(w, rates)
        w.append(record.state << 6 | record.ignore << 5)
        w.append(0)
    return w.getvalue()


def read_records(records: list[Record], passed: int, frame: bytes, offset: int) -> None:
    """Update `records` from a packet that this number of switches has processed."""
    for place, record in enumerate(records):
        turned = place - passed if place >= passed else place - passed + RECORDS
        start = offset + _HEADER_BYTES + _RECORD_BYTES * turned
        rates: i64 = read_i64_be(frame, start)
        b: int = (rates >> 32) & 0xFFFFFFFF
        x: int = rates & 0xFFFFFFFF
        flags = frame[start + 8]
        record.b = b
        record.x = x
        record.state = flags >> 6
        record.ignore = flags >> 5 & 1


class Sperc(ReactionPoint):
    """Reaction point.

    Its flow is *counted* from its first control packet to the one with which it leaves.
    """

    def __init__(
        self,
        parameters: SpercParameters,
        path: Path,
        one_rc: OneRcParameters | None = None,
        weights: WeightsParameters | None = None,
    ) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.counted = False
        self.weight = 1  # n of the last control packet
        self._counted_ns = 0  # time since which the flow is counted, or was last counted
        self._weight_ns = 0.0  # the host's integral of 1/n at that time
        self._mean_weight: float | None = None  # weight as of the last control packet
        self.records: list[Record] = []  # records of the path's switches in their order, of the NIC, and of the demand
        self.sequence = 0  # sequence number of the last control packet
        self.outstanding = False  # the last control packet has not returned
        self.interval_ns = 0  # the largest interval in the last response
        self._sent_ns = 0  # time of the last control packet
        self._answered = False  # a response has arrived since the flow was counted
        self._doubting = False  # no response in time: wait for an acknowledgement
        self._link: Link | None = None  # the NIC's own link
        short = parameters.short_flow_bytes
        self._short_bytes = float(short) if short > 0 else path.bdp_bytes
        self._one_rc = one_rc
        self._weighted = weights is not None
        self._flows: HostFlows | None = None
        self._speculation: Speculation | None = None
        # Scheduled packets wait for the ACK of all packets before it; -1: they do not wait.
        self._awaited_place = -1
        if one_rc is not None:
            shared = weights is not None and weights.share == SHARE_HOST
            self._speculation = Speculation(one_rc, path, weights is not None, shared)
            self.own_headers = True

    @property
    def at_rest(self) -> bool:
        return not self.counted

    @property
    def mean_weight(self) -> float | None:
        """Mean weight 1/n of the flow; None if it was never counted.

        The mean is over the time from the last counting of the flow until its last control packet,
        with which it may have left (5.5.2, figure 5.11).
        """
        return self._mean_weight

    @property
    def let_through(self) -> int | None:
        """Number of the flow's speculative packets that passed; None if no response has reported it."""
        return None if self._speculation is None else self._speculation.passed

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        self._timer = self.timer()
        if self.parameters.own_link:
            link = self.host.part("s-PERC link", self._make_link)
            assert isinstance(link, Link)
            self._link = link
        if self._one_rc is not None:
            flows = self.host.part("s-PERC flows", self._make_flows)
            assert isinstance(flows, HostFlows)
            self._flows = flows

    def _make_link(self) -> Link:
        p = self.parameters
        capacity_kbps = round(self.path.line_rate_bps * (1.0 - p.headroom) / 1e3)
        control_bits = float(8 * self.path.link_bytes(_WIRE_BYTES))
        control_ns = round(control_bits * 1e9 / (p.control_share * self.path.line_rate_bps))
        round_ns = max(1, round(p.round_rtts * float(self.path.base_rtt_ns)))
        return Link(capacity_kbps, round(float(capacity_kbps) * p.tolerance), round_ns, control_ns, p.digits)

    def _make_flows(self) -> HostFlows:
        one_rc = self._one_rc
        assert one_rc is not None
        epoch_ns = max(1, round(one_rc.epoch_rtts * float(self.path.base_rtt_ns)))
        return HostFlows(self.host, epoch_ns, one_rc.clock_error_ns)

    def on_post(self, now_ns: int) -> None:
        if self.counted:
            return
        if self._speculation is None and float(self.traffic.unacked_bytes) <= self._short_bytes:
            self.set_rate(self.path.line_rate_bps)
            return
        self.counted = True
        self._counted_ns = now_ns
        flows = self._flows
        if flows is not None:
            flows.start(now_ns)
            self._weight_ns = flows.weight_ns(now_ns)
        self.records = [Record() for _ in range(RECORDS)]
        self.interval_ns = 0
        self._awaited_place = -1
        self._answered = False
        self._begin(now_ns)

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        speculation = self._speculation
        if speculation is None or not speculation.under_way:
            return headers
        return speculation.headers(headers, place)

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """Leave after the flow's last packet, once an outstanding control packet has returned."""
        if not self.counted:
            return
        if self.traffic.waiting_bytes == 0 and not self.outstanding:
            self._leave(now_ns)
        speculation = self._speculation
        if speculation is not None and speculation.under_way and speculation.is_over:
            self.set_window(0.0)

    def on_ack(self, feedback: Feedback) -> None:
        if self._awaited_place >= 0 and self.traffic.oldest_unacked() >= self._awaited_place:
            self._go_on()
        if self._doubting:
            self._ask_anew(feedback.now_ns)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._go_on()
        if self._doubting:
            self._ask_anew(now_ns)
        else:
            self._count_again(now_ns)

    def on_timeout(self, now_ns: int) -> None:
        self._go_on()
        self._count_again(now_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self.outstanding:
            self._doubt(now_ns)
        else:
            self._send(now_ns)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        passed = _PASSED.get(frame, offset)
        if passed > MAX_SWITCHES:
            self.outlet.count_malformed()
            return
        if not self.outstanding or wire.psn(frame) != self.sequence:
            return  # it is late: the flow has begun anew
        self.outstanding = False
        self._doubting = False
        self._answered = True
        self._timer.cancel()
        read_records(self.records, passed, frame, offset)
        self.interval_ns = _INTERVAL.get(frame, offset)
        speculation = self._speculation
        if speculation is not None and speculation.under_way:
            self._end_speculation(speculation, _LET_THROUGH.get(frame, offset))
        elif self._awaited_place < 0:
            self.set_window(UNLIMITED)
        self._obey()
        if self.traffic.waiting_bytes == 0:
            self._leave(now_ns)
        elif self._sent_ns + self.interval_ns <= now_ns:
            self._send(now_ns)
        else:
            self._timer.arm(self._sent_ns + self.interval_ns)

    def _end_speculation(self, speculation: Speculation, let_through: int) -> None:
        """End the speculation; speculative packets that switches dropped are sent again."""
        place = speculation.end(let_through)
        if place >= 0:
            self.outlet.send_again(place)
        else:
            place = self.traffic.fresh_packets
        if speculation.priority != DATA_PRIORITY:
            self.outlet.set_priority(DATA_PRIORITY)
            if self.traffic.oldest_unacked() < place:
                self._awaited_place = place  # scheduled packets would overtake it
                self.set_window(0.0)
                return
        self.set_window(UNLIMITED)

    def _go_on(self) -> None:
        """Resume scheduled packets.

        They can no longer overtake a speculative packet, or one was lost.
        """
        if self._awaited_place >= 0:
            self._awaited_place = -1
            self.set_window(UNLIMITED)

    def _obey(self) -> None:
        """Set the rate to the smallest allocation.

        A flow that only its demand limits sends at line rate, because it ends within an RTT.
        """
        least = NO_LIMIT
        for record in self.records[:_DEMAND]:
            if record.state != NEW_FLOW:
                least = min(least, record.x)
        demand = self.records[_DEMAND]
        if least == NO_LIMIT or (not demand.ignore and least >= demand.b):
            self.set_rate(self.path.line_rate_bps)
        else:
            rate_bps = max(float(least) * 1e3 / float(self.weight), self.parameters.min_rate_bps)
            self.set_rate(min(rate_bps, self.path.line_rate_bps))

    def _begin(self, now_ns: int) -> None:
        """Begin the flow; without 1RC nothing leaves before the first response."""
        speculation, flows = self._speculation, self._flows
        if speculation is None or flows is None:
            self.set_window(0.0)
        else:
            speculation.start(flows.epoch(now_ns))
            self.outlet.set_priority(speculation.priority)
            self.set_rate(self.path.line_rate_bps)
            self.set_window(UNLIMITED)
        self._send(now_ns)

    def _doubt(self, now_ns: int) -> None:
        """Send the oldest packet repeatedly until something is acknowledged, since no response came."""
        traffic = self.traffic
        if traffic.waiting_bytes == 0 and traffic.inflight_bytes == 0:
            self._leave(now_ns)
            return
        self.set_window(_ONE_PACKET)
        if self._stop_speculating() or self._doubting:
            self.outlet.send_again(traffic.oldest_unacked())
        self._doubting = True
        self._arm(now_ns)

    def _ask_anew(self, now_ns: int) -> None:
        """Repeat the request for a rate, since packets arrive."""
        self._doubting = False
        if self.traffic.waiting_bytes == 0:
            self._leave(now_ns)
        elif self._answered:
            self._send(now_ns)
        else:
            self._begin(now_ns)

    def _count_again(self, now_ns: int) -> None:
        """Count the flow again if packets were lost after it left."""
        if not self.counted and self.traffic.waiting_bytes > 0:
            self.on_post(now_ns)

    def _leave(self, now_ns: int) -> None:
        self._send(now_ns, True)
        self.outstanding = False  # it gets no answer
        self._doubting = False
        self._timer.cancel()
        self.counted = False
        self._stop_speculating()
        self.set_window(UNLIMITED)
        flows = self._flows
        if flows is not None:
            flows.leave(now_ns)

    def _stop_speculating(self) -> bool:
        """Stop speculating, and return whether the flow was speculating."""
        speculation = self._speculation
        if speculation is None or not speculation.under_way:
            return False
        speculation.under_way = False
        self.outlet.set_priority(DATA_PRIORITY)
        return True

    def _weigh(self, now_ns: int) -> float:
        flows, age_ns = self._flows, now_ns - self._counted_ns
        if flows is None or not self._weighted or age_ns == 0:
            return 1.0 / float(self.weight)
        return (flows.weight_ns(now_ns) - self._weight_ns) / float(age_ns)

    def _send(self, now_ns: int, leaving: bool = False) -> None:
        flows, speculation = self._flows, self._speculation
        epoch = flows.number(now_ns) if flows is not None else 0
        old_weight = self.weight
        if self._weighted and flows is not None:
            self.weight = min(flows.active, MAX_WEIGHT)
        self._mean_weight = self._weigh(now_ns)
        if self.parameters.demand:
            demand = self.records[_DEMAND]
            asked = self.traffic.waiting_bytes * 8_000_000 // self.path.base_rtt_ns
            demand.b = min(asked * self.weight, NO_LIMIT)
            demand.ignore = 0
        interval_ns = 0
        link = self._link
        if link is not None:
            link.process(self.records, _OWN_LINK, old_weight, self.weight, leaving, now_ns)
            interval_ns = link.interval_ns
        self.sequence = (self.sequence + 1) & wire.PSN_MASK
        body = control_body(
            self.records,
            leaving,
            epoch,
            old_weight,
            self.weight,
            1 if speculation is None else speculation.weight,
            self.outlet.qpn(),
            interval_ns,
        )
        self.outlet.send_control(CONTROL, body, psn=self.sequence, entropy=self.outlet.control_entropy(now_ns))
        self.outstanding = True
        self._sent_ns = now_ns
        self._arm(now_ns)

    def _arm(self, now_ns: int) -> None:
        """Arm the timer for the latest time of a response."""
        self._timer.arm(now_ns + 4 * max(self.interval_ns, self.path.base_rtt_ns))


class SpercReceiver(NotificationPoint):
    """Destination, which sends a control packet back to its source.

    One with which a flow leaves needs no answer.
    """

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        if frame[offset] & _LEAVING:
            return
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        body = (
            bytes((frame[offset] | _RESPONSE,))
            + frame[offset + 1 : offset + _SOURCE_QP]
            + self.outlet.qpn().to_bytes(3, "big")
            + frame[offset + _SOURCE_QP + 3 : offset + CONTROL.size_bytes]
        )
        self.outlet.send_control(CONTROL, body, psn=wire.psn(frame), entropy=entropy)


def reaction_point(parameters: SpercParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    one_rc, weights = mechanisms.get("1rc"), mechanisms.get("weights")
    assert one_rc is None or isinstance(one_rc, OneRcParameters)
    assert weights is None or isinstance(weights, WeightsParameters)
    return Sperc(parameters, path, one_rc, weights)


def priorities(parameters: SpercParameters, mechanisms: Mapping[str, object]) -> tuple[int, ...]:
    one_rc = mechanisms.get("1rc")
    if not isinstance(one_rc, OneRcParameters) or one_rc.speculative_priority == DATA_PRIORITY:
        return ()
    return (one_rc.speculative_priority,)


def notification_point(parameters: SpercParameters, path: Path) -> NotificationPoint:
    return SpercReceiver(path)


register(
    ProtocolInfo(
        name="sperc",
        summary="max-min fair rates computed by the switches from bottleneck rates in control packets",
        source="Jose et al., A Distributed Algorithm to Calculate Max-Min Fair Rates Without Per-Flow State",
        program="sperc",
        agrees=("headroom", "round_rtts", "control_share", "tolerance", "digits"),
        parameters=SpercParameters,
        reaction_point=reaction_point,
        notification_point=notification_point,
        packets=(CONTROL, SPECULATIVE),
        mechanisms=("1rc", "weights"),
        scopes=(SCOPE_QP,),
        priorities=priorities,
        single_path=True,
        held_back_by="grants",
        rests=True,
        max_switches=MAX_SWITCHES,
    )
)
