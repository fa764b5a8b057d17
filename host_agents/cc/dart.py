"""Dart (Xue et al., "Dart: Divide and Specialize for Fast Response to Congestion in RDMA-based Datacenter Networks").

A receiver counts the senders with messages in flight to it, and reports the number n with every
ACK. Each of them sends at 1/n of the line rate (DASR, section III). If marks show congestion
elsewhere, the receiver reports n = 1 and sends CNPs to DCQCN, which every sender also has (VI-A).
Short messages carry tokens, which permit switches to deflect them (IV; p4src/dart.p4).

There are two sets of values. `dart-paper` is as printed. `dart` adds what the printed rules need:

- Before the first ACK there is a window of one BDP. Otherwise each new sender adds the data that its
  link carries while that ACK waits in the queue.
- The rate is 5% lower while a receiver is congested. Otherwise a queue would not shrink, because n
  shares of 1/n are the whole line rate.
- Short messages travel alone. Otherwise the next message of a queue pair overtakes one that was
  deflected.
- Retransmissions have no tokens. Otherwise they could be deflected onto a dead link again.

Frames: docs/wire-formats.md, "Dart".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from librt.strings import read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

from host_agents import wire
from host_agents.cc.base import (
    UNLIMITED,
    NotificationOutlet,
    NotificationPoint,
    Outlet,
    Path,
    ReactionOutlet,
    ReactionPoint,
)
from host_agents.cc.composite import CompositeReactionPoint
from host_agents.cc.dcqcn import Dcqcn, DcqcnPaperParameters
from host_agents.config import GO_BACK_N, SCOPE_PAIR
from host_agents.headers import AETH, LINK_RATES_BPS
from host_agents.packets import TO_NOTIFICATION_POINT, TO_REACTION_POINT, TO_SENDER, Field, Header, Packet, Records
from host_agents.ranges import POSITIVE, SHARE, SHARE_OR_NONE, one_of
from host_agents.registry import Protocol, ProtocolInfo, register
from host_agents.timers import NEVER, Timer, TimerOwner, TimerQueue

NO_CONGESTION: Final = 0
RECEIVER_CONGESTION: Final = 1
NON_RECEIVER_CONGESTION: Final = 2

MAX_N: Final = (1 << 14) - 1
_VERSION_MASK: Final = 0xFFF
_OLDER: Final = 0x800  # a version that is further ahead than this is an older one

SHARE_HEADER: Final = Header(
    "dart_share",
    (
        Field("version", 12, "increases by one when the sender's share changes"),
        Field(
            "state",
            2,
            "of the receiver (figure 5)",
            values={
                NO_CONGESTION: "no_congestion",
                RECEIVER_CONGESTION: "receiver_congestion",
                NON_RECEIVER_CONGESTION: "non_receiver_congestion",
            },
        ),
        Field("n", 14, "number of senders that share the line rate", least=1),
        Field("receiver_rate_code", 4, "the receiver's line rate, as in an INT record; 0: not known"),
    ),
    "What a receiver tells a sender of Dart.",
)
ACK: Final = Packet(
    "ACK with share", 0xE4, (AETH, SHARE_HEADER), to=TO_SENDER, meaning="ACK or NAK with the sender's share"
)
NOTICE: Final = Packet(
    "share notice",
    0xEB,
    (SHARE_HEADER,),
    to=TO_REACTION_POINT,
    meaning="a share sent without a data packet to answer",
)
LOOK_AHEAD: Final = Packet(
    "look-ahead",
    0xEC,
    (
        Header("look_ahead", (Field("group", 16, "number of the incast"), Field("count", 16, least=1))),
        Records(Header("look_ahead_member", (Field("nic", 16, "id of a NIC"),)), "count", align_bytes=4, limit=255),
    ),
    to=TO_NOTIFICATION_POINT,
    meaning="members of an announced incast",
)

SHARE_HEADER_BYTES: Final = 4  # a test keeps it equal to the header's
_VERSION: Final = SHARE_HEADER.place("version")
_STATE: Final = SHARE_HEADER.place("state")
_N: Final = SHARE_HEADER.place("n")
_RATE_CODE: Final = SHARE_HEADER.place("receiver_rate_code")
_TOKENS: Final = {"ge": 0, "le": 7}
_ADVERT_VALID_NS: Final = 100_000  # validity of a share that no ACK has confirmed; about five base RTTs of section VI


@dataclass(frozen=True)
class DartParameters:
    """Parameters of Dart. Values without a section are not in the paper: they are choices of our own."""

    short_bytes: int = 8_192  # messages of up to this size may be deflected (VI-A)
    tokens: int = field(default=4, metadata=_TOKENS)  # times that a packet may be deflected (VI-A)
    short_alone: bool = True  # a short message is deflected only if nothing else of its queue pair is in flight
    tokens_again: bool = False  # retransmissions may be deflected, too
    apportion: bool = True  # False: no DASR; every mark is reported
    # Number of packets over which a receiver measures its throughput.
    rate_packets: int = field(default=8, metadata=POSITIVE)
    # Share of the line rate from which on it is "at line rate".
    line_rate_share: float = field(default=0.95, metadata=SHARE)
    state_hold_base_rtts: float = 1.0  # time without a mark until congestion has ended
    # Reduction of the share in Receiver Congestion.
    drain_share: float = field(default=0.05, metadata=SHARE_OR_NONE)
    first_window_bdp: float = 1.0  # window after idleness until the first ACK; 0: no limit
    # "window": a window, as in section VII.
    share_as: str = field(default="rate", metadata=one_of("rate", "window"))
    look_ahead: bool = True  # senders announce the incasts that they know of (III-D)
    # Senders that an announcement binds; "active": those that have other messages in flight.
    advert_to: str = field(default="all", metadata=one_of("all", "active"))
    # Send a notice to senders whose n was wrong by a factor of 2, a base RTT ago or more.
    advert_on_change: bool = False
    # Time until a silent sender is removed (III-B).
    idle_timeout_ns: int = field(default=2_000_000_000, metadata=POSITIVE)
    # Time until an incast is removed that some members have not announced.
    incast_timeout_ns: int = field(default=2_000_000_000, metadata=POSITIVE)
    source_ecn_bytes: int = 22_500  # a NIC marks when more than this waits for its link; 0: never
    fall_back: bool = True  # use DCQCN on marks of other switches (VI-A)
    cnp_interval_ns: int = field(default=50_000, metadata=POSITIVE)  # shortest interval for each sender


@dataclass(frozen=True)
class DartPaperParameters(DartParameters):
    """Parameters as printed in the paper.

    The program has to have `match = "message"` and `entry_timeout_ns = 0`.
    """

    short_alone: bool = False
    tokens_again: bool = True
    drain_share: float = field(default=0.0, metadata=SHARE_OR_NONE)
    first_window_bdp: float = 0.0


# The receiver


class ActiveSender:
    """Sender in its receiver's view; it is in the AUSS while it has messages in flight."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.messages = 0  # messages in flight or announced
        self.announced = 0  # announced messages that have not begun
        self.life = 0  # increased when it falls silent, so that messages counted before no longer count
        self.last_ns = 0
        self.points: list[DartReceiver] = []  # notification points of its queue pairs
        self.next_cnp_ns = 0
        self.version = 0
        self.notice_state = NO_CONGESTION
        self.notice_n = 0  # n in the last notice; 0: none
        self.notice_ns = 0
        self.share = b""  # share in the last notice


