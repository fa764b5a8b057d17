"""What a congestion-control protocol is made of: a reaction point (sender) and a notification point (receiver).

A reaction point sets `rate_bps` and `window_bytes`; the rate limiters of the QPs that share it obey. It learns from the
`on_...` methods, which the NIC calls. All of them do nothing by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.limiter import RateLimiter
    from host_agents.nic import Nic
    from host_agents.qp import QueuePair

UNLIMITED: Final = 1e18  # bytes: a window that never closes


class Path:
    """What a reaction point may know of the network before it has sent anything."""

    def __init__(
        self,
        line_rate_bps: float,
        base_rtt_ns: int,
        mtu_bytes: int,
        wire_bytes: int,
        cell_bytes: int,
        base_rtts_ns: tuple[int, ...] = (),
    ) -> None:
        self.line_rate_bps = line_rate_bps
        self.base_rtt_ns = base_rtt_ns  # the largest base RTT of the network
        self.mtu_bytes = mtu_bytes  # payload of a full packet
        self.wire_bytes = wire_bytes  # a full packet on the wire, as it leaves the host
        self.cell_bytes = cell_bytes  # unit of the queue lengths that switches report
        self._base_rtts_ns = base_rtts_ns

    def base_rtt_over(self, hops: int) -> int:
        """The base RTT, ns, of paths through so many routers, where it is known; else the network's largest."""
        if 0 <= hops < len(self._base_rtts_ns) and self._base_rtts_ns[hops] > 0:
            return self._base_rtts_ns[hops]
        return self.base_rtt_ns

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product: line rate times base RTT."""
        return self.line_rate_bps * self.base_rtt_ns / 8e9


class Feedback:
    """What one ACK tells. The NIC reuses one object: keep its values, never the object."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.order = 0  # place of the acknowledged packet among all that this reaction point has sent, from 0
        self.acked_bytes = 0  # wire bytes that left the network: newly acknowledged
        # Since the packet was sent last; -1: not known. If it was sent before, a time under the base RTT shows that an
        # earlier copy has caused the ACK.
        self.rtt_ns = -1
        self.resent = False  # the packet was sent more than once
        self.marked = False  # the packet arrived with ECN CE
        self.entropy = 0  # its UDP source port
        self.hops = 0  # routers that the ACK passed (from its TTL)
        # INT echo: `int_hops` records of 8 bytes from `frame[int_offset]`; 0 hops when there is none.
        self.frame = b""
        self.int_offset = 0
        self.int_hops = 0
        self.path_id = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Point(TimerOwner):
    """What both sides have: a place in a NIC, and timers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._timers: list[Timer] = []

    def bind(self, nic: Nic, qp: QueuePair) -> None:
        """Called once, before anything else, with the (first) queue pair that this is for."""
        self.nic = nic
        self.qp = qp

    def timer(self, kind: int = 0) -> Timer:
        """A new timer that calls this object's `on_timer`. Only after `bind`."""
        timer = Timer(self.nic.timers, self, kind)
        self._timers.append(timer)
        return timer

    def close(self) -> None:
        """The (last) queue pair is closed: no timer shall fire any more."""
        for timer in self._timers:
            timer.cancel()


@mypyc_attr(allow_interpreted_subclasses=True)
class ReactionPoint(Point):
    """Base class of the sender's side. It starts at line rate with an unlimited window."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rate_bps = path.line_rate_bps
        self.window_bytes = UNLIMITED
        # The NIC counts: data packets sent so far, retransmissions included; and wire bytes that wait to be sent, for
        # the first time or again.
        self.sent_packets = 0
        self.waiting_bytes = 0
        self.limiters: list[RateLimiter] = []  # those that obey this reaction point

    def on_start(self, now_ns: int) -> None:
        """A queue pair has something to send, after it had nothing."""

    def on_post(self, now_ns: int) -> None:
        """A message starts: `waiting_bytes` has grown. Follows `on_start`, if that is called, too."""

    def on_idle(self, now_ns: int) -> None:
        """All that a queue pair had to send is acknowledged."""

    def on_sent(self, now_ns: int, wire_bytes: int) -> None:
        """A data packet leaves."""

    def on_ack(self, feedback: Feedback) -> None:
        """An ACK arrived. `feedback` is only valid during the call."""

    def on_nack(self, now_ns: int, wire_bytes: int, trimmed: bool) -> None:
        """A packet of this size did not arrive whole: trimmed on its way, or missing (a NAK)."""

    def on_expired(self, now_ns: int, wire_bytes: int) -> None:
        """Selective repeat: the time-out of one packet of this size expired. When all are told of, `on_timeout`."""

    def on_timeout(self, now_ns: int) -> None:
        """A retransmission time-out expired."""

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification packet arrived."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """A control packet (0xE0-0xFF) arrived; what follows the BTH starts at `frame[offset]`."""

    def may_send(self, inflight_bytes: int) -> bool:
        """Whether a packet may leave now, as far as the window goes. The last one may overshoot it."""
        return inflight_bytes < self.window_bytes

    def set_rate(self, rate_bps: float) -> None:
        """A new rate, effective at once: it also moves the next-service time of what was sent last."""
        if rate_bps != self.rate_bps:
            self.rate_bps = rate_bps
            for limiter in self.limiters:
                limiter.rate_changed()

    def set_window(self, window_bytes: float) -> None:
        """A new window, effective at once. A smaller one takes nothing back."""
        wider = window_bytes > self.window_bytes
        self.window_bytes = window_bytes
        if wider:
            for limiter in self.limiters:
                limiter.wake(self.nic.now_ns)


@mypyc_attr(allow_interpreted_subclasses=True)
class NotificationPoint(Point):
    """Base class of the receiver's side. By itself it does nothing: ACKs and NAKs are the transport's."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.pulling = False  # in the pull pacer's ring

    def on_data(self, now_ns: int, marked: bool, frame: bytes) -> None:
        """A data packet of this QP arrived, in order or not, ECN-marked or not."""

    def on_trimmed(self, now_ns: int, frame: bytes) -> None:
        """The header of a data packet arrived whose payload a switch cut off. The transport asks for it again."""

    def on_control(self, now_ns: int, opcode: int, frame: bytes, offset: int) -> None:
        """A control packet for the receiver arrived; what follows the BTH starts at `frame[offset]`."""

    def on_turn(self, now_ns: int) -> int:
        """Its turn at the NIC's pull pacer: send one credit. Returns the wire bytes that it draws, 0 if none is due."""
        return 0
