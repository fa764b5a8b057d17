"""A queue pair: addressing, frame templates, and the two halves of the transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from host_agents import wire
from host_agents.cc.base import Feedback, NotificationPoint, ReactionPoint
from host_agents.fifo import Fifo
from host_agents.lb.base import FIRST_ENTROPY, LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.messages import Message, QpStats
from host_agents.receiver import Receiver
from host_agents.sender import Sender
from host_agents.template import ack_frame, counter_frame
from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.nic import Nic


# There is one, because nothing keeps it.
_feedback: Final = Feedback()


class QueuePair(TimerOwner):
    """One end of a reliable connection. Open it with `Nic.open_qp`."""

    # Set by the NIC right after construction; they need the queue pair to exist.
    sender: Sender
    receiver: Receiver

    def __init__(
        self,
        nic: Nic,
        qpn: int,
        peer_qpn: int,
        peer_address: int,
        telemetry: bool,
        reaction_point: ReactionPoint,
        notification_point: NotificationPoint,
        load_balancer: LoadBalancer,
        limiter: RateLimiter,
    ) -> None:
        # What every packet touches comes first: fewer cache lines.
        self.nic = nic
        self.qpn = qpn
        self.peer_address = peer_address
        self.reaction_point = reaction_point
        self.limiter = limiter
        self.stats = QpStats()
        self.entropy = FIRST_ENTROPY  # of the data packet sent last
        self.next_member: QueuePair | None = None  # in the limiter's ring
        self.listed = False  # in that ring
        self.balanced = load_balancer.balances
        self._busy = False
        self._rtt_ns = -1  # the latest; -1: none since it was taken
        self._telemetry = telemetry
        self._notifies = type(notification_point) is not NotificationPoint
        self._ack_hops = -1  # INT records of the template; -1: no shim
        self._ack_template = b""
        self.load_balancer = load_balancer
        self.notification_point = notification_point
        self.peer_qpn = peer_qpn
        self.mtu_bytes = nic.config.mtu_bytes
        self._address = nic.address
        self._data_dscp = 8 * limiter.priority
        self._control_dscp = 8 * nic.config.control_priority
        self._opcode_offset = wire.WITH_INT if telemetry else 0
        self._shim_bytes = wire.SHIM_BYTES if telemetry else 0
        self._data_templates: dict[int, bytes] = {}  # by opcode and payload
        self._cnp = b""
        self._counter_templates: dict[int, bytes] = {}  # by opcode
        self._posted = 0
        self._scheduled: Fifo[Message] = Fifo()  # to start later
        self._start_timer = Timer(nic.timers, self)

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
        """The latest RTT measured since the last call; -1: none."""
        rtt_ns = self._rtt_ns
        self._rtt_ns = -1
        return rtt_ns

    # Messages

    def post(self, size_bytes: int, start_ns: int = 0, tag: object = None) -> Message:
        """Send `size_bytes`, not before `start_ns` nor before the messages posted earlier. Raises ValueError."""
        if size_bytes < 0:
            raise ValueError(f"message of {size_bytes} bytes: expected 0 or more")
        start_ns = max(start_ns, self.nic.now_ns)
        if self._scheduled.size > 0:
            start_ns = max(start_ns, self._scheduled.last().start_ns)
        message = Message(self, self._posted, size_bytes, start_ns, tag)
        self._posted += 1
        self.stats.bytes_posted += size_bytes
        self._scheduled.push(message)
        self._start_timer.arm(self._scheduled.peek().start_ns)
        return message

    def truncate(self, message: Message) -> None:
        """Send no more of `message` than the packet that ends it; its size becomes what it has got to.

        Raises ValueError if a message was posted after it, or it has not started.
        """
        if message.sequence != self._posted - 1 or self._scheduled.size > 0:
            raise ValueError(f"message {message.sequence}: expected the last one posted, after its start")
        posted_bytes = message.size_bytes
        self.sender.truncate(message)
        self.stats.bytes_posted -= posted_bytes - message.size_bytes

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """The start of a message."""
        while self._scheduled.size > 0 and self._scheduled.peek().start_ns <= now_ns:
            self.sender.post(self._scheduled.pop())
        if self._scheduled.size > 0:
            self._start_timer.arm(self._scheduled.peek().start_ns)
        if not self._busy:
            self._busy = True
            self.reaction_point.on_start(now_ns)
        self.reaction_point.on_post(now_ns)
        self.limiter.add(self)
        self.limiter.wake(now_ns)

    # Frames out

    def data_wire_bytes(self, payload_bytes: int) -> int:
        """A data packet of so many bytes, on the wire as it leaves."""
        return wire.ETHERNET_BYTES + wire.OVERHEAD_BYTES + self._shim_bytes + payload_bytes + (-payload_bytes & 3)

    def data_template(self, opcode: int, payload_bytes: int) -> bytes:
        """A data frame of this kind, with entropy, AckReq and PSN left open."""
        key = opcode << 16 | payload_bytes
        template = self._data_templates.get(key)
        if template is None:
            pad = -payload_bytes & 3
            start = wire.header(
                self._address,
                self.peer_address,
                FIRST_ENTROPY,
                opcode + self._opcode_offset,
                self.peer_qpn,
                after_bth_bytes=self._shim_bytes + payload_bytes + pad,
                pad_bytes=pad,
                dscp=self._data_dscp,
                ecn=wire.ECT0,
            )
            template = start + bytes(4 + self._shim_bytes)
            self._data_templates[key] = template
        return template

    def send_ack(self, psn: int, syndrome: int, marked: bool, frame: bytes) -> None:
        """An ACK or NAK for the data packet `frame`: it echoes its INT shim, its entropy and its ECN mark."""
        self._reply(psn, syndrome, b"", marked, frame)

    def send_sack(self, psn: int, first_missing_psn: int, bitmap: int, marked: bool, frame: bytes) -> None:
        """A selective ACK for the data packet `frame`."""
        body = (first_missing_psn << wire.SACK_BITS | bitmap).to_bytes(wire.SACK_BYTES, "big")
        self._reply(psn, wire.SYNDROME_ACK, body, marked, frame)

    def send_nack(self, psn: int, frame: bytes) -> None:
        """A NACK for the trimmed packet `frame`."""
        self.stats.nacks_sent += 1
        entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        self.nic.send_control(self.control_frame(wire.NACK, b"", psn=psn, entropy=entropy))

    def send_cnp(self) -> None:
        """A congestion notification packet to the peer (annex A17.9.3: 16 reserved bytes)."""
        self.stats.cnps_sent += 1
        if not self._cnp:
            self._cnp = self.control_frame(wire.CNP, bytes(16), becn=True)
        self.nic.send_control(self._cnp)

    def control_frame(
        self, opcode: int, body: bytes, *, psn: int = 0, entropy: int = -1, becn: bool = False, priority: int = -1
    ) -> bytes:
        """A control packet to the peer, `body` after its BTH. Entropy and priority default to the queue pair's own."""
        if entropy < 0:
            entropy = self.entropy
        prefix = wire.header(
            self._address,
            self.peer_address,
            entropy,
            opcode,
            self.peer_qpn,
            after_bth_bytes=len(body),
            dscp=self._control_dscp if priority < 0 else 8 * priority,
            becn=becn,
        )
        return prefix + psn.to_bytes(4, "big") + body

    def send_counter(self, opcode: int, value: int, entropy: int) -> None:
        """A control packet whose body is one number of 8 bytes: what receiver-driven protocols tell each other."""
        template = self._counter_templates.get(opcode)
        if template is None:
            template = self.control_frame(opcode, bytes(wire.COUNTER_BYTES))
            self._counter_templates[opcode] = template
        self.nic.send_control(counter_frame(template, entropy, value))

    def _reply(self, psn: int, syndrome: int, sack: bytes, marked: bool, frame: bytes) -> None:
        hops = frame[wire.AFTER_BTH] >> 4 if self._telemetry else -1
        if hops != self._ack_hops or not self._ack_template:
            self._ack_template = self._make_ack_template(hops, len(sack))
            self._ack_hops = hops
        self.stats.acks_sent += 1
        aeth = syndrome << 24 | self.receiver.messages & wire.PSN_MASK
        self.nic.send_control(ack_frame(self._ack_template, psn, aeth, marked, frame, hops, sack))

    def _make_ack_template(self, hops: int, sack_bytes: int) -> bytes:
        """The start of an ACK with so many INT records, up to and with the BTH."""
        shim_bytes = wire.SHIM_BYTES + hops * wire.INT_RECORD_BYTES if self._telemetry else 0
        opcode = wire.ACKNOWLEDGE + self._opcode_offset
        if sack_bytes > 0:
            opcode = wire.SACK_WITH_INT if self._telemetry else wire.SACK
        start = wire.header(
            self._address,
            self.peer_address,
            FIRST_ENTROPY,
            opcode,
            self.peer_qpn,
            after_bth_bytes=shim_bytes + wire.AETH_BYTES + sack_bytes,
            dscp=self._control_dscp,
        )
        return start + bytes(4)

    # Frames in: the NIC has checked addresses and lengths.

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        stats = self.stats
        stats.packets_received += 1
        if marked:
            stats.marked_received += 1
        self.receiver.on_data(now_ns, psn, payload_bytes, last, ack_request, marked, frame)
        if self._notifies:
            self.notification_point.on_data(now_ns, marked, frame)

    def on_ack(self, now_ns: int, psn: int, syndrome: int, frame: bytes, offset: int) -> None:
        """An ACK or NAK; its AETH is at `offset`, and an INT shim lies between BTH and AETH."""
        sender = self.sender
        self.stats.acks_received += 1
        number = sender.absolute(psn)
        if syndrome == wire.SYNDROME_NAK_SEQUENCE:
            self.stats.naks_received += 1
            sender.identify(now_ns, number - 1, _feedback)
            acked_bytes = sender.on_nak(now_ns, number)
            self._feed_back(now_ns, acked_bytes, frame)
            self.reaction_point.on_nack(now_ns, self.reaction_point.path.wire_bytes, False)
            self.limiter.add(self)
        else:
            sender.identify(now_ns, number, _feedback)
            acked_bytes = sender.on_ack(now_ns, number)
            self._feed_back(now_ns, acked_bytes, frame)
        self._after_ack(now_ns)

    def on_sack(self, now_ns: int, psn: int, first_missing_psn: int, bitmap: int, frame: bytes, offset: int) -> None:
        """A selective ACK; its AETH is at `offset`."""
        sender = self.sender
        self.stats.acks_received += 1
        number = sender.absolute(psn)
        sender.identify(now_ns, number, _feedback)
        acked_bytes = sender.on_sack(now_ns, number, sender.absolute(first_missing_psn), bitmap)
        self._feed_back(now_ns, acked_bytes, frame)
        self._after_ack(now_ns)

    def on_nack(self, now_ns: int, psn: int, entropy: int) -> None:
        self.stats.nacks_received += 1
        self.load_balancer.on_nack(now_ns, entropy)
        self.sender.on_nack(now_ns, self.sender.absolute(psn))
        self.limiter.wake(now_ns)

    def on_cnp(self, now_ns: int) -> None:
        self.stats.cnps_received += 1
        self.reaction_point.on_cnp(now_ns)

    def _feed_back(self, now_ns: int, acked_bytes: int, frame: bytes) -> None:
        """Tell reaction point and load balancer; the sender has said which packet the ACK is for."""
        feedback = _feedback
        feedback.now_ns = now_ns
        feedback.acked_bytes = acked_bytes
        feedback.marked = frame[wire.BECN] & 0x40 != 0
        feedback.entropy = frame[wire.SOURCE_PORT] << 8 | frame[wire.SOURCE_PORT + 1]
        feedback.hops = wire.INITIAL_TTL - frame[wire.TTL]
        if feedback.resent and feedback.rtt_ns < self.reaction_point.path.base_rtt_over(feedback.hops):
            feedback.rtt_ns = -1
        if feedback.rtt_ns >= 0:
            self._rtt_ns = feedback.rtt_ns
        if self._telemetry:
            feedback.frame = frame
            shim = frame[wire.AFTER_BTH] << 8 | frame[wire.AFTER_BTH + 1]
            feedback.int_hops = shim >> 12
            feedback.path_id = shim & 0xFFF
            feedback.int_offset = wire.AFTER_BTH + wire.SHIM_BYTES
        else:
            feedback.int_hops = 0
        if self.balanced:
            self.load_balancer.on_ack(now_ns, feedback.entropy, feedback.marked)
        self.reaction_point.on_ack(feedback)

    def _after_ack(self, now_ns: int) -> None:
        sender = self.sender
        if sender.message_end <= sender.unacked:
            sender.complete_messages(now_ns)
        if self._busy and sender.messages.size == 0:
            self._busy = False
            self.reaction_point.on_idle(now_ns)
        self.limiter.wake(now_ns)