class AnnouncedIncast:
    """Announced incast, and its members that have not announced it themselves yet.

    `waiting` has, by address, the life of the sender in which the member is counted.
    """

    def __init__(self, now_ns: int, members: set[int]) -> None:
        self.since_ns = now_ns
        self.members = members
        self.waiting: dict[int, int] = {}
        self.lapsed = False  # they are no longer counted


class ActiveSenders(TimerOwner):
    """The AUSS of a NIC and partition key (III-B), and the state of its link (III-C)."""

    def __init__(self, parameters: DartParameters, path: Path, timers: TimerQueue) -> None:
        self.parameters = parameters
        self.n = 0  # senders with messages in flight
        self.senders: dict[int, ActiveSender] = {}  # all known senders, by address
        self._incasts: dict[int, AnnouncedIncast] = {}  # incasts that a member has not announced yet, by group
        self._state = NO_CONGESTION
        self._marked_ns = 0
        self._hold_ns = round(parameters.state_hold_base_rtts * path.base_rtt_ns)
        self._base_rtt_ns = path.base_rtt_ns
        self._rate_code = LINK_RATES_BPS.index(path.line_rate_bps) if path.line_rate_bps in LINK_RATES_BPS else 0
        self._full_bytes_per_ns = parameters.line_rate_share * path.line_rate_bps / 8e9
        # Ring of the last arrivals and the one before them: times, and bytes that had arrived by
        # then.
        self._arrivals = vec[i64]([-1] * (2 * parameters.rate_packets + 2))
        self._oldest: i64 = 0
        self._arrived_bytes: i64 = 0
        self._timer = Timer(timers, self)

    def sender(self, address: int) -> ActiveSender:
        sender = self.senders.get(address)
        if sender is None:
            sender = ActiveSender(address)
            self.senders[address] = sender
        return sender

    # Who is active

    def enter(self, now_ns: int, sender: ActiveSender) -> None:
        """Count a message of `sender` that begins."""
        sender.last_ns = now_ns
        sender.messages += 1
        if sender.messages == 1:
            self.n += 1
            self._look_at(now_ns + self.parameters.idle_timeout_ns)
            self._n_changed(now_ns)

    def leave(self, now_ns: int, sender: ActiveSender, life: int) -> None:
        """Remove a message that was counted in that life of `sender`."""
        if life != sender.life:
            return
        sender.messages -= 1
        if sender.messages == 0:
            self.n -= 1
            self._n_changed(now_ns)

    def announce(self, now_ns: int, number: int, members: list[int], sender: ActiveSender, begun: bool) -> bool:
        """Record that `sender` announces an incast of the hosts at the addresses `members`.

        `begun` says whether its message has begun. Returns whether the message is counted by this
        call, so that it is not counted when it begins.
        """
        incast = self._incasts.get(number)
        addresses = set(members)
        if incast is not None and (incast.members != addresses or self._is_over(now_ns, incast)):
            self._lapse(now_ns, incast)
            incast = None
        first = incast is None
        if incast is None:
            incast = AnnouncedIncast(now_ns, addresses)
            self._incasts[number] = incast
            for address in members:
                member = self.sender(address)
                if address not in incast.waiting and not (begun and member is sender):
                    incast.waiting[address] = member.life
                    member.announced += 1
                    self.enter(now_ns, member)
            self._look_at(self._lapse_ns(incast))
        counted = incast.waiting.pop(sender.address, -1) == sender.life and not incast.lapsed
        if counted and begun:
            self.retract(now_ns, sender, sender.life)
        if not incast.waiting:
            del self._incasts[number]
        if first:
            for member in self.senders.values():
                active = member.messages > member.announced
                if member.messages > 0 and (active or self.parameters.advert_to == "all"):
                    self.notify(now_ns, member)
        return counted and not begun

    def retract(self, now_ns: int, sender: ActiveSender, life: int) -> None:
        """Retract a message that was announced in that life of `sender` and will not come."""
        if life == sender.life:
            sender.announced -= 1
            self.leave(now_ns, sender, life)

    def _look_at(self, at_ns: int) -> None:
        """Schedule a check for senders that are silent for too long at that time."""
        if at_ns < self._timer.deadline_ns:
            self._timer.arm(at_ns)

    def _lapse_ns(self, incast: AnnouncedIncast) -> int:
        """Return the time at which members without an announcement stop being counted."""
        return incast.since_ns + min(self.parameters.idle_timeout_ns, self.parameters.incast_timeout_ns)

    def _is_over(self, now_ns: int, incast: AnnouncedIncast) -> bool:
        return incast.since_ns + self.parameters.incast_timeout_ns <= now_ns

    def _lapse(self, now_ns: int, incast: AnnouncedIncast) -> None:
        """Stop counting members of this announcement; they are counted by their messages only."""
        if not incast.lapsed:
            incast.lapsed = True
            for address, life in incast.waiting.items():
                self.retract(now_ns, self.senders[address], life)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Remove senders and announced members that have been silent for too long."""
        due_ns = NEVER
        for number, incast in list(self._incasts.items()):
            lapse_ns = self._lapse_ns(incast)
            if lapse_ns <= now_ns:
                self._lapse(now_ns, incast)
            else:
                due_ns = min(due_ns, lapse_ns)
            if self._is_over(now_ns, incast):
                del self._incasts[number]
        for sender in self.senders.values():
            silent_ns = sender.last_ns + self.parameters.idle_timeout_ns
            if sender.messages > 0 and silent_ns <= now_ns:
                sender.messages = 0
                sender.announced = 0
                sender.life += 1
                self.n -= 1
            elif sender.messages > 0:
                due_ns = min(due_ns, silent_ns)
        if self.n > 0:
            timer.arm(due_ns)
        self._n_changed(now_ns)

    # State of its link

    def arrived(self, now_ns: int, link_bytes: int) -> None:
        """Record the arrival of a data packet with its bytes on the link."""
        arrivals = self._arrivals
        at = self._oldest
        self._arrived_bytes += link_bytes
        arrivals[at] = now_ns
        arrivals[at + 1] = self._arrived_bytes
        at += 2
        self._oldest = at if at < len(arrivals) else 0

    def at_line_rate(self, now_ns: int) -> bool:
        """Return whether the last packets arrived at line rate."""
        since_ns: int = self._arrivals[self._oldest]
        since_bytes: int = self._arrived_bytes - self._arrivals[self._oldest + 1]
        return since_ns >= 0 and float(since_bytes) >= self._full_bytes_per_ns * float(now_ns - since_ns)

    def marked(self, now_ns: int) -> bool:
        """Record a mark of the latest packet; return whether it is reported to its sender."""
        self._marked_ns = now_ns
        if self.parameters.apportion and self.n >= 2 and self.at_line_rate(now_ns):
            self._state = RECEIVER_CONGESTION
            return False
        self._state = NON_RECEIVER_CONGESTION
        return True

    def state(self, now_ns: int) -> int:
        if self._state != NO_CONGESTION and now_ns - self._marked_ns >= self._hold_ns:
            self._state = NO_CONGESTION
        return self._state

    # Notices to its senders

    def share(self, now_ns: int, sender: ActiveSender) -> bytes:
        state = self.state(now_ns)
        n = min(max(self.n, 1), MAX_N)
        if state == NON_RECEIVER_CONGESTION or not self.parameters.apportion:
            n = 1
        if n != sender.notice_n or state != sender.notice_state:
            sender.version = (sender.version + 1) & _VERSION_MASK
            sender.notice_n = n
            sender.notice_state = state
            sender.share = (sender.version << 20 | state << 18 | n << 4 | self._rate_code).to_bytes(4, "big")
        sender.notice_ns = now_ns
        return sender.share

    def notify(self, now_ns: int, sender: ActiveSender) -> None:
        """Send a share notice if there is a queue pair to send it on."""
        if sender.points:
            sender.points[0].outlet.send_control(NOTICE, self.share(now_ns, sender))

    def _n_changed(self, now_ns: int) -> None:
        if not self.parameters.advert_on_change:
            return
        for sender in self.senders.values():
            wrong = self.n > 2 * sender.notice_n or sender.notice_n > 2 * self.n
            if sender.messages > 0 and wrong and now_ns - sender.notice_ns >= self._base_rtt_ns:
                self.notify(now_ns, sender)


class DartReceiver(NotificationPoint):
    """Notification point of one queue pair, which uses the AUSS of its NIC."""

    def __init__(self, parameters: DartParameters, path: Path) -> None:
        super().__init__(path)
        self.parameters = parameters
        self.own_ack = ACK
        self._now_ns = 0
        self._begun = 0  # number of messages
        self._life = -1  # life of the sender in which its message is counted; -1: none
        self._announced: dict[int, int] = {}  # life of messages that were counted when they were announced

    def bind(self, outlet: NotificationOutlet) -> None:
        super().bind(outlet)
        senders = self.host.part(f"Dart's senders, partition {outlet.partition_key():#06x}", self._make)
        assert isinstance(senders, ActiveSenders)
        self.senders = senders
        self.sender = senders.sender(outlet.peer_address())
        self.sender.points.append(self)

    def _make(self) -> ActiveSenders:
        return ActiveSenders(self.parameters, self.path, self.host.timers)

    def close(self) -> None:
        super().close()
        self.sender.points.remove(self)
        if self._life >= 0:
            self.senders.leave(self._now_ns, self.sender, self._life)
        for life in self._announced.values():
            self.senders.retract(self._now_ns, self.sender, life)

    def on_message_start(self, now_ns: int) -> None:
        life = self._announced.pop(self._begun, -1)
        self._begun += 1
        self._life = self.sender.life
        if life != self._life:
            self.senders.enter(now_ns, self.sender)
        else:
            self.sender.announced -= 1

    def on_message_end(self, now_ns: int, size_bytes: int) -> None:
        self.senders.leave(now_ns, self.sender, self._life)
        self._life = -1

    def echo(self, now_ns: int, marked: bool, frame: bytes) -> bool:
        """Update the state by a packet before its ACK is made; return whether the ACK echoes the mark."""
        self._now_ns = now_ns
        self.sender.last_ns = now_ns
        total_bytes: int = frame[wire.TOTAL_LENGTH] << 8 | frame[wire.TOTAL_LENGTH + 1]
        self.senders.arrived(now_ns, self.path.link_bytes(wire.ETHERNET_BYTES + total_bytes))
        passed = marked and self.senders.marked(now_ns)
        if passed and self.parameters.fall_back and now_ns >= self.sender.next_cnp_ns:
            self.sender.next_cnp_ns = now_ns + self.parameters.cnp_interval_ns
            self.outlet.send_cnp()
        return passed

    def ack_body(self) -> bytes:
        return self.senders.share(self._now_ns, self.sender)

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        nics = self.host.nics
        ids = [record["nic"] for record in LOOK_AHEAD.decode_records(frame, offset)]
        members = [nics[number] for number in ids if number < len(nics)]
        if len(members) < len(ids) or self.sender.address not in members:
            self.outlet.count_malformed()
            return
        self._now_ns = now_ns
        ahead = (wire.psn(frame) - self._begun) & wire.PSN_MASK
        begun = ahead >= wire.PSN_HALF
        number = LOOK_AHEAD.get("group", frame, offset)
        if self.senders.announce(now_ns, number, members, self.sender, begun):
            self._announced[self._begun + ahead] = self.sender.life


# The sender


class SourceQueue:
    """Count of bytes that the NIC's limiters have released and its link has not sent (III-C).

    No queue holds these bytes, because packets that wait for the link stay at their limiter. A limiter does not
    make up for packets that it could not send in time. The count rises with the sum of the limiters' rates, and falls
    with the link's rate.
    """

    def __init__(self, line_rate_bps: float) -> None:
        self.points: list[Dart] = []  # points with something to send
        self._line_rate_bps = line_rate_bps
        self._held_bytes = 0.0  # held bytes at `_counted_ns`
        self._counted_ns = 0

    def held_bytes(self, now_ns: int) -> float:
        points = self.points
        if len(points) == 1 and self._held_bytes == 0.0:  # it is not faster than the link
            points[0].released_ns = now_ns
            self._counted_ns = now_ns
            return 0.0
        held_bytes = self._held_bytes - self._line_rate_bps * float(now_ns - self._counted_ns) / 8e9
        waiting_bytes = 0
        for point in points:
            held_bytes += point.released_bytes(now_ns)
            waiting_bytes += point.traffic.waiting_bytes - point.traffic.held_bytes
        self._held_bytes = min(max(held_bytes, 0.0), float(waiting_bytes))
        self._counted_ns = now_ns
        return self._held_bytes


class Dart(CompositeReactionPoint):
    """Reaction point of all queue pairs to one receiver, which share its rate."""

    def __init__(self, parameters: DartParameters, path: Path, parts: list[ReactionPoint]) -> None:
        super().__init__(path, parts)
        self.parameters = parameters
        self.own_headers = parameters.tokens > 0 or parameters.source_ecn_bytes > 0
        self.alone_bytes = parameters.short_bytes if parameters.short_alone and parameters.tokens > 0 else -1
        self.released_ns = 0  # time until which released bytes are counted
        # Largest size of messages with tokens.
        self._short_bytes = parameters.short_bytes if parameters.tokens > 0 else -1
        self._with_tokens: dict[bytes, bytes] = {}  # headers with tokens, by the usual headers
        self._source_ecn_bytes = float(parameters.source_ecn_bytes)
        self._busy = 0  # number of queue pairs with data to send or unacknowledged data
        self._version = -1  # version of the last share; -1: none
        self._in_force = -1  # share of the last ACK; -1 after an event that may change the rate
        self._acked_bps = path.line_rate_bps  # rate by the last ACK
        self._advert_bps = 0.0  # rate by a notice, until an ACK comes or it expires; 0: none
        self._first_window = UNLIMITED  # window until the first ACK
        self._listed = False  # whether it is in the source queue
        self._queue = SourceQueue(path.line_rate_bps)

    def bind(self, outlet: ReactionOutlet) -> None:
        super().bind(outlet)
        queue = self.host.part("Dart's source queue", self._make_queue)
        assert isinstance(queue, SourceQueue)
        self._queue = queue
        self._lapse = self.timer()

    def _make_queue(self) -> SourceQueue:
        return SourceQueue(self.path.line_rate_bps)

    def on_start(self, now_ns: int) -> None:
        """Start at line rate after idleness, unless a notice limits the sender."""
        self._busy += 1
        if self._busy == 1:
            self._acked_bps = self.path.line_rate_bps
            self._in_force = -1
            if self.parameters.first_window_bdp > 0.0:
                self._first_window = self.parameters.first_window_bdp * self.path.bdp_bytes
            self._apply()
        super().on_start(now_ns)

    def on_idle(self, now_ns: int) -> None:
        self._busy -= 1
        self._unlist()  # packets that were given up may be acknowledged without being sent again
        super().on_idle(now_ns)

    def on_post(self, now_ns: int) -> None:
        self._list(now_ns)
        super().on_post(now_ns)

    def on_timeout(self, now_ns: int) -> None:
        self._list(now_ns)
        super().on_timeout(now_ns)

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        self._list(now_ns)
        super().on_nack(now_ns, wire_bytes, trimmed)

    def _list(self, now_ns: int) -> None:
        """Join the source queue if there is something to send."""
        if not self._listed and self.traffic.waiting_bytes > self.traffic.held_bytes:
            self._listed = True
            self.released_ns = now_ns
            self._queue.points.append(self)

    def _unlist(self) -> None:
        """Leave the source queue if nothing waits any more."""
        if self._listed and self.traffic.waiting_bytes == self.traffic.held_bytes:
            self._listed = False
            self._queue.points.remove(self)

    def on_incast(self, now_ns: int, outlet: Outlet, sequence: int, number: int, members: tuple[int, ...]) -> None:
        """Announce the incast in the class of data, so that it precedes the message in the network."""
        if self.parameters.look_ahead:
            body = LOOK_AHEAD.encode([{"nic": member} for member in members], group=number & 0xFFFF)
            outlet.send_control(LOOK_AHEAD, body, psn=sequence & wire.PSN_MASK, priority=outlet.data_priority())

    def data_headers(
        self, now_ns: int, headers: bytes, place: int, message_bytes: int, alone: bool, again: bool
    ) -> bytes:
        if message_bytes <= self._short_bytes:
            p = self.parameters
            if (alone or not p.short_alone) and (p.tokens_again or not again):
                headers = self._deflectable(headers)
        if self._source_ecn_bytes > 0.0:
            self._list(now_ns)  # the message was held
            if self._queue.held_bytes(now_ns) > self._source_ecn_bytes:
                return _marked(headers)
        return headers

    def _deflectable(self, headers: bytes) -> bytes:
        with_token = self._with_tokens.get(headers)
        if with_token is None:
            first = headers[wire.BECN] | self.parameters.tokens << 3
            with_token = headers[: wire.BECN] + bytes((first,)) + headers[wire.BECN + 1 :]
            self._with_tokens[headers] = with_token
        return with_token

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        self._unlist()
        super().on_sent(now_ns, wire_bytes)

    def released_bytes(self, now_ns: int) -> float:
        """Return the bytes released since the last call: at the rate, or none if the window is closed."""
        since_ns = self.released_ns
        self.released_ns = now_ns
        if not self.may_send(self.traffic.inflight_bytes):
            return 0.0
        return self.rate_bps * float(now_ns - since_ns) / 8e9

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """Handle a share in an ACK or a notice."""
        acknowledged = opcode == ACK.opcode
        place = offset + wire.AETH_BYTES if acknowledged else offset
        word: i64 = read_i64_be(frame, place - SHARE_HEADER_BYTES) & 0xFFFFFFFF
        share: int = word
        if acknowledged and share == self._in_force:
            return
        version = _VERSION.get(frame, place)
        if self._version >= 0 and (version - self._version) & _VERSION_MASK >= _OLDER:
            return
        self._version = version
        rate_bps = self.path.line_rate_bps
        code = _RATE_CODE.get(frame, place)
        if code > 0:
            rate_bps = min(rate_bps, LINK_RATES_BPS[code])
        rate_bps /= float(_N.get(frame, place))
        if _STATE.get(frame, place) == RECEIVER_CONGESTION:
            rate_bps *= 1.0 - self.parameters.drain_share
        if acknowledged:
            self._acked_bps = rate_bps
            self._advert_bps = 0.0
            self._first_window = UNLIMITED
            self._lapse.cancel()
            self._in_force = share
        else:
            self._advert_bps = rate_bps
            self._in_force = -1
            self._lapse.arm(now_ns + _ADVERT_VALID_NS)
        self._apply()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Drop the share of a notice that no ACK has confirmed."""
        self._advert_bps = 0.0
        self._apply()
        self.outlet.window_opened()

    def _apply(self) -> None:
        share_bps = self._advert_bps if self._advert_bps > 0.0 else self._acked_bps
        self.own_window_bytes = self._first_window
        if self.parameters.share_as == "window":
            frames_bps = self.path.frames_bps(share_bps)  # windows count frames without framing
            window_bytes = max(frames_bps * float(self.path.base_rtt_ns) / 8e9, float(self.path.wire_bytes))
            if share_bps < self.path.line_rate_bps:
                self.own_window_bytes = min(self.own_window_bytes, window_bytes)
        else:
            self.own_rate_bps = share_bps
        self.follow()


