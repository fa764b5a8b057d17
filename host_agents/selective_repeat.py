"""Selective repeat: packets are accepted in any order, and only missing ones are sent again.

Each SACK names the packet that caused it and the first missing packet. A map of 64 packets names
those that arrived early (out of order), as in Ultra Ethernet's SACKs. The receiver chooses the
start of the map. It is the first packet that waits for an answer, or else a start for which the map
ends with the packet that caused the SACK. If that packet is not within 64 of the packet answered
before, the map ends with the latter, because copies of lost packets arrive among new ones. So two
to 64 SACKs name an early packet, regardless of the number of packets in the bandwidth-delay product
after a missing one. Losses of some SACKs do no harm.

A packet is taken as lost when it was trimmed, when its time-out expires, or when a packet sent
`loss_packets` later has been acknowledged. The last rule is RFC 8985's idea, in packets; 0 turns it
off, for packets that take several paths. The ACK of a retransmitted packet may be that of an
earlier copy. If it arrives sooner after the last copy than the least measured RTT, nothing follows
from it about other packets (RFC 8985, 6.2, step 2).
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i64

from host_agents.bits import insert, lowest, map_of, remove, ring
from host_agents.cc.base import Trimmed
from host_agents.fifo import Fifo, RowFifo
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.messages import Message
from host_agents.receiver import Receiver
from host_agents.sender import (
    ACKED,
    AGAIN,
    ENTROPY_BITS,
    ENTRY,
    INFLIGHT,
    LOST,
    NO_PROBE,
    ORDER,
    SENT_NS,
    STATE,
    WIRE_SHIFT,
    Sender,
)
from host_agents.sleek import Sleek
from host_agents.template import data_frame
from host_agents.timers import NEVER, Timer
from host_agents.transport import Transport
from host_agents.wire import PSN_HALF, PSN_MASK, SACK_BITS, SEND_ONLY, wire_bytes

# Record of each send: the packet, and the number of the send among all.
_SEND: Final = 2
_NUMBER: Final = 0
_INDEX: Final = 1
_FEWEST_SENDS: Final = 16
_NONE: Final = -1
_WORD: Final = 0xFFFFFFFF


class SelectiveRepeatSender(Sender):
    """Sender with selective repeat, which keeps sends in order if losses are found by later packets.

    When a packet is acknowledged or lost, its send becomes stale, and is kept until it is the
    oldest. Stale sends after an old one that is not stale are dropped when there are twice as many
    sends as packets in flight. Time-outs are rare, so they are searched for among all packets in
    flight.
    """

    def __init__(self, transport: Transport, limiter: RateLimiter, load_balancer: LoadBalancer) -> None:
        super().__init__(transport, limiter, load_balancer)
        self.loss_packets = transport.config.loss_packets
        self._window_packets = transport.config.receive_window_packets
        self._lost: Fifo[int] = Fifo()  # packets to send again, unless they have been acknowledged meanwhile
        self._sends = RowFifo(_SEND)
        self._most_sends = _FEWEST_SENDS
        # Index of each packet's last send, by number like the entries.
        self._sent_as = vec[i64]([0] * (self._mask + 1 if self.loss_packets > 0 else 0))
        self._sent = 0
        self._sleek: Sleek | None = None
        sleek = transport.config.sleek
        if sleek is not None:
            path = self.point.path
            self._sleek = Sleek(self, sleek, path.bdp_bytes, path.wire_bytes, path.base_rtt_ns)
        self._highest_acked = -1  # highest order among acknowledged sends
        # Least RTT of packets that were sent once; initially the network's base RTT.
        self._least_rtt_ns = transport.config.base_rtt_ns
        self._rtt_measured = False
        self._early_bits = ring(0)  # packets acknowledged before an earlier one; maps mostly repeat them

    def has_data(self) -> bool:
        if self._window_packets > 0 and self.fresh - self.unacked >= self._window_packets:
            return self.has_lost()
        return self.has_lost() or self.fresh < self.open_end

    def has_lost(self) -> bool:
        """Return whether a packet waits to be sent again."""
        lost = self._lost
        while lost.size > 0 and not self._is_lost(lost.peek()):
            lost.pop()
        return lost.size > 0

    def has_urgent(self) -> bool:
        return self._sleek is not None and self._sleek.recovering and self.has_lost()

    def _is_lost(self, number: int) -> bool:
        """Return whether a packet is lost.

        The entry of an acknowledged packet may already belong to another one.
        """
        return number >= self.unacked and self.state_of(number) & LOST != 0

    def next_frame(self, now_ns: int) -> bytes:
        if self._lost.size > 0:
            number = self._lost.pop()
            at: i64 = (number & self._mask) * ENTRY
            self._entries[at + STATE] ^= LOST
        else:
            number = self.fresh
            self._new_packet(now_ns)
            remove(self._early_bits, number)
        if self.loss_packets > 0:
            self._note_send(number)
        if self.deadline_ns == NEVER:
            self._arm(now_ns + self.rto_ns)
        return self._send(now_ns, number)

    def _note_send(self, number: int) -> None:
        """Record packet `number` as the next one that is sent."""
        sends = self._sends
        while sends.size > 0 and sends.rows[sends.oldest() + _NUMBER] < self.unacked:
            sends.drop()  # this keeps the used memory small
        if sends.size >= self._most_sends:
            self._drop_stale()
        at = sends.push()
        sends.rows[at + _NUMBER] = number
        sends.rows[at + _INDEX] = self._sent
        self._sent_as[number & self._mask] = self._sent
        self._sent += 1

    def _is_in_flight(self, number: i64, index: i64) -> bool:
        """Return whether this send is the latest one of its packet, and in flight.

        The entry may already belong to a later packet.
        """
        place: i64 = number & self._mask
        return self._sent_as[place] == index and self._entries[place * ENTRY + STATE] & INFLIGHT != 0

    def _oldest(self) -> int:
        """Return the packet in flight with the oldest send, or NONE; sends before it are dropped."""
        sends = self._sends
        while sends.size > 0:
            at = sends.oldest()
            number: int = sends.rows[at + _NUMBER]
            if self._is_in_flight(number, sends.rows[at + _INDEX]):
                return number
            sends.drop()
        return _NONE

    def _drop_stale(self) -> None:
        sends = self._sends
        for _ in range(sends.size):
            at = sends.oldest()
            number = sends.rows[at + _NUMBER]
            index = sends.rows[at + _INDEX]
            sends.drop()
            if self._is_in_flight(number, index):
                at = sends.push()
                sends.rows[at + _NUMBER] = number
                sends.rows[at + _INDEX] = index
        self._most_sends = max(2 * sends.size, _FEWEST_SENDS)

    def on_ack(self, now_ns: int, number: int) -> int:
        acked_bytes = super().on_ack(now_ns, number)
        self._detect_loss(now_ns)
        self._watch_time(now_ns)
        return acked_bytes

    def on_sack(self, now_ns: int, number: int, first_missing: int, map_from: int, early: i64) -> int:
        """Handle a SACK: which packets have arrived.

        They are packet `number` (unless it is `first_missing`), all before `first_missing`, and
        those in the map `early`. The map begins with packet `map_from`; its 64 bits are a signed
        number.
        """
        acked_bytes = 0
        if number >= self.unacked and number != first_missing:
            acked_bytes += self._mark(now_ns, number)
        if early != 0:
            acked_bytes += self._mark_mapped(now_ns, map_from, early)
        acked_bytes += super().on_ack(now_ns, first_missing - 1)
        self._detect_loss(now_ns)
        self._watch_time(now_ns)
        sleek = self._sleek
        if sleek is not None:
            if number == self.probe_number:
                self.probe_number = NO_PROBE
                sleek.on_probe(now_ns, now_ns - self.probe_sent_ns, self.probe_order)
            sleek.on_ack(now_ns, -1 if number == first_missing else self.acked_order)
        return acked_bytes

    def resend_if_missing(self, now_ns: int, number: int, order: int) -> bool:
        """Send packet `number` again if it is missing and left before the packet of this order.

        Returns False if it is in flight and left later.
        """
        at: i64 = (number & self._mask) * ENTRY
        if self._entries[at + STATE] & INFLIGHT == 0:
            return True
        if self._entries[at + ORDER] >> ENTROPY_BITS >= order:
            return False
        self._requeue(number)
        self.point.on_requeued(now_ns)
        self.limiter.add(self)
        return True

    def send_probe(self, now_ns: int) -> None:
        """Send a packet that the receiver already has, without payload, through the queues of data."""
        self.probe_number = self.unacked - 1
        self.probe_sent_ns = now_ns
        self.probe_order = self.traffic.sent_packets
        entropy = self.load_balancer.next_entropy(now_ns) if self.balanced else self.entropy
        headers = self.frames.data_template(SEND_ONLY, 0)
        psn = (self.psn_base + self.probe_number) & PSN_MASK
        self.limiter.port.send_control(data_frame(headers, entropy, psn, True))

    def abandon(self) -> list[Message]:
        if self._sleek is not None:
            self._sleek.close()
        return super().abandon()

    def _watch_time(self, now_ns: int) -> None:
        """Update the deadline after an acknowledgement, which may have covered all missing packets."""
        if self.unacked == self.fresh:
            if self.deadline_ns != NEVER:
                self._disarm()
        elif self.deadline_ns == NEVER:
            self._arm(now_ns + self.rto_ns)
        if self._window_packets > 0:
            self.limiter.add(self)  # the receiver may have room again

    def on_nak(self, now_ns: int, number: int) -> int:
        """Handle a go-back-N receiver's NAK: the requested packet is missing."""
        acked_bytes = self.on_ack(now_ns, number - 1)
        if self._is_under_way(number):
            self._requeue(number)
            self.point.on_nack(now_ns, self.state_of(number) >> WIRE_SHIFT, True)
            self.limiter.add(self)
        return acked_bytes

    def on_nack(self, number: int, trimmed: Trimmed) -> None:
        if self._is_under_way(number):
            at: i64 = (number & self._mask) * ENTRY
            state: i64 = self._entries[at + STATE]
            sent_ns: int = self._entries[at + SENT_NS]
            trimmed.wire_bytes = state >> WIRE_SHIFT
            trimmed.rtt_ns = trimmed.now_ns - sent_ns if state & AGAIN == 0 else -1
            self._requeue(number)
            self.point.on_trimmed(trimmed)
            self.limiter.add(self)

    def _is_under_way(self, number: int) -> bool:
        return self.unacked <= number < self.fresh and self.state_of(number) & INFLIGHT != 0

    def send_again(self, place: int) -> None:
        for number in range(self.unacked, self.fresh):
            if self.state_of(number) & INFLIGHT != 0 and self.place_of(number) >= place:
                self._requeue(number)
        self.limiter.add(self)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Handle the time-out of packets in flight that were sent long enough ago.

        Receivers may take back packets that SACKs named (RFC 2018, section 8).
        """
        point = self.point
        overdue: list[tuple[int, int]] = []
        oldest_ns: i64 = NEVER
        for packet in range(self.unacked, self.fresh):
            at: i64 = (packet & self._mask) * ENTRY
            if self._entries[at + STATE] & INFLIGHT != 0:
                sent_ns = self._entries[at + SENT_NS]
                if sent_ns + self.rto_ns <= now_ns:
                    overdue.append((self._entries[at + ORDER], packet))
                elif sent_ns < oldest_ns:
                    oldest_ns = sent_ns
        overdue.sort()
        for _, number in overdue:
            self._requeue(number)
            point.on_expired(now_ns, self.state_of(number) >> WIRE_SHIFT)
            if self.balanced:
                self.load_balancer.on_expired(now_ns, self.entropy_of(number))
        self.deadline_ns = NEVER
        if oldest_ns < NEVER:
            self._arm(oldest_ns + self.rto_ns)
        expired = len(overdue) > 0
        if self.unacked < self.fresh and self.state_of(self.unacked) & ACKED != 0:
            # The receiver lacks a packet that was acknowledged, so a forged answer acknowledged it.
            self._take_back(self.unacked)
            self.early -= 1
            remove(self._early_bits, self.unacked)
            self._entries[(self.unacked & self._mask) * ENTRY + STATE] |= LOST
            self._lost.push(self.unacked)
            expired = True
        if expired:
            self.stats.timeouts += 1
            if not self.may_retry(now_ns):
                return
            point.on_timeout(now_ns)
            self.load_balancer.on_timeout(now_ns)
            self.limiter.add(self)
            self.limiter.wake(now_ns)

    def _requeue(self, number: int) -> None:
        self._give_up(number)
        at: i64 = (number & self._mask) * ENTRY
        self._entries[at + STATE] |= LOST
        self._lost.push(number)

    def _settle(self, now_ns: int, number: int) -> int:
        if self.loss_packets > 0:
            at: i64 = (number & self._mask) * ENTRY
            sent_ns: int = self._entries[at + SENT_NS]
            rtt_ns = now_ns - sent_ns
            once = self._entries[at + STATE] & AGAIN == 0
            if once and (rtt_ns < self._least_rtt_ns or not self._rtt_measured):
                self._least_rtt_ns = rtt_ns
                self._rtt_measured = True
            if once or rtt_ns >= self._least_rtt_ns:
                sent_as: int = self._sent_as[number & self._mask]
                if sent_as > self._highest_acked:
                    self._highest_acked = sent_as
        return super()._settle(now_ns, number)

    def _mark(self, now_ns: int, number: int) -> int:
        """Mark a packet as arrived; return its wire bytes if that is new."""
        if number >= self.fresh:  # a forged acknowledgement
            return 0
        at: i64 = (number & self._mask) * ENTRY
        if self._entries[at + STATE] & ACKED != 0:
            return 0
        self.early += 1
        insert(self._early_bits, number)
        return self._settle(now_ns, number)

    def _mark_mapped(self, now_ns: int, map_from: int, early: i64) -> int:
        """Mark the packets in a map; return their new wire bytes."""
        # Packets that were never sent are forged.
        news = lowest(early, self.fresh - map_from) & ~map_of(self._early_bits, map_from)
        if news == 0:
            return 0
        acked_bytes = self._mark_word(now_ns, map_from, news & _WORD)
        return acked_bytes + self._mark_word(now_ns, map_from + 32, (news >> 32) & _WORD)

    def _mark_word(self, now_ns: int, first: int, word: i64) -> int:
        """Mark the packets from `first` on that have a bit in a word of 32; return their new wire bytes."""
        acked_bytes = 0
        named = first
        while word != 0:
            while word & 0xFF == 0:
                word >>= 8
                named += 8
            if word & 1 != 0 and named >= self.unacked:
                acked_bytes += self._mark(now_ns, named)
            word >>= 1
            named += 1
        return acked_bytes

    def _detect_loss(self, now_ns: int) -> None:
        if self.loss_packets == 0:
            return
        while (number := self._oldest()) != _NONE:
            sent_as: int = self._sent_as[number & self._mask]
            if sent_as + self.loss_packets > self._highest_acked:
                return
            self._requeue(number)
            self.point.on_nack(now_ns, self.state_of(number) >> WIRE_SHIFT, False)
            self.limiter.add(self)

    def _grow(self) -> None:
        if self.loss_packets > 0:
            self._sent_as = self._grown(self._sent_as, 1)
        super()._grow()
        self._early_bits = ring(self._mask + 1)
        for number in range(self.unacked, self.fresh):
            if self.state_of(number) & ACKED != 0:
                insert(self._early_bits, number)


_LEAST_WINDOW: Final = 1024
# State of an early packet: flags, then payload bytes.
_ARRIVED: Final = 1
_ENDS: Final = 2  # it ends its message
_ASKED: Final = 4  # it requests an ACK
_EARLY_SHIFT: Final = 3


def window_packets(line_rate_bps: int, rto_ns: int, base_rtt_ns: int, wire_bytes: int) -> int:
    """Return the size of the receive window, from the first missing packet on.

    It is the number of full packets that the link carries in two time-outs and a base RTT. By then
    the missing packet has been sent twice more. Packets beyond that, from a sender without a
    window, are sent again.
    """
    span_ns = 2 * rto_ns + base_rtt_ns
    return min(max(line_rate_bps * span_ns // (8_000_000_000 * wire_bytes), _LEAST_WINDOW), PSN_HALF)


class SelectiveRepeatReceiver(Receiver):
    """Receiver that keeps early packets, up to `window_packets`, and delivers in order.

    A packet beyond that is forged, or counts as lost: it is counted, but neither kept nor answered.

    Early packets are answered at once, and so is one that fills a gap, because they indicate a
    loss. If losses are not found by them, they wait for an ACK like packets in order, as long as
    one map can name all waiting packets. An early packet that requests an ACK is answered twice:
    when it arrives, and when it is delivered, for all packets that wait before it. If bytes are
    counted, the second answer waits until no early packet is left, as Ultra Ethernet's does: each
    answer also recommends the path of the packet that filled a gap, which is often a slow one.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        config = transport.config
        wire_bytes = transport.frames.lengths.data_wire_bytes(config.mtu_bytes)
        self._window = window_packets(config.line_rate_bps, config.rto_ns, config.base_rtt_ns, wire_bytes)
        self._answers_early = config.answers_early
        self._end = 0  # one past the highest packet seen
        # Early packets by number modulo the length, a power of two: 0 if missing, else flags and
        # payload bytes.
        self._early = vec[i64]([0] * 64)
        self._early_mask = 63
        self._early_bits = ring(0)  # for each packet, whether it has arrived
        self._first_waiting = NEVER  # first of the early packets that no SACK has named
        self._last_waiting = _NONE
        self._answered = 0  # packet that caused the last SACK
        self._ack_bytes = config.ack_every_bytes  # 0: senders request ACKs
        self._asked = False  # if bytes are counted: an ACK was requested since early packets are held
        # Bytes since the last answer; initially so many that the first packet is answered.
        self._unanswered_bytes = config.ack_every_bytes

    @property
    def holds_early(self) -> bool:
        return self.expected < self._end

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        number = self.absolute(psn)
        due = ack_request
        if self._ack_bytes == 0:
            self.part(marked)
        else:
            self._unanswered_bytes += wire_bytes(frame)
            due = due or marked or self._unanswered_bytes >= self._ack_bytes
        if number == self.expected:
            self.expected += 1
            self.deliver(now_ns, payload_bytes, last)
            if self.expected < self._end:
                asked = self._deliver_early(now_ns)
                if self._ack_bytes > 0:
                    asked = self._is_answered_again(asked or ack_request)
                due = due or asked or self._answers_early
            elif self._end < self.expected:
                self._end = self.expected
            if due:
                self._sack(number, marked, frame)
            else:
                self.wait(now_ns, psn, marked, frame)
            return
        if number < self.expected or (number < self._end and self._early[number & self._early_mask] > 0):
            self.stats.duplicates += 1
        elif number - self.expected >= self._window:
            self.stats.out_of_window += 1
            return
        else:
            self.stats.out_of_order += 1
            while number - self.expected > self._early_mask:
                self._grow()
            entry: i64 = payload_bytes << _EARLY_SHIFT | _ARRIVED
            if last:
                entry |= _ENDS
            if ack_request:
                entry |= _ASKED
            slot: i64 = number & self._early_mask
            self._early[slot] = entry
            insert(self._early_bits, number)
            if number >= self._end:
                self._end = number + 1
            if not due and not self._answers_early:
                first = min(self._first_waiting, number)
                last_one = max(self._last_waiting, number)
                if last_one - first < SACK_BITS:
                    self._first_waiting = first
                    self._last_waiting = last_one
                    self.wait(now_ns, psn, marked, frame)
                    return
        self._sack(number, marked, frame)

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> bool:
        number = self.absolute(psn)
        missing = number >= self.expected
        if number - self.expected >= self._window:
            self.stats.out_of_window += 1
            return False
        if missing and number < self._end:
            missing = self._early[number & self._early_mask] == 0
        if missing:
            self.send_nack(psn, frame)
        else:
            if self._ack_bytes == 0:
                self.part(True)
            self._sack(number, True, frame)
        return missing

    def _is_answered_again(self, asked: bool) -> bool:
        """Return whether a request is answered again, as no early packet is left; `asked`: this delivery had one."""
        self._asked = self._asked or asked
        if not self._asked or self.expected < self._end:
            return False
        self._asked = False
        return True

    def _deliver_early(self, now_ns: int) -> bool:
        """Deliver early packets up to the first missing one; return whether one of them requested an ACK."""
        asked = False
        while self.expected < self._end:
            slot: i64 = self.expected & self._early_mask
            entry = self._early[slot]
            if entry == 0:
                break
            self._early[slot] = 0
            remove(self._early_bits, self.expected)
            self.expected += 1
            payload_bytes: int = entry >> _EARLY_SHIFT
            self.deliver(now_ns, payload_bytes, entry & _ENDS != 0)
            if entry & _ASKED != 0:
                asked = True
        return asked

    def answer_waiting(self) -> None:
        # If bytes are counted, a named packet has caused the answer; if it is the first missing
        # one, no packet has.
        number = self.absolute(self._waiting_psn) if self._ack_bytes == 0 else self.expected
        self._sack(number, self._waiting_marked, self._waiting_frame)

    def _sack(self, number: int, marked: bool, frame: bytes) -> None:
        map_from = self._first_waiting
        if map_from == NEVER:
            map_from = (number if abs(number - self._answered) < SACK_BITS else self._answered) - SACK_BITS + 1
        if map_from <= self.expected:
            map_from = self.expected + 1
        self._answered = number
        self._unanswered_bytes = 0
        self._first_waiting = NEVER
        self._last_waiting = _NONE
        early = lowest(map_of(self._early_bits, map_from), self._end - map_from)  # later ones are of an earlier round
        self.send_sack(self.psn(number), self.psn(self.expected), self.psn(map_from), early, marked, frame)

    def _grow(self) -> None:
        old, old_mask = self._early, self._early_mask
        self._early = vec[i64]([0] * (2 * len(old)))
        self._early_mask = 2 * old_mask + 1
        self._early_bits = ring(self._early_mask + 1)
        for number in range(self.expected, self._end):
            before: i64 = number & old_mask
            after: i64 = number & self._early_mask
            self._early[after] = old[before]
            if old[before] > 0:
                insert(self._early_bits, number)
