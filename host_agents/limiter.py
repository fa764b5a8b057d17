"""The rate limiter: paces the queue pairs of one reaction point by a next-service time (NST)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from host_agents.timers import Timer, TimerOwner

if TYPE_CHECKING:
    from host_agents.cc.base import ReactionPoint
    from host_agents.nic import Nic
    from host_agents.qp import QueuePair

IDLE: Final = 0  # nothing to send, or the window is closed
READY: Final = 1  # in the NIC's ring
WAITING: Final = 2  # for the next-service time
ROUNDING_NS: Final = 0.001  # sums of fractions of a ns may come out this much too late


class RateLimiter(TimerOwner):
    """Holds its queue pairs back until the NST, and while the reaction point's window is closed.

    After a packet of b bytes, NST moves by 8 b / rate. A packet that the link (not the window) made late by up to the
    slack does not delay those after it.
    """

    def __init__(self, nic: Nic, reaction_point: ReactionPoint, priority: int, slack_ns: float) -> None:
        self.state = IDLE
        self.inflight_bytes = 0  # wire bytes sent and neither acknowledged nor given up
        self.nst_ns = 0.0
        self._paced_from_ns = 0.0  # NST = this + bits / rate, so that a new rate moves it
        self._paced_bits = 0.0
        self.slack_ns = slack_ns
        self.reaction_point = reaction_point
        self.nic = nic
        self.priority = priority
        self.next_ready: RateLimiter | None = None  # in the NIC's ring
        # Queue pairs with something to send, as a ring; a closed window keeps them.
        self._last_member: QueuePair | None = None
        self.timer = Timer(nic.timers, self)  # see Nic.wait_for_nst

    def add(self, qp: QueuePair) -> None:
        """`qp` has something to send."""
        if qp.listed:
            return
        qp.listed = True
        last = self._last_member
        if last is None:
            qp.next_member = qp
        else:
            qp.next_member = last.next_member
            last.next_member = qp
        self._last_member = qp

    def wake(self, now_ns: int) -> None:
        """Something may have become sendable."""
        if self.state != IDLE or self._last_member is None:
            return
        if self.reaction_point.may_send(self.inflight_bytes):
            if self.nst_ns <= now_ns:
                self.nst_ns = float(now_ns)  # idle time earns nothing
                self.state = READY
                self.nic.make_ready(self)
            else:
                self._wait()

    def rate_changed(self) -> None:
        """The reaction point has another rate: move the NST of the packet sent last."""
        self.nst_ns = self._paced_from_ns + self._paced_bits * 1e9 / self.reaction_point.rate_bps
        if self.state == WAITING:
            self._wait()

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self.nst_reached()

    def nst_reached(self) -> None:
        """The wait is over."""
        self.state = READY
        self.nic.make_ready(self)

    def transmit(self, now_ns: int) -> bytes | None:
        """A data frame of the next queue pair in turn; None if there is none to send now."""
        if self.nst_ns - ROUNDING_NS > now_ns:
            self._wait()
            return None
        last = self._last_member
        while last is not None and self.reaction_point.may_send(self.inflight_bytes):
            qp = last.next_member
            assert qp is not None
            sender = qp.sender
            if not sender.has_data():
                last = self._drop(qp, last)
                continue
            frame = sender.next_frame(now_ns)
            if sender.has_data():
                self._last_member = qp  # its turn is over
            else:
                self._drop(qp, last)
            self._reschedule(now_ns)
            return frame
        self.state = IDLE
        return None

    def charge(self, now_ns: int, wire_bytes: int) -> None:
        """A packet of this size leaves now."""
        nominal = self.nst_ns
        earliest = now_ns - self.slack_ns
        if nominal < earliest:
            nominal = earliest
        self._paced_from_ns = nominal
        self._paced_bits = 8.0 * wire_bytes
        self.nst_ns = nominal + self._paced_bits * 1e9 / self.reaction_point.rate_bps
        self.inflight_bytes += wire_bytes

    def _drop(self, qp: QueuePair, last: QueuePair) -> QueuePair | None:
        """Take `qp`, which follows `last`, out of the ring. Returns the ring's new last."""
        qp.listed = False
        if qp is last:
            self._last_member = None
        else:
            last.next_member = qp.next_member
            self._last_member = last
        qp.next_member = None
        return self._last_member

    def _reschedule(self, now_ns: int) -> None:
        if self._last_member is None or not self.reaction_point.may_send(self.inflight_bytes):
            self.state = IDLE
        elif self.nst_ns - ROUNDING_NS <= now_ns:
            self.nic.make_ready(self)
        else:
            self._wait()

    def _wait(self) -> None:
        self.state = WAITING
        self.nic.wait_for_nst(self, math.ceil(self.nst_ns - ROUNDING_NS))
