"""The rate limiter: paces the queue pairs of one reaction point by a next-service time (NST)."""

from __future__ import annotations

import math
from typing import Final

from host_agents.cc.base import MAX_RATE_BPS, ReactionPoint
from host_agents.port import Port, Source
from host_agents.timers import Timer, TimerOwner

IDLE: Final = 0  # nothing to send, or the window is closed
READY: Final = 1  # in the port's ring
WAITING: Final = 2  # waiting for the next-service time
ROUNDING_NS: Final = 0.001  # largest error of sums of fractions of a ns


class Member(TimerOwner):
    """Sending half of a queue pair in the view of its rate limiter."""

    def __init__(self) -> None:
        self.next_member: Member | None = None  # in the limiter's ring
        self.listed = False  # in that ring

    def has_data(self) -> bool:
        """Return whether there is a packet to send, regardless of rate and window."""
        raise NotImplementedError

    def has_urgent(self) -> bool:
        """Return whether the next packet leaves regardless of the window, as a recovery's retransmissions do."""
        return False

    def next_frame(self, now_ns: int) -> bytes:
        """Send the next packet. It may only be called if `has_data`."""
        raise NotImplementedError


class RateLimiter(Source):
    """Limiter that holds queue pairs back until the next-service time (NST), and while the window is closed.

    After a packet that is charged as b bytes, NST advances by 8 b / rate. If the link delays a
    packet by at most the slack, NST is computed as if the packet had left in time.
    """

    def __init__(self, port: Port, reaction_point: ReactionPoint, priority: int, slack_ns: float) -> None:
        super().__init__(port, priority)
        self.state = IDLE
        self.data_priority = priority  # the NIC's; `priority` may temporarily differ
        self.recovering = 0  # number of its queue pairs in recovery, which may have urgent packets
        self.inflight_bytes = 0  # wire bytes sent and neither acknowledged nor given up
        self.nst_ns = 0.0
        self._paced_from_ns = 0.0  # NST = this + bits / rate, so that a new rate moves it
        self._paced_bits = 0.0
        self.slack_ns = slack_ns
        self.reaction_point = reaction_point
        # Queue pairs with something to send, as a ring; it is unchanged while the window is closed.
        self._last_member: Member | None = None
        self.timer = Timer(port.timers, self)

    def add(self, member: Member) -> None:
        """Add `member`, which has something to send."""
        if member.listed:
            return
        member.listed = True
        last = self._last_member
        if last is None:
            member.next_member = member
        else:
            member.next_member = last.next_member
            last.next_member = member
        self._last_member = member

    def wake(self, now_ns: int) -> None:
        """Wake the limiter, since something may have become sendable."""
        if self.state != IDLE or self._last_member is None:
            return
        if self._may_send():
            if self.nst_ns <= now_ns:
                self.nst_ns = float(now_ns)  # unused time does not accumulate
                self.state = READY
                self.port.make_ready(self)
            else:
                self._wait()

    def dismiss(self) -> None:
        """Release the queue pairs and the timer; nothing is sent from now on."""
        self._last_member = None
        self.timer.dismiss()

    def rate_changed(self) -> None:
        """Compute the next-service time after the last packet again, with the reaction point's new rate."""
        self.nst_ns = self._paced_from_ns + self._gap_ns()
        if self.state == WAITING:
            self._wait()

    def set_data_priority(self, priority: int) -> None:
        """Set the NIC's class for data.

        It applies to queue pairs that are opened while there are no others.
        """
        in_it = self.priority == self.data_priority
        self.data_priority = priority
        if in_it:
            self.set_priority(priority)

    def set_priority(self, priority: int) -> None:
        """Wait in this class from now on; -1 stands for the NIC's class for data."""
        if priority < 0:
            priority = self.data_priority
        waits = priority != self.priority and self.state == READY and self.port.take_back(self)
        self.priority = priority
        if waits:
            self.port.make_ready(self)

    def nst_reached(self) -> None:
        self.state = READY
        self.port.make_ready(self)

    def transmit(self, now_ns: int) -> bytes | None:
        """Return a data frame of the next member in turn."""
        if self.nst_ns - ROUNDING_NS > now_ns:
            self._wait()
            return None
        while self._last_member is not None and self._may_send():
            last = self._last_member
            member = last.next_member
            assert member is not None
            if not member.has_data():
                self._drop(member, last)
                continue
            frame = member.next_frame(now_ns)
            if member.has_data():
                self._last_member = member  # its turn is over
            else:
                self._drop(member, last)
            self._reschedule(now_ns)
            return frame
        self.state = IDLE
        return None

    def _may_send(self) -> bool:
        """Return whether there is something to send now.

        Raises LimitError for a window that would never open.
        """
        point = self.reaction_point
        if point.may_send(self.inflight_bytes):
            return True
        if not point.window_bytes >= 0.0:  # also true for NaN
            point.expect_limits()
        return self.recovering > 0 and not point.draws_credits and self._turn_to_urgent()

    def _turn_to_urgent(self) -> bool:
        """Give the next turn to a queue pair with an urgent packet; return whether there is one."""
        first = self._last_member
        before = first
        while before is not None:
            member = before.next_member
            assert member is not None
            if member.has_urgent():
                self._last_member = before
                return True
            before = member if member is not first else None
        return False

    def charge(self, now_ns: int, wire_bytes: int) -> None:
        """Charge a packet of this size that leaves now."""
        nominal = self.nst_ns
        earliest = now_ns - self.slack_ns
        if nominal < earliest:
            nominal = earliest
        self._paced_from_ns = nominal
        self._paced_bits = 8.0 * self.reaction_point.path.link_bytes(wire_bytes)
        self.nst_ns = nominal + self._gap_ns()
        self.inflight_bytes += wire_bytes

    def _gap_ns(self) -> float:
        """Return the gap from the last packet to the next.

        Raises LimitError for a rate without one.
        """
        point = self.reaction_point
        rate_bps = point.rate_bps
        if not 0.0 < rate_bps <= MAX_RATE_BPS:  # also true for NaN
            point.expect_limits()
        return self._paced_bits * 1e9 / rate_bps

    def _drop(self, member: Member, last: Member) -> None:
        """Remove `member`, which follows `last`, from the ring."""
        member.listed = False
        if member is last:
            self._last_member = None
        else:
            last.next_member = member.next_member
            self._last_member = last
        member.next_member = None

    def _reschedule(self, now_ns: int) -> None:
        if self._last_member is None or not self._may_send():
            self.state = IDLE
        elif self.nst_ns - ROUNDING_NS <= now_ns:
            self.port.make_ready(self)
        else:
            self._wait()

    def _wait(self) -> None:
        self.state = WAITING
        self.port.wait_for_nst(self, math.ceil(self.nst_ns - ROUNDING_NS))
