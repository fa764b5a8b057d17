"""Receiving half of a queue pair: arrival, delivery and acknowledgement of packets."""

from __future__ import annotations

from mypy_extensions import i64

from host_agents.messages import Delivery
from host_agents.timers import Timer, TimerOwner
from host_agents.transport import Transport
from host_agents.wire import CE, PSN_HALF, PSN_MASK, TOS


class Receiver(TimerOwner):
    """Common part of go-back-N and selective-repeat receivers.

    Packets are numbered from 0 without bound.

    Packets that request no ACK are acknowledged after a while (`ack_wait_ns`), because a sender may
    have stopped before the packet that would request one.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        point = transport.notification_point
        self.stats = transport.connection.stats
        self.psn_base = transport.first_psn
        self.expected = 0  # every packet before it has been delivered
        self.messages = 0  # number of delivered messages, the MSN of ACKs
        self._message_bytes = 0
        self._between = True  # True between two messages
        self._frames = transport.frames
        self._port = transport.port
        self._listener = point if point.listens else None  # receiver of message events
        self._connection = transport.connection
        self._answering = point if point.own_ack is not None else None
        self._waits = False  # whether the last packet, and maybe earlier ones, have no ACK yet
        self._waiting_marked = False  # ECN mark that all of them echo
        self._waiting_psn = 0
        self._waiting_frame = b""
        self._waiting_since_ns = 0  # arrival of the first of them
        config = transport.config
        self._most_wait_ns = config.base_rtt_ns if config.ack_wait_ns is None else config.ack_wait_ns
        self._last_hop_dscp = config.last_hop_dscp
        self._timer: Timer | None = None  # created on demand, because most queue pairs never need one

    def close(self) -> None:
        """Stop answering."""
        self._waits = False
        if self._timer is not None:
            self._timer.cancel()

    def absolute(self, psn: int) -> int:
        """Return the packet number nearest to the expected one that has this PSN."""
        delta = (psn - self.psn_base - self.expected) & PSN_MASK
        if delta >= PSN_HALF:
            delta -= PSN_MASK + 1
        return self.expected + delta

    def psn(self, number: int) -> int:
        return (self.psn_base + number) & PSN_MASK

    @property
    def holds_early(self) -> bool:
        """True if packets have arrived that wait for an earlier one."""
        return False

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        """Handle a data packet; `last` if it ends its message."""
        raise NotImplementedError

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> bool:
        """Handle the header of a trimmed data packet; return whether a NACK requests it again."""
        raise NotImplementedError

    def deliver(self, now_ns: int, payload_bytes: int, last: bool) -> None:
        """Deliver the next packet in order to the application."""
        listener = self._listener
        if listener is not None and self._between:
            self._between = False
            listener.on_message_start(now_ns)
        self.stats.bytes_delivered += payload_bytes
        self._message_bytes += payload_bytes
        if last:
            size_bytes = self._message_bytes
            delivery = Delivery(self._connection, self.messages, size_bytes, now_ns)
            self.messages += 1
            self._message_bytes = 0
            self._between = True
            if listener is not None:
                listener.on_message_end(now_ns, size_bytes)
            self._connection.delivered(delivery)

    def echo(self, now_ns: int, marked: bool, frame: bytes) -> bool:
        """Let the protocol process a received data packet; return whether the answer to it echoes the ECN mark."""
        answering = self._answering
        return marked if answering is None else answering.echo(now_ns, marked, frame)

    def wait(self, now_ns: int, psn: int, marked: bool, frame: bytes) -> None:
        """Let the data packet `frame` wait for the ACK of a later one."""
        if not self._waits:
            self._waits = True
            self._waiting_since_ns = now_ns
            timer = self._timer
            if timer is None:
                timer = Timer(self._port.timers, self)
                self._timer = timer
            if not timer.is_armed():
                timer.arm(now_ns + self._most_wait_ns)
        self._waiting_marked = marked
        self._waiting_psn = psn
        self._waiting_frame = frame

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if self._waits:
            until_ns = self._waiting_since_ns + self._most_wait_ns
            if until_ns <= now_ns:
                self.answer_waiting()
            else:
                timer.arm(until_ns)

    def part(self, marked: bool) -> None:
        """Answer waiting packets first if they echo another mark, since an ACK has only one."""
        if self._waits and marked != self._waiting_marked:
            self.answer_waiting()

    def answer_waiting(self) -> None:
        """Acknowledge the packets that wait for an ACK."""
        raise NotImplementedError

    def send_ack(self, psn: int, syndrome: int, marked: bool, frame: bytes) -> None:
        """Send an ACK or NAK for the data packet `frame` and all packets that wait for an ACK."""
        self._waits = False
        self.stats.acks_sent += 1
        answering = self._answering
        body = b"" if answering is None else answering.ack_body()
        self._port.send_control(self._frames.ack(psn, syndrome, self.messages, body, marked, frame))

    def send_sack(
        self, psn: int, first_missing_psn: int, map_psn: int, early: i64, marked: bool, frame: bytes
    ) -> None:
        """Send a selective ACK for the data packet `frame` and all packets that wait for an ACK."""
        self._waits = False
        self.stats.acks_sent += 1
        messages = self.messages
        self._port.send_control(self._frames.sack(psn, messages, first_missing_psn, map_psn, early, marked, frame))

    def send_nack(self, psn: int, frame: bytes) -> None:
        """Send a NACK for the trimmed packet `frame`."""
        self.stats.nacks_sent += 1
        last_hop = frame[TOS] >> 2 == self._last_hop_dscp
        self._port.send_control(self._frames.nack(psn, frame[TOS] & 3 == CE, last_hop, frame))
