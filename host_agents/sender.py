"""Sending half of a queue pair: the choice of the next packet, and reactions to ACKs, NAKs and time-outs.

Packets are numbered from 0 without bound; the PSN on the wire is the number modulo 2^24.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from host_agents.cc.base import Feedback, Trimmed
from host_agents.fifo import Fifo
from host_agents.lb.base import FIRST_ENTROPY, LoadBalancer
from host_agents.limiter import Member, RateLimiter
from host_agents.messages import Message
from host_agents.template import data_frame
from host_agents.timers import NEVER, Timer
from host_agents.transport import Transport
from host_agents.wire import PSN_HALF, PSN_MASK, SEND_FIRST, SEND_LAST, SEND_MIDDLE, SEND_ONLY, STAMP_BYTES

# Record of each packet until it is acknowledged, as adjacent numbers in one ring. If packets are
# acknowledged in order, two share a cache line. It has the time of the last sending; its order
# among all packets of the reaction point (with its entropy in the low bits); its place, which is
# the order of the first sending; and its state.
ENTRY: Final = 4
SENT_NS: Final = 0
ORDER: Final = 1
PLACE: Final = 2
STATE: Final = 3
ENTROPY_BITS: Final = 16  # the lowest bits of ORDER
_ENTROPY_MASK: Final = 0xFFFF

# State: flags, then payload and wire bytes.
SENT: Final = 1
AGAIN: Final = 2  # sent more than once
INFLIGHT: Final = 4
ACKED: Final = 8
LOST: Final = 16  # waits to be sent again
ACK_REQUEST: Final = 32
FIRST: Final = 64  # first packet of its message
LAST: Final = 128
ENDS: Final = 192
PAYLOAD_SHIFT: Final = 8
PAYLOAD_MASK: Final = 0xFFFF
WIRE_SHIFT: Final = 24

_FEWEST: Final = 2  # initial number of entries
NO_PROBE: Final = -(1 << 40)  # a number that no packet has; a probe may have -1


class Sender(Member):
    """Common part of go-back-N and selective-repeat senders."""

    def __init__(self, transport: Transport, limiter: RateLimiter, load_balancer: LoadBalancer) -> None:
        """Create the sender with the limiter's reaction point."""
        super().__init__()
        config = transport.config
        frames = transport.frames
        lengths = frames.lengths
        self.limiter = limiter
        self.point = limiter.reaction_point
        self.traffic = self.point.traffic
        self.stats = transport.connection.stats
        self.balanced = load_balancer.balances
        self.load_balancer = load_balancer
        self.entropy = FIRST_ENTROPY  # entropy of the last data packet
        if not self.balanced:
            self.entropy = self.load_balancer.next_entropy(limiter.port.now_ns)
        self.unacked = 0  # every packet before it is acknowledged
        self.fresh = 0  # the first packet never sent
        self.end = 0  # one past the last packet posted
        self.message_end = NEVER  # one past the last packet of the oldest message not acknowledged
        self.deadline_ns = NEVER  # deadline of the retransmission time-out
        self.rto_ns = config.rto_ns
        self._retry_count = config.retry_count
        self._retries = 0  # retries since the last new acknowledgement
        self._acked_at_retry = 0  # acknowledged packets plus bytes at a retry; the maximum so far
        self._next_retry_ns = 0  # all retransmissions within one time-out count as one retry
        self._connection = transport.connection
        # Least payload of data packets that carry their send time.
        self._stamped_bytes = STAMP_BYTES + lengths.inside_bytes if config.stamps else NEVER
        self.ack_every_packets = config.ack_every_packets
        self._answered_early = config.answers_early
        # Receivers count bytes, so whether a packet requests an ACK is decided when it leaves.
        self._counted = config.ack_every_bytes > 0
        # Without such requests, a sender that has used up its window would wait for the receiver's
        # `ack_wait_ns`.
        self._asks_at_end = self._counted or config.ack_wait_ns is not None
        self.psn_base = transport.first_psn  # PSN of packet 0
        self.early = 0  # packets acknowledged before an earlier one
        self.probe_number = NO_PROBE  # number of the probe whose answer is awaited
        self.probe_sent_ns = 0
        self.probe_order = 0  # number of packets sent before it
        self.acked_order = -1  # order of the last packet acknowledged
        # The current message, whose packets are sending_from <= n < sending_end.
        self._sending_from = 0
        self._sending_end = 0
        self._sending_bytes = 0
        self._sending_alone = False
        self._own_headers = self.point.own_headers
        self._alone_bytes = self.point.alone_bytes
        self.open_end = 0  # one past the last packet that may be sent while messages travel alone
        # Message that travels alone; those in `_held` wait until it is acknowledged.
        self._alone: Message | None = None
        self._held: Fifo[Message] = Fifo()
        self._mtu_bytes = config.mtu_bytes
        self._middle = b""  # template of full packets in the middle of a message; created on demand
        self._full_wire_bytes = lengths.data_wire_bytes(config.mtu_bytes)
        self._mask = _FEWEST - 1
        self._entries = vec[i64]([0] * (_FEWEST * ENTRY))  # entries of unacknowledged packets, by number
        self.messages: Fifo[Message] = Fifo()  # messages that are not completely acknowledged
        self._unsent: Fifo[Message] = Fifo()  # messages that are not completely sent
        self.frames = frames
        self._lengths = lengths
        self.qpn = transport.connection.qpn
        self.timer = Timer(limiter.port.timers, self)

    def post(self, message: Message) -> None:
        packets = max(1, -(-message.size_bytes // self._mtu_bytes))
        if packets > 2 and not self._middle:
            self._middle = self.frames.data_template(SEND_MIDDLE, self._mtu_bytes)
        message.first_packet = self.end
        self.end += packets
        message.end_packet = self.end
        if self.messages.size == 0:
            self.message_end = self.end
        self.messages.push(message)
        self._unsent.push(message)
        full = packets - 1
        wire_bytes = full * self._full_wire_bytes
        wire_bytes += self._lengths.data_wire_bytes(message.size_bytes - full * self._mtu_bytes)
        message.wire_bytes = wire_bytes
        self.traffic.unacked_bytes += message.size_bytes
        self.traffic.waiting_bytes += wire_bytes
        self.traffic.held_bytes += wire_bytes
        self._held.push(message)
        self._open()

    def truncate(self, message: Message) -> None:
        """End `message`, the last one posted, with the next packet to be sent.

        Nothing happens if all of it is sent already.
        """
        end = max(self.fresh, message.first_packet) + 1
        if end >= message.end_packet:
            return
        wire_bytes = (end - message.first_packet) * self._full_wire_bytes
        unsent_bytes = message.wire_bytes - wire_bytes
        message.wire_bytes = wire_bytes
        self.traffic.waiting_bytes -= unsent_bytes
        if message.first_packet >= self.open_end:
            self.traffic.held_bytes -= unsent_bytes
        self.traffic.unacked_bytes -= message.size_bytes
        message.size_bytes = (end - message.first_packet) * self._mtu_bytes
        self.traffic.unacked_bytes += message.size_bytes
        if self.message_end == message.end_packet:
            self.message_end = end
        if self._sending_end == message.end_packet:
            self._sending_end = end
            self._sending_bytes = message.size_bytes
        message.end_packet = end
        self.end = end
        self.open_end = min(self.open_end, end)

    def _open(self) -> None:
        """Release messages up to and including the first that travels alone.

        That is a short message with nothing ahead of it.
        """
        while self._alone is None and self._held.size > 0:
            message = self._held.pop()
            self.open_end = message.end_packet
            self.traffic.held_bytes -= message.wire_bytes
            if message.size_bytes <= self._alone_bytes and message.first_packet == self.unacked:
                self._alone = message

    def outstanding(self) -> bool:
        return self.unacked < self.fresh

    def oldest_place(self, none: int) -> int:
        """Return the place of the oldest unacknowledged packet of the reaction point; `none` if there is none."""
        return self.place_of(self.unacked) if self.unacked < self.fresh else none

    def place_of(self, number: int) -> int:
        """Return the place of a packet that is sent and not acknowledged."""
        at: i64 = (number & self._mask) * ENTRY
        return self._entries[at + PLACE]

    def state_of(self, number: int) -> int:
        """Return the state of a packet that is sent and not acknowledged."""
        at: i64 = (number & self._mask) * ENTRY
        return self._entries[at + STATE]

    def absolute(self, psn: int) -> int:
        """Return the packet number nearest to the first unacknowledged one that has this PSN."""
        delta = (psn - self.psn_base - self.unacked) & PSN_MASK
        if delta >= PSN_HALF:
            delta -= PSN_MASK + 1
        return self.unacked + delta

    def identify(self, now_ns: int, number: int, first_missing: int, feedback: Feedback) -> None:
        """Fill in the feedback on packet `number` before it is settled: order, RTT, flags resent and unsolicited.

        All packets before `first_missing` have arrived.

        A packet that requested no ACK has no RTT, because its answer may have waited. An exception
        is a packet that arrived out of order, if such packets are answered at once. If they are
        not, a packet that requested no ACK is unsolicited if later packets have arrived, because it
        filled a gap. If receivers count bytes, the packet that the SACK names has caused it, unless
        that is the first missing packet; then no packet has.
        """
        feedback.order = self.acked_order
        feedback.rtt_ns = -1
        feedback.resent = False
        feedback.unsolicited = number == first_missing
        if number == self.probe_number:
            feedback.rtt_ns = now_ns - self.probe_sent_ns
        if self.unacked <= number < self.fresh and number != first_missing:
            entries = self._entries
            at: i64 = (number & self._mask) * ENTRY
            order: int = entries[at + ORDER] >> ENTROPY_BITS
            sent_ns: int = entries[at + SENT_NS]
            feedback.order = order
            self.acked_order = order
            state: i64 = entries[at + STATE]
            early = self._answered_early and number >= first_missing
            if self._counted or early or state & ACK_REQUEST != 0:
                feedback.rtt_ns = now_ns - sent_ns
            elif not self._answered_early:
                feedback.unsolicited = number + 1 < first_missing
            feedback.resent = state & AGAIN != 0

    def on_ack(self, now_ns: int, number: int) -> int:
        """Handle the arrival of all packets up to `number`; return the newly acknowledged wire bytes."""
        acked_bytes = 0
        if number >= self.fresh:
            return 0
        entries = self._entries
        while self.unacked <= number:
            at: i64 = (self.unacked & self._mask) * ENTRY
            if entries[at + STATE] & ACKED == 0:
                acked_bytes += self._settle(now_ns, self.unacked)
            else:
                self.early -= 1
            self.unacked += 1
        return acked_bytes

    def on_sack(self, now_ns: int, number: int, first_missing: int, map_from: int, early: i64) -> int:
        """Handle the arrival of `number` and all packets before `first_missing`.

        Returns the newly acknowledged wire bytes.
        """
        return self.on_ack(now_ns, first_missing - 1)

    def send_again(self, place: int) -> None:
        """Send the packets from this place on again; places count all packets of the reaction point."""
        raise NotImplementedError

    def on_nak(self, now_ns: int, number: int) -> int:
        """Handle a NAK: the receiver requests `number` and has all packets before it.

        Returns the newly acknowledged wire bytes.
        """
        raise NotImplementedError

    def on_nack(self, number: int, trimmed: Trimmed) -> None:
        """Handle a trimmed packet `number`; fill in size and RTT of `trimmed`."""
        raise NotImplementedError

    def complete_messages(self, now_ns: int) -> None:
        messages = self.messages
        while self.message_end <= self.unacked:
            message = messages.pop()
            self.message_end = messages.peek().end_packet if messages.size > 0 else NEVER
            message.completed_ns = now_ns
            if message is self._alone:
                self._alone = None
                self._open()
                self.limiter.add(self)
            message.qp.completed(message)

    def may_retry(self, now_ns: int) -> bool:
        """Count an unanswered request; return False if the retries are used up and the connection has ended."""
        acked = self.unacked + self.stats.bytes_acked
        # Acknowledging packets again after their acknowledgement was taken back is no progress.
        if acked > self._acked_at_retry:
            self._acked_at_retry = acked
            self._retries = 0
        elif now_ns < self._next_retry_ns:
            return True
        self._next_retry_ns = now_ns + self.rto_ns
        self._retries += 1
        if self._retries <= self._retry_count:
            return True
        self._connection.retries_exceeded(now_ns)
        return False

    def abandon(self) -> list[Message]:
        """Stop sending; return the messages that are not acknowledged."""
        self._disarm()
        acked_bytes = self.stats.bytes_acked
        for number in range(self.unacked, self.fresh):
            if self.state_of(number) & ACKED == 0:
                self._release(number)
        self.stats.bytes_acked = acked_bytes
        while self._unsent.size > 0:
            message = self._unsent.pop()
            sent = max(0, self.fresh - message.first_packet)
            self.traffic.waiting_bytes -= message.wire_bytes - sent * self._full_wire_bytes
            self.traffic.unacked_bytes -= message.size_bytes - sent * self._mtu_bytes
            if message.first_packet >= self.open_end:
                self.traffic.held_bytes -= message.wire_bytes
        self.unacked = self.fresh = self.end
        self.open_end = self.end
        self.message_end = NEVER
        self._alone = None
        while self._held.size > 0:
            self._held.pop()
        left = []
        while self.messages.size > 0:
            left.append(self.messages.pop())
        return left

    def dismiss(self) -> None:
        """Release limiter and timer after everything is acknowledged and nothing more will be posted."""
        self.limiter.dismiss()
        self.timer.dismiss()

    def _arm(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns
        self.timer.arm(deadline_ns)

    def _disarm(self) -> None:
        self.deadline_ns = NEVER
        self.timer.cancel()

    def _settle(self, now_ns: int, number: int) -> int:
        """Settle the acknowledged packet `number`; return its wire bytes."""
        return self._release(number)

    def _release(self, number: int) -> int:
        """Release packet `number`, so that it is neither in flight nor to be resent; return its wire bytes."""
        entries = self._entries
        at: i64 = (number & self._mask) * ENTRY
        state: i64 = entries[at + STATE]
        payload_bytes: int = state >> PAYLOAD_SHIFT & PAYLOAD_MASK
        wire_bytes: int = state >> WIRE_SHIFT
        traffic = self.traffic
        self.stats.bytes_acked += payload_bytes
        traffic.unacked_bytes -= payload_bytes
        if state & INFLIGHT != 0:
            state ^= INFLIGHT
            self.limiter.inflight_bytes -= wire_bytes
            traffic.inflight_bytes -= wire_bytes
        else:
            traffic.waiting_bytes -= wire_bytes  # it need not be sent again
        entries[at + STATE] = state & ~LOST | ACKED
        return wire_bytes

    def _give_up(self, number: int) -> None:
        """Queue packet `number` for retransmission: it is no longer in flight, but not acknowledged."""
        entries = self._entries
        at: i64 = (number & self._mask) * ENTRY
        state: i64 = entries[at + STATE]
        if state & INFLIGHT != 0:
            wire_bytes: int = state >> WIRE_SHIFT
            entries[at + STATE] = state ^ INFLIGHT
            self.limiter.inflight_bytes -= wire_bytes
            self.traffic.inflight_bytes -= wire_bytes
            self.traffic.waiting_bytes += wire_bytes

    def _take_back(self, number: int) -> None:
        """Take back the acknowledgement of packet `number`, which will be sent again."""
        entries = self._entries
        at: i64 = (number & self._mask) * ENTRY
        state: i64 = entries[at + STATE]
        payload_bytes: int = state >> PAYLOAD_SHIFT & PAYLOAD_MASK
        wire_bytes: int = state >> WIRE_SHIFT
        entries[at + STATE] = state & ~ACKED
        self.stats.bytes_acked -= payload_bytes
        self.traffic.unacked_bytes += payload_bytes
        self.traffic.waiting_bytes += wire_bytes

    def _new_packet(self, now_ns: int) -> None:
        """Create the entry of packet `fresh`, which was never sent."""
        number = self.fresh
        if number - self.unacked > self._mask:
            self._grow()
        if number == self._sending_end:
            message = self._unsent.peek()
            message.first_sent_ns = now_ns
            self._sending_from = number
            self._sending_end = message.end_packet
            self._sending_bytes = message.size_bytes
            self._sending_alone = message is self._alone
        self.fresh = number + 1
        at: i64 = (number & self._mask) * ENTRY
        entries = self._entries
        entries[at + PLACE] = self.traffic.fresh_packets
        self.traffic.fresh_packets += 1
        if number == self._sending_from or number + 1 == self._sending_end:
            entries[at + STATE] = self._state_of_end(number)
        else:
            state: i64 = self._full_wire_bytes << WIRE_SHIFT | self._mtu_bytes << PAYLOAD_SHIFT
            if not self._counted and (number + 1 - self._sending_from) % self.ack_every_packets == 0:
                state |= ACK_REQUEST
            entries[at + STATE] = state

    def _state_of_end(self, number: int) -> int:
        """Return the state of a packet that is the first or last of its message, or both."""
        state = 0
        size_bytes = self._mtu_bytes
        if number == self._sending_from:
            state |= FIRST
        if number + 1 == self._sending_end:
            state |= LAST
            size_bytes = self._unsent.pop().size_bytes - (number - self._sending_from) * size_bytes
        if not self._counted and (state & LAST != 0 or self.ack_every_packets == 1):
            state |= ACK_REQUEST
        return state | size_bytes << PAYLOAD_SHIFT | self._lengths.data_wire_bytes(size_bytes) << WIRE_SHIFT

    def _template_of_end(self, state: int) -> bytes:
        ends = state & ENDS
        opcode = SEND_ONLY if ends == ENDS else SEND_FIRST if ends == FIRST else SEND_LAST
        return self.frames.data_template(opcode, state >> PAYLOAD_SHIFT & PAYLOAD_MASK)

    def _send(self, now_ns: int, number: int) -> bytes:
        entries = self._entries
        at: i64 = (number & self._mask) * ENTRY
        state: i64 = entries[at + STATE]
        headers = self._middle if state & ENDS == 0 else self._template_of_end(state)
        if self._own_headers:
            headers = self._make_headers(now_ns, number, headers)
            state = entries[at + STATE]  # this state has its current length
        wire_bytes: int = state >> WIRE_SHIFT
        stats = self.stats
        traffic = self.traffic
        if state & SENT != 0:
            stats.packets_retransmitted += 1
            state |= AGAIN
        entries[at + STATE] = state | SENT | INFLIGHT
        entries[at + SENT_NS] = now_ns
        order: i64 = traffic.sent_packets
        traffic.sent_packets += 1
        traffic.waiting_bytes -= wire_bytes
        traffic.inflight_bytes += wire_bytes
        stats.packets_sent += 1
        stats.wire_bytes_sent += wire_bytes
        self.limiter.charge(now_ns, wire_bytes)
        self.point.on_sent(now_ns, wire_bytes)
        if self.balanced:
            self.entropy = self.load_balancer.next_entropy(now_ns)
        entropy: i64 = self.entropy
        entries[at + ORDER] = order << ENTROPY_BITS | entropy
        psn = (self.psn_base + number) & PSN_MASK
        asks = state & ACK_REQUEST != 0
        if not asks and self._asks_at_end and self._is_last(state):
            asks = True
            entries[at + STATE] |= ACK_REQUEST
        frame = data_frame(headers, self.entropy, psn, asks)
        if state >> PAYLOAD_SHIFT & PAYLOAD_MASK >= self._stamped_bytes:
            return frame + now_ns.to_bytes(STAMP_BYTES, "big")
        return frame

    def entropy_of(self, number: int) -> int:
        """Return the entropy with which packet `number` was sent last."""
        at: i64 = (number & self._mask) * ENTRY
        entropy: int = self._entries[at + ORDER] & _ENTROPY_MASK
        return entropy

    def _is_last(self, state: i64) -> bool:
        """Return whether the window or the credit lets no packet follow the leaving one.

        If receivers count bytes, also return True for a retransmission, and if nothing waits to be sent.
        """
        if self._counted and (state & AGAIN != 0 or self.fresh == self.open_end):
            return True
        return not self.point.may_send(self.limiter.inflight_bytes)

    def _make_headers(self, now_ns: int, number: int, usual: bytes) -> bytes:
        """Return the reaction point's headers; from now on the packet waits with its new length."""
        limiter = self.limiter
        if limiter.priority != limiter.data_priority:
            usual = self.frames.in_class(usual, limiter.priority)
        at: i64 = (number & self._mask) * ENTRY
        state: i64 = self._entries[at + STATE]
        place: int = self._entries[at + PLACE]
        again = state & SENT != 0
        message_bytes = self._sending_bytes
        alone = self._sending_alone
        if number < self._sending_from:
            message = self._earlier_message(number)
            message_bytes = message.size_bytes
            alone = message is self._alone
        headers = self.point.data_headers(now_ns, usual, place, message_bytes, alone, again)
        if headers is usual and not again:
            return headers
        more: i64 = len(headers) - len(usual)
        if again:
            payload_bytes: int = state >> PAYLOAD_SHIFT & PAYLOAD_MASK
            more += self._lengths.data_wire_bytes(payload_bytes) - (state >> WIRE_SHIFT)
        self.traffic.waiting_bytes += more
        self._entries[at + STATE] = state + (more << WIRE_SHIFT)
        return headers

    def _earlier_message(self, number: int) -> Message:
        """Return the message of a retransmitted packet, usually one of the oldest."""
        index = 0
        while self.messages.at(index).end_packet <= number:
            index += 1
        return self.messages.at(index)

    def _grow(self) -> None:
        self._entries = self._grown(self._entries, ENTRY)
        self._mask = 2 * self._mask + 1

    def _grown(self, old: vec[i64], width: int) -> vec[i64]:
        """Return a ring of twice the length with `width` numbers per packet.

        It has to be called before `_mask` grows.
        """
        mask = self._mask
        wider = vec[i64]([0] * (2 * (mask + 1) * width))
        for number in range(self.unacked, self.fresh):
            before: i64 = (number & mask) * width
            after: i64 = (number & (2 * mask + 1)) * width
            for i in range(width):
                wider[after + i] = old[before + i]
        return wider