def _marked(header: bytes) -> bytes:
    changed = bytearray(header)
    changed[wire.TOS] |= wire.CE
    return wire.checksummed(changed)


def reaction_point(parameters: DartParameters, mechanisms: Mapping[str, object], path: Path) -> ReactionPoint:
    """Return the reaction point, with a protocol among the mechanisms as its fall-back."""
    parts: list[ReactionPoint] = []
    for added in mechanisms.values():
        assert isinstance(added, Protocol)
        parts.append(added.reaction_point(path))
    if parameters.fall_back and not parts:
        parts.append(Dcqcn(DcqcnPaperParameters(), path))
    return Dart(parameters, path, parts)


def notification_point(parameters: DartParameters, path: Path) -> NotificationPoint:
    return DartReceiver(parameters, path)


DART: Final = ProtocolInfo(
    name="dart",
    summary="a receiver's senders counted, each at 1/n; short messages deflected; DCQCN for the rest",
    source="Xue et al., Dart: Divide and Specialize for Fast Response to Congestion; corrected",
    program="dart",
    parameters=DartParameters,
    reaction_point=reaction_point,
    notification_point=notification_point,
    mechanisms=("dcqcn",),
    packets=(ACK, NOTICE, LOOK_AHEAD),
    scope=SCOPE_PAIR,
    scopes=(SCOPE_PAIR,),
    reliabilities=(GO_BACK_N,),
    single_path=True,
    held_back_by="grants",
)
register(DART)
register(
    dataclasses.replace(
        DART,
        name="dart-paper",
        summary="the same as printed: no window before the first ACK, full shares, short messages back to back",
        source="Xue et al., Dart: Divide and Specialize for Fast Response to Congestion",
        parameters=DartPaperParameters,
        held_back_by="feedback",
    )
)
