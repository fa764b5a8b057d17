"""Queue pair: addressing, frame templates, and the two halves of the transport, created on demand.

Most queue pairs only send or only receive, and there may be a million of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationPoint, ReactionPoint, Trimmed
from host_agents.config import DATAGRAM, MAX_INCAST, SELECTIVE_REPEAT
from host_agents.datagram import DatagramReceiver, DatagramSender
from host_agents.errors import HostError
from host_agents.fifo import Fifo
from host_agents.frames import Frames
from host_agents.go_back_n import GoBackNReceiver, GoBackNSender
from host_agents.lb.base import FIRST_ENTROPY, LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.members import Members
from host_agents.messages import Connection, Delivery, IncastGroup, Message
from host_agents.outlet import Group, ReceiverOutlet, SenderOutlet
from host_agents.receiver import Receiver
from host_agents.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender
from host_agents.sender import Sender
from host_agents.sending import Sending
from host_agents.timers import Timer
from host_agents.transport import Transport

if TYPE_CHECKING:
    from host_agents.nic import Nic


# One shared object each, because nothing keeps a reference to it.
_feedback: Final = Feedback()
_nothing_scheduled: Final[Fifo[Message]] = Fifo()
_trimmed: Final = Trimmed()


class QueuePair(Connection):
    """One end of a reliable connection, opened by `Nic.open_qp`."""

    def __init__(
        self,
        nic: Nic,
        qpn: int,
        frames: Frames,
        sending: Sending,
        notification_point: NotificationPoint,
        first_psn: int,
    ) -> None:
        super().__init__(qpn)
        # Attributes that every packet needs come first, to occupy fewer cache lines.
        self.nic = nic
        self.peer_address = frames.peer_address
        self._sender: Sender | None = None
        self._receiver: Receiver | None = None
        self._busy = False
        self.retired = False  # whether it sends no more data
        self.failed = False  # whether it is in error: it neither sends nor receives
        self._rtt_ns = -1  # latest RTT; -1: none since the last call of `take_rtt_ns`
        self.telemetry = frames.telemetry
        self.option_bytes = frames.lengths.option_bytes
        self.short_bytes = frames.lengths.short_bytes
        self._inside_bytes = frames.lengths.inside_bytes
        self._stamps = sending.config.stamps
        self._notifies = notification_point.listens
        self.notification_point = notification_point
        self.frames = frames
        self._sending = sending
        self._first_psn = first_psn
        self._group: Group | None = sending.shared
        self._balancer_seed: int = nic.host.random.getrandbits(32)
        self._posted = 0
        self._scheduled: Fifo[Message] = Fifo()  # messages that start later
        self._entropy = -1  # entropy of data while there is no sending half; -1: not yet determined
        self._outlet: ReceiverOutlet | None = None  # outlet of the notification point, if it sends anything
        self._start_timer: Timer | None = None  # a receiving end needs no timer
        if sending.shared is not None:
            self._make_sender()  # the shared reaction point may send through it
        if self._notifies:
            outlet = ReceiverOutlet(nic.host, self, frames, nic, sending.data_priority)
            self._outlet = outlet
            notification_point.bind(outlet)

    def close(self) -> None:
        """Forget the queue pair; see `Nic.close_qp`."""
        self.notification_point.close()
        if self._receiver is not None:
            self._receiver.close()
        if self._outlet is not None:
            self._outlet.is_open = False
        if self._sender is not None and self._group is not None:
            self._group.leave(self._sender)

    def retire(self) -> bool:
        """Release the sending half, since everything is acknowledged and nothing more will be posted.

        Later answers are counted but have no effect. If the reaction point sends through this
        sending half for other queue pairs, it is kept. Returns False if the reaction point is not
        yet at rest, so that this has to be called again.
        """
        sender = self._sender
        group = self._group
        if sender is None or group is None or not self._sending.retires:
            return True
        if sender.messages.size > 0 or self._scheduled.size > 0:
            raise HostError(f"queue pair {self.qpn} of {self.nic.config.address} still has messages to send")
        if not sender.point.at_rest:
            return False
        self.retired = True
        self._entropy = sender.entropy
        self._sender = None
        self._group = None
        self._scheduled = _nothing_scheduled
        if self._start_timer is not None:
            self._start_timer.dismiss()
            self._start_timer = None
        group.leave(sender)
        sender.dismiss()
        return True

    # Halves

    @property
    def sender(self) -> Sender:
        """The sending half.

        It is made along with limiter, load balancer and, unless it is shared, the reaction point.
        """
        sender = self._sender
        return self._make_sender() if sender is None else sender

    @property
    def receiver(self) -> Receiver:
        """The receiving half, without the notification point."""
        receiver = self._receiver
        return self._make_receiver() if receiver is None else receiver

    @property
    def reaction_point(self) -> ReactionPoint:
        return self.sender.point

    @property
    def limiter(self) -> RateLimiter:
        return self.sender.limiter

    @property
    def load_balancer(self) -> LoadBalancer:
        return self.sender.load_balancer

    def _make_sender(self) -> Sender:
        sending = self._sending
        group = self._group
        if group is None:
            group = sending.group()
            self._group = group
        limiter = sending.limiter(group)
        balancer = sending.load_balancing.create(self._balancer_seed, sending.path)
        reliability = sending.config.reliability
        if reliability == SELECTIVE_REPEAT:
            sender: Sender = SelectiveRepeatSender(self._transport(), limiter, balancer)
        elif reliability == DATAGRAM:
            sender = DatagramSender(self._transport(), limiter, balancer)
        else:
            sender = GoBackNSender(self._transport(), limiter, balancer)
        self._sender = sender
        group.join(sender)
        return sender

    def _make_receiver(self) -> Receiver:
        reliability = self._sending.config.reliability
        if reliability == SELECTIVE_REPEAT:
            receiver: Receiver = SelectiveRepeatReceiver(self._transport())
        elif reliability == DATAGRAM:
            receiver = DatagramReceiver(self._transport())
        else:
            receiver = GoBackNReceiver(self._transport())
        self._receiver = receiver
        return receiver

    def _transport(self) -> Transport:
        nic = self.nic
        return Transport(self, nic, self.frames, self.notification_point, self._sending.config, self._first_psn)

    def data_entropy(self) -> int:
        sender = self._sender
        if sender is not None:
            return sender.entropy
        if self._entropy < 0:
            balancer = self._sending.load_balancing.create(self._balancer_seed, self._sending.path)
            self._entropy = FIRST_ENTROPY if balancer.balances else balancer.next_entropy(self.nic.now_ns)
        return self._entropy

    def control_entropy(self, now_ns: int) -> int:
        return self._entropy if self.retired else self.sender.load_balancer.control_entropy(now_ns)

    @property
    def sends(self) -> bool:
        """True if messages that have started are not yet acknowledged."""
        sender = self._sender
        return sender is not None and sender.messages.size > 0

    @property
    def holds_early(self) -> bool:
        """True if packets have arrived out of order, so that any packet may deliver them."""
        receiver = self._receiver
        return receiver is not None and receiver.holds_early

    def may_complete(self, psn: int) -> bool:
        """Return whether a message may be complete once all packets up to this PSN are acknowledged."""
        sender = self._sender
        return sender is not None and sender.absolute(psn) + 1 >= sender.message_end

    def hears(self, address: int) -> bool:
        """Return whether a host other than `peer_address` may be at the other end."""
        return False

    def path_of(self, path_id: int, frame: bytes) -> int:
        """Return a number for the path that the path id in the answer `frame` identifies."""
        return path_id

    @property
    def rate_bps(self) -> float:
        """The reaction point's rate."""
        return self.reaction_point.rate_bps

    @property
    def window_bytes(self) -> float:
        return self.reaction_point.window_bytes

    @property
    def inflight_bytes(self) -> int:
        """Wire bytes in flight; with the scope `pair`, of all queue pairs that share the limiter."""
        return self.limiter.inflight_bytes

    def take_rtt_ns(self) -> int:
        """Return the latest RTT measured since the last call; -1 if there is none."""
        rtt_ns = self._rtt_ns
        self._rtt_ns = -1
        return rtt_ns

    # Messages

    def post(self, size_bytes: int, start_ns: int = 0, tag: object = None, group: IncastGroup | None = None) -> Message:
        """Send `size_bytes`, not before `start_ns` nor before the messages posted earlier.

        Raises ValueError for a negative size.

        `group` is the incast that the message belongs to. Raises HostError for an invalid incast,
        and if the queue pair is in error.
        """
        if size_bytes < 0:
            raise ValueError(f"message of {size_bytes} bytes: expected 0 or more")
        if self.failed:
            raise HostError(f"queue pair {self.qpn} of {self.nic.config.address} is in error: its retries are used up")
        if self.retired:
            raise HostError(f"queue pair {self.qpn} of {self.nic.config.address} is retired: it sends no more data")
        if group is not None:
            self._check(group)
        start_ns = max(start_ns, self.nic.now_ns)
        if self._scheduled.size > 0:
            start_ns = max(start_ns, self._scheduled.last().start_ns)
        message = Message(self, self._posted, size_bytes, start_ns, tag, group)
        self._posted += 1
        self.stats.bytes_posted += size_bytes
        self._scheduled.push(message)
        if self._start_timer is None:
            self._start_timer = Timer(self.nic.timers, self)
        self._start_timer.arm(self._scheduled.peek().start_ns)
        return message

    def _check(self, group: IncastGroup) -> None:
        nics = self.nic.config.nics
        if not 0 < len(group.members) <= MAX_INCAST:
            raise HostError(f"group {group.number}: {len(group.members)} members; expected 1 to {MAX_INCAST}")
        for member in group.members:
            if not 0 <= member < len(nics):
                raise HostError(f"group {group.number}: no NIC has the id {member}; expected less than {len(nics)}")
        if self.nic.address not in [nics[member] for member in group.members]:
            raise HostError(f"group {group.number}: {self.nic.config.address}, which sends, is not among its members")

    def truncate(self, message: Message) -> None:
        """End `message` with the next packet; its size becomes the bytes sent by then.

        Raises ValueError if a message was posted after it, or it has not started.
        """
        if message.sequence != self._posted - 1 or self._scheduled.size > 0:
            raise ValueError(f"message {message.sequence}: expected the last one posted, after its start")
        posted_bytes = message.size_bytes
        self.sender.truncate(message)
        self.stats.bytes_posted -= posted_bytes - message.size_bytes

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Start the scheduled messages that are due."""
        sender = self.sender
        while self._scheduled.size > 0 and self._scheduled.peek().start_ns <= now_ns:
            message = self._scheduled.pop()
            if self.failed:
                self._fail(now_ns, message)
                continue
            sender.post(message)
            group = message.group
            if group is not None:
                outlet = SenderOutlet(self.nic.host, sender.traffic, self.nic)
                outlet.senders.append(sender)
                sender.point.on_incast(now_ns, outlet, message.sequence, group.number, group.members)
        if self._scheduled.size > 0:
            timer.arm(self._scheduled.peek().start_ns)
        if self.failed:
            return
        if not self._busy:
            self._busy = True
            sender.point.on_start(now_ns)
        sender.point.on_post(now_ns)
        sender.limiter.add(sender)
        sender.limiter.wake(now_ns)

    def retries_exceeded(self, now_ns: int) -> None:
        self.failed = True
        self.notification_point.close()
        if self._receiver is not None:
            self._receiver.close()
        self.nic.forget(self)
        self.nic.stats.retries_exceeded += 1
        sender = self.sender
        if self._group is not None and self._group.shared:
            self._group.leave(sender)  # the group would not get the answers to packets sent through it
        left = sender.abandon()
        while self._scheduled.size > 0 and self._scheduled.peek().start_ns <= now_ns:
            left.append(self._scheduled.pop())
        for message in left:
            self._fail(now_ns, message)
        if self._busy:
            self._busy = False
            sender.point.on_idle(now_ns)

    def _fail(self, now_ns: int, message: Message) -> None:
        message.failed_ns = now_ns
        callback = self.nic.on_failed
        if callback is not None:
            callback(message)

    def completed(self, message: Message) -> None:
        callback = self.nic.on_complete
        if callback is not None:
            callback(message)

    def delivered(self, delivery: Delivery) -> None:
        callback = self.nic.on_delivered
        if callback is not None:
            callback(delivery)

    # Received frames, whose addresses and lengths the NIC has checked

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        pcie = self.nic.pcie
        if pcie is not None and not pcie.take(now_ns, wire.wire_bytes(frame)):
            self.on_trimmed(now_ns, psn, frame)
            return
        stats = self.stats
        stats.packets_received += 1
        stats.links_crossed += wire.INITIAL_TTL + 1 - frame[wire.TTL]
        if marked:
            stats.marked_received += 1
        if self._stamps:
            sent_ns = wire.stamp_ns(frame, payload_bytes - self._inside_bytes)
            if 0 <= sent_ns <= now_ns:
                stats.max_latency_ns = max(stats.max_latency_ns, now_ns - sent_ns)
        receiver = self._receiver
        if receiver is None:
            receiver = self._make_receiver()
        receiver.on_data(now_ns, psn, payload_bytes, last, ack_request, marked, frame)
        if self._notifies:
            self.notification_point.on_data(now_ns, marked, frame)

    def on_ack(self, now_ns: int, psn: int, syndrome: int, frame: bytes, offset: int) -> None:
        """Handle an ACK or NAK; its AETH is at `offset`, and an INT shim lies between BTH and AETH."""
        self.stats.acks_received += 1
        sender = self._sender
        if sender is None:
            if self.retired:
                self._count_late(frame, syndrome == wire.SYNDROME_NAK_SEQUENCE)
                return
            sender = self._make_sender()
        number = sender.absolute(psn)
        if syndrome == wire.SYNDROME_NAK_SEQUENCE:
            self.stats.naks_received += 1
            sender.identify(now_ns, number - 1, number, _feedback)
            acked_bytes = sender.on_nak(now_ns, number)
            self._feed_back(now_ns, sender, acked_bytes, frame)
            sender.point.on_nack(now_ns, sender.point.path.wire_bytes, False)
            sender.limiter.add(sender)
        else:
            sender.identify(now_ns, number, number + 1, _feedback)
            acked_bytes = sender.on_ack(now_ns, number)
            self._feed_back(now_ns, sender, acked_bytes, frame)
        self._after_ack(now_ns, sender)

    def on_sack(
        self, now_ns: int, psn: int, first_missing_psn: int, map_psn: int, early: i64, frame: bytes, offset: int
    ) -> None:
        """Handle a selective ACK; its AETH is at `offset`."""
        self.stats.acks_received += 1
        sender = self._sender
        if sender is None:
            if self.retired:
                self._count_late(frame, False)
                return
            sender = self._make_sender()
        number = sender.absolute(psn)
        first_missing = sender.absolute(first_missing_psn)
        sender.identify(now_ns, number, first_missing, _feedback)
        acked_bytes = sender.on_sack(now_ns, number, first_missing, sender.absolute(map_psn), early)
        self._feed_back(now_ns, sender, acked_bytes, frame)
        self._after_ack(now_ns, sender)

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> None:
        self.stats.trimmed_received += 1
        missing = self.receiver.on_trimmed(now_ns, psn, frame)
        self.notification_point.on_trimmed(now_ns, missing, frame)

    def on_nack(self, now_ns: int, psn: int, frame: bytes) -> None:
        """Handle a NACK of a trimmed packet.

        A trim at the last hop is no feedback on the path.
        """
        self.stats.nacks_received += 1
        if self.retired:
            return
        sender = self.sender
        trimmed = _trimmed
        trimmed.now_ns = now_ns
        trimmed.marked = frame[wire.BECN] & 0x40 != 0
        trimmed.last_hop = frame[wire.PAD] & 0x80 != 0
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        if trimmed.last_hop:
            sender.load_balancer.on_ack(now_ns, entropy, trimmed.marked)
        else:
            sender.load_balancer.on_nack(now_ns, entropy)
        sender.on_nack(sender.absolute(psn), trimmed)
        sender.limiter.wake(now_ns)

    def on_cnp(self, now_ns: int) -> None:
        self.stats.cnps_received += 1
        if not self.retired:
            self.reaction_point.on_cnp(now_ns)

    def _count_late(self, frame: bytes, nak: bool) -> None:
        """Count an answer to a queue pair that sends no more data."""
        if nak:
            self.stats.naks_received += 1
        if frame[wire.BECN] & 0x40 != 0:
            self.stats.marks_heard += 1

    def _feed_back(self, now_ns: int, sender: Sender, acked_bytes: int, frame: bytes) -> None:
        """Pass feedback to reaction point and load balancer; the sender has identified the packet of the ACK."""
        feedback = _feedback
        feedback.now_ns = now_ns
        feedback.acked_bytes = acked_bytes
        feedback.marked = frame[wire.BECN] & 0x40 != 0
        if feedback.marked:
            self.stats.marks_heard += 1
        feedback.entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        feedback.hops = wire.INITIAL_TTL - frame[wire.TTL]
        if feedback.resent and feedback.rtt_ns < sender.point.path.base_rtt_over(feedback.hops):
            feedback.rtt_ns = -1
        if feedback.rtt_ns == 0:
            feedback.rtt_ns = -1  # a frame cannot be answered at the time of its sending, so the answer is forged
        if feedback.rtt_ns >= 0:
            self._rtt_ns = feedback.rtt_ns
        if self.telemetry:
            feedback.frame = frame
            shim = frame[wire.AFTER_BTH] << 8 | frame[wire.AFTER_BTH + 1]
            feedback.int_hops = shim >> 12
            feedback.path_id = self.path_of(shim & 0xFFF, frame)
            feedback.int_offset = wire.AFTER_BTH + wire.SHIM_BYTES
        else:
            feedback.int_hops = 0
        # The packets that are answered because they were late come from the slowest paths. A load
        # balancer would learn only these paths from them.
        if sender.balanced and not feedback.unsolicited:
            sender.load_balancer.on_ack(now_ns, feedback.entropy, feedback.marked)
        sender.point.on_ack(feedback)

    def _after_ack(self, now_ns: int, sender: Sender) -> None:
        if sender.message_end <= sender.unacked:
            sender.complete_messages(now_ns)
        if self._busy and sender.messages.size == 0:
            self._busy = False
            sender.point.on_idle(now_ns)
        sender.limiter.wake(now_ns)


class GroupQueuePair(QueuePair):
    """Sending end of a connection to a multicast group, whose members answer by unicast.

    The members are ordinary receivers. Congestion control gets the ACK after which all members have
    a packet. Retransmissions are sent to all members, and those that have the packet discard it. A
    NAK counts if all other members have the packets before it; other losses are found by time-out.
    """

    def __init__(
        self,
        nic: Nic,
        qpn: int,
        frames: Frames,
        sending: Sending,
        notification_point: NotificationPoint,
        first_psn: int,
        members: Members,
    ) -> None:
        super().__init__(nic, qpn, frames, sending, notification_point, first_psn)
        self._members = members

    def may_complete(self, psn: int) -> bool:
        """Return True, since one member's acknowledgement may be the last missing one of the group."""
        return True

    def hears(self, address: int) -> bool:
        return self._members.has(address)

    def path_of(self, path_id: int, frame: bytes) -> int:
        """Return a number for the path to one member; each member has its own ids."""
        return self._members.place(frame) << 12 | path_id

    def on_ack(self, now_ns: int, psn: int, syndrome: int, frame: bytes, offset: int) -> None:
        sender = self.sender
        number = sender.absolute(psn)
        nak = syndrome == wire.SYNDROME_NAK_SEQUENCE
        least = self._members.least_after(number if nak else number + 1, frame, sender.unacked, sender.fresh)
        if nak and least == number:
            super().on_ack(now_ns, psn, syndrome, frame, offset)
        else:
            self._on_least(now_ns, least, frame, offset)

    def on_sack(
        self, now_ns: int, psn: int, first_missing_psn: int, map_psn: int, early: i64, frame: bytes, offset: int
    ) -> None:
        """Handle only the first missing packet of a member's SACK.

        All later packets are sent again to all members.
        """
        sender = self.sender
        first_missing = sender.absolute(first_missing_psn)
        least = self._members.least_after(first_missing, frame, sender.unacked, sender.fresh)
        self._on_least(now_ns, least, frame, offset)

    def _on_least(self, now_ns: int, least: int, frame: bytes, offset: int) -> None:
        """Handle that all members have every packet before `least`, according to the answer `frame`."""
        sender = self.sender
        if least > sender.unacked:
            super().on_ack(now_ns, (sender.psn_base + least - 1) & wire.PSN_MASK, wire.SYNDROME_ACK, frame, offset)
        else:
            self.stats.acks_received += 1
