"""Selective repeat: packets are taken in any order and only what is missing is sent again.

Each SACK names the packet that caused it, the first missing packet, and which of the next 40 have arrived. A packet is
taken as lost when it was trimmed, when its time-out expires, or when a packet sent `loss_packets` later has been
acknowledged (RFC 8985's idea, in packets; 0 turns this off, for when packets take several paths).
"""

from __future__ import annotations

from typing import Final

from host_agents.fifo import Fifo
from host_agents.receiver import Receiver
from host_agents.sender import Sender, SentPacket
from host_agents.timers import NEVER, Timer
from host_agents.transport import Transport
from host_agents.wire import PSN_HALF, SACK_BITS


class SelectiveRepeatSender(Sender):
    """Keeps what is in flight in the order of its sending: time-outs and losses are found from the oldest end."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.loss_packets = transport.config.loss_packets
        self._lost: Fifo[SentPacket] = Fifo()  # to send again
        # In flight, in the order of their sending; linked by `earlier` and `later`.
        self._oldest: SentPacket | None = None
        self._newest: SentPacket | None = None
        self._sends = 0
        self._highest_acked = -1  # highest send index acknowledged

    def has_data(self) -> bool:
        lost = self._lost
        while lost.size > 0 and not lost.peek().lost:
            lost.pop()
        return lost.size > 0 or self.fresh < self.open_end

    def next_frame(self, now_ns: int) -> bytes:
        if self._lost.size > 0:
            packet = self._lost.pop()
            packet.lost = False
        else:
            packet = self._new_packet(now_ns)
        packet.send_index = self._sends
        self._sends += 1
        newest = self._newest
        if newest is None:
            self._oldest = packet
        else:
            newest.later = packet
            packet.earlier = newest
        self._newest = packet
        if self.deadline_ns == NEVER:
            self._arm(now_ns + self.rto_ns)
        return self._send(now_ns, packet)

    def on_ack(self, now_ns: int, number: int) -> int:
        acked_bytes = super().on_ack(now_ns, number)
        self._detect_loss(now_ns)
        return acked_bytes

    def on_sack(self, now_ns: int, number: int, first_missing: int, bitmap: int) -> int:
        """Packet `number` arrived, all before `first_missing`, and those that `bitmap` names after it."""
        acked_bytes = 0
        if number >= self.unacked:
            acked_bytes += self._mark(number)
        later = first_missing + 1
        while bitmap > 0:
            if bitmap & 1 and later >= self.unacked:
                acked_bytes += self._mark(later)
            bitmap >>= 1
            later += 1
        acked_bytes += super().on_ack(now_ns, first_missing - 1)
        self._detect_loss(now_ns)
        if self.unacked == self.fresh and self.deadline_ns != NEVER:
            self._disarm()
        return acked_bytes

    def on_nak(self, now_ns: int, number: int) -> int:
        """A go-back-N receiver's NAK: the packet wanted is missing."""
        acked_bytes = self.on_ack(now_ns, number - 1)
        self.on_nack(now_ns, number)
        return acked_bytes

    def on_nack(self, now_ns: int, number: int) -> None:
        if self.unacked <= number < self.fresh:
            packet = self.packet(number)
            if packet.inflight:
                self._lose(now_ns, packet, True)

    def send_again(self, place: int) -> None:
        for number in range(self.unacked, self.fresh):
            packet = self.packet(number)
            if packet.inflight and packet.place >= place:
                self._requeue(packet)
        self.limiter.add(self)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """The time-out of the oldest packet in flight, if there is one that old."""
        point = self.point
        expired = False
        self.deadline_ns = NEVER
        while (packet := self._oldest) is not None:
            if packet.sent_ns + self.rto_ns > now_ns:
                self._arm(packet.sent_ns + self.rto_ns)
                break
            self._requeue(packet)
            point.on_expired(now_ns, packet.wire_bytes)
            expired = True
        if expired:
            self.stats.timeouts += 1
            if not self.may_retry(now_ns):
                return
            point.on_timeout(now_ns)
            self.load_balancer.on_timeout(now_ns)
            self.limiter.add(self)
            self.limiter.wake(now_ns)

    def _requeue(self, packet: SentPacket) -> None:
        self._unlink(packet)
        self._give_up(packet)
        packet.lost = True
        self._lost.push(packet)

    def _settle(self, packet: SentPacket) -> int:
        packet.lost = False
        if packet.inflight:
            self._unlink(packet)
        if packet.send_index > self._highest_acked:
            self._highest_acked = packet.send_index
        return super()._settle(packet)

    def _mark(self, number: int) -> int:
        if number >= self.fresh:
            return 0
        packet = self.packet(number)
        return 0 if packet.acked else self._settle(packet)

    def _unlink(self, packet: SentPacket) -> None:
        """`packet` is no longer in flight."""
        earlier, later = packet.earlier, packet.later
        if earlier is None:
            self._oldest = later
        else:
            earlier.later = later
        if later is None:
            self._newest = earlier
        else:
            later.earlier = earlier
        packet.earlier = None
        packet.later = None

    def _detect_loss(self, now_ns: int) -> None:
        if self.loss_packets == 0:
            return
        while (packet := self._oldest) is not None:
            if packet.send_index + self.loss_packets > self._highest_acked:
                return
            self._lose(now_ns, packet, False)

    def _lose(self, now_ns: int, packet: SentPacket, trimmed: bool) -> None:
        self._requeue(packet)
        self.point.on_nack(now_ns, packet.wire_bytes, trimmed)
        self.limiter.add(self)


