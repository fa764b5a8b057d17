"""Datagrams: each packet is sent once, and only the last packet of a message is answered.

A message is delivered when its last packet arrives, even if earlier ones were lost. The last packet
is repeated until it is answered, like the datagram that ends a test of UDP measurement tools, and
the next message waits for the answer.
"""

from __future__ import annotations

from host_agents.cc.base import Trimmed
from host_agents.lb.base import LoadBalancer
from host_agents.limiter import RateLimiter
from host_agents.receiver import Receiver
from host_agents.sender import LAST, Sender
from host_agents.timers import Timer
from host_agents.transport import Transport
from host_agents.wire import SYNDROME_ACK


class DatagramSender(Sender):
    """Sender for which each packet but the last of a message counts as acknowledged when it leaves."""

    def __init__(self, transport: Transport, limiter: RateLimiter, load_balancer: LoadBalancer) -> None:
        super().__init__(transport, limiter, load_balancer)
        self._again = False  # whether the last packet of a message has to be sent again

    def has_data(self) -> bool:
        return self._again if self.unacked < self.fresh else self.fresh < self.open_end

    def next_frame(self, now_ns: int) -> bytes:
        self._again = False
        number = self.unacked
        if number == self.fresh:
            self._new_packet(now_ns)
        frame = self._send(now_ns, number)
        if self.state_of(number) & LAST != 0:
            self._arm(now_ns + self.rto_ns)
        else:
            Sender.on_ack(self, now_ns, number)
        return frame

    def on_ack(self, now_ns: int, number: int) -> int:
        """Handle the answer to a last packet, which is the only unacknowledged one."""
        acked_bytes = super().on_ack(now_ns, number)
        if acked_bytes > 0:
            self._again = False
            self._disarm()
            self.limiter.add(self)
        return acked_bytes

    def on_nak(self, now_ns: int, number: int) -> int:
        """Ignore a NAK, which no receiver of datagrams sends."""
        return 0

    def on_nack(self, number: int, trimmed: Trimmed) -> None:
        """Ignore a NACK, since a trimmed packet is lost."""

    def send_again(self, place: int) -> None:
        """Ignore a protocol's request to send packets again."""

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self.stats.timeouts += 1
        if not self.may_retry(now_ns):
            return
        self._give_up(self.unacked)
        self._again = True
        self.limiter.add(self)
        self.limiter.wake(now_ns)


class DatagramReceiver(Receiver):
    """Receiver that accepts packets in order; an overtaken packet counts as a duplicate."""

    def on_data(
        self, now_ns: int, psn: int, payload_bytes: int, last: bool, ack_request: bool, marked: bool, frame: bytes
    ) -> None:
        number = self.absolute(psn)
        if number < self.expected:
            self.stats.duplicates += 1
        else:
            if number > self.expected:
                self.stats.out_of_order += 1
            self.expected = number + 1
            self.deliver(now_ns, payload_bytes, last)
        if last:
            self.send_ack(psn, SYNDROME_ACK, marked, frame)

    def on_trimmed(self, now_ns: int, psn: int, frame: bytes) -> bool:
        return False
