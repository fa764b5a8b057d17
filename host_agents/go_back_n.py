"""Go-back-N, as in reliable connections (IBTA volume 1, 9.7): packets are only accepted in order."""

from __future__ import annotations

from host_agents.cc.base import Trimmed
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.messages import Message
from host_agents.receiver import Receiver
from host_agents.sender import Sender
from host_agents.timers import NEVER, Timer
from host_agents.transport import Transport
from host_agents.wire import SYNDROME_ACK, SYNDROME_NAK_SEQUENCE


class GoBackNSender(Sender):
    """Sender in order, which resends everything from the requested packet on after a NAK or a time-out."""

    def __init__(self, transport: Transport, limiter: RateLimiter, load_balancer: LoadBalancer) -> None:
        super().__init__(transport, limiter, load_balancer)
        self.next = 0  # unacked <= next <= fresh

    def has_data(self) -> bool:
        return self.next < self.open_end

    def next_frame(self, now_ns: int) -> bytes:
        number = self.next
        if number == self.fresh:
            self._new_packet(now_ns)
        self.next = number + 1
        if self.deadline_ns == NEVER:
            self._arm(now_ns + self.rto_ns)
        return self._send(now_ns, number)

    def on_ack(self, now_ns: int, number: int) -> int:
        acked_bytes = super().on_ack(now_ns, number)
        if acked_bytes > 0:
            if self.next < self.unacked:
                self.next = self.unacked
            if self.unacked == self.fresh:
                self._disarm()
            elif self.deadline_ns != NEVER:  # otherwise the timer has expired, and the next packet arms it
                self.deadline_ns = now_ns + self.rto_ns  # the timer is moved to this time when it expires
        return acked_bytes

    def on_nak(self, now_ns: int, number: int) -> int:
        acked_bytes = self.on_ack(now_ns, number - 1)
        if number == self.unacked:
            self._go_back(self.unacked)
        return acked_bytes

    def send_again(self, place: int) -> None:
        number = self.next
        while number > self.unacked and self.place_of(number - 1) >= place:
            number -= 1
        if number < self.next:
            self._go_back(number)
            self.limiter.add(self)

    def abandon(self) -> list[Message]:
        left = super().abandon()
        self.next = self.end
        return left

    def on_nack(self, number: int, trimmed: Trimmed) -> None:
        """Ignore a NACK, as a go-back-N receiver answers a trimmed packet with a NAK."""

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        if now_ns < self.deadline_ns:
            timer.arm(self.deadline_ns)
            return
        self.deadline_ns = NEVER
        self.stats.timeouts += 1
        if not self.may_retry(now_ns):
            return
        self._go_back(self.unacked)
        self.point.on_timeout(now_ns)
        if self.balanced:
            self.load_balancer.on_expired(now_ns, self.entropy_of(self.unacked))
        self.load_balancer.on_timeout(now_ns)
        self.limiter.add(self)
        self.limiter.wake(now_ns)

    def _go_back(self, first: int) -> None:
        """Resend everything from packet `first` on."""
        for number in range(first, self.next):
            self._give_up(number)
        self.next = first


class GoBackNReceiver(Receiver):
    """Receiver that accepts the expected packet only.

    It sends one NAK for each gap, and acknowledges duplicates again. A packet that is trimmed while
    a NAK waits for its answer is requested when it becomes the expected one.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._nak_sent = False
        # First packet after the expected one that was trimmed since the NAK. Trimmed headers
        # overtake data, so it may be one of the packets that the NAK requested. It is recorded
        # because no later packet may follow that reveals the gap.
        self._trimmed = NEVER

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        number = self.absolute(psn)
        if number == self.expected:
            self.expected = number + 1
            self._nak_sent = False
            self.deliver(now_ns, payload_bytes, last)
            marked = self.echo(now_ns, marked, frame)
            self.part(marked)
            if self.expected == self._trimmed:
                self._nak(marked, frame)
            elif ack_request:
                self.send_ack(psn, SYNDROME_ACK, marked, frame)
            else:
                self.wait(now_ns, psn, marked, frame)
        elif number > self.expected:
            self.stats.out_of_order += 1
            self._nak(self.echo(now_ns, marked, frame), frame)
        else:
            self.stats.duplicates += 1
            marked = self.echo(now_ns, marked, frame)
            self.part(marked)
            self.send_ack(self.psn(self.expected - 1), SYNDROME_ACK, marked, frame)

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> bool:
        number = self.absolute(psn)
        if number == self.expected:
            self._nak_sent = False  # the NAK was for an earlier copy; this loss is a new one
        elif self._nak_sent and self.expected < number < self._trimmed:
            self._trimmed = number
        if number >= self.expected:
            self._nak(True, frame)
        return False

    def _nak(self, marked: bool, frame: bytes) -> None:
        if not self._nak_sent:
            self._nak_sent = True
            self._trimmed = NEVER
            self.stats.naks_sent += 1
            self.part(marked)
            self.send_ack(self.psn(self.expected), SYNDROME_NAK_SEQUENCE, marked, frame)

    def answer_waiting(self) -> None:
        self.send_ack(self._waiting_psn, SYNDROME_ACK, self._waiting_marked, self._waiting_frame)