_LEAST_WINDOW: Final = 1024


def window_packets(line_rate_bps: int, rto_ns: int, base_rtt_ns: int, wire_bytes: int) -> int:
    """How far ahead of the first missing packet a packet may be: as many of full size as the link carries in two
    time-outs and a base RTT. By then the missing one has been sent twice more; what a sender without a window may have
    sent beyond that, it sends again.
    """
    span_ns = 2 * rto_ns + base_rtt_ns
    return min(max(line_rate_bps * span_ns // (8_000_000_000 * wire_bytes), _LEAST_WINDOW), PSN_HALF)


class SelectiveRepeatReceiver(Receiver):
    """Keeps what arrives early, up to `window_packets`, and delivers in order.

    A packet beyond that is forged, or as good as lost: it is counted, neither kept nor answered.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        config = transport.config
        wire_bytes = transport.frames.data_wire_bytes(config.mtu_bytes)
        self._window = window_packets(config.line_rate_bps, config.rto_ns, config.base_rtt_ns, wire_bytes)
        self._end = 0  # one past the highest packet seen
        # Early packets by number modulo the length: 0 missing, else payload bytes * 2 + last, plus 1.
        self._early = [0] * 64

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        number = self.absolute(psn)
        if number == self.expected:
            self.expected = number + 1
            self.deliver(now_ns, payload_bytes, last)
            if self.expected < self._end:
                self._deliver_early(now_ns)
                ack_request = True
            elif self._end < self.expected:
                self._end = self.expected
            if ack_request:
                self._sack(psn, marked, frame)
            return
        if number < self.expected or (number < self._end and self._early[number % len(self._early)] > 0):
            self.stats.duplicates += 1
        elif number - self.expected >= self._window:
            self.stats.out_of_window += 1
            return
        else:
            self.stats.out_of_order += 1
            while number - self.expected >= len(self._early):
                self._grow()
            self._early[number % len(self._early)] = 2 * payload_bytes + (2 if last else 1)
            if number >= self._end:
                self._end = number + 1
        self._sack(psn, marked, frame)

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> bool:
        number = self.absolute(psn)
        missing = number >= self.expected
        if number - self.expected >= self._window:
            self.stats.out_of_window += 1
            return False
        if missing and number < self._end:
            missing = self._early[number % len(self._early)] == 0
        if missing:
            self.send_nack(psn, frame)
        else:
            self._sack(psn, True, frame)
        return missing

    def _deliver_early(self, now_ns: int) -> None:
        while self.expected < self._end:
            slot = self.expected % len(self._early)
            entry = self._early[slot] - 1
            if entry < 0:
                return
            self._early[slot] = 0
            self.expected += 1
            self.deliver(now_ns, entry >> 1, entry & 1 == 1)

    def _sack(self, psn: int, marked: bool, frame: bytes) -> None:
        bitmap = 0
        first = self.expected + 1
        for number in range(first, min(self._end, first + SACK_BITS)):
            if self._early[number % len(self._early)] > 0:
                bitmap |= 1 << (number - first)
        self.send_sack(psn, self.psn(self.expected), bitmap, marked, frame)

    def _grow(self) -> None:
        old = self._early
        self._early = [0] * (2 * len(old))
        for number in range(self.expected, self._end):
            self._early[number % len(self._early)] = old[number % len(old)]
