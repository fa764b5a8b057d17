"""Pull pacer of a NIC: receivers that pull data by credit take turns, at the rate of its link.

A notification point that has credit to send calls `add`. On its turn (`on_turn`) it sends one
credit and returns the number of bytes that the credit triggers on the link. The next point gets its
turn when the link has had the time for these bytes. NDP (Handley et al., SIGCOMM 2017, 3.2) and
EQDS (Olteanu et al., NSDI 2022) have a pull pacer.

A point with `pulls_ahead` stays in the pacer when it has nothing left to pull. It gets turns for
further credit (`on_idle_turn`) while no point has credit to send. This is Ultra Ethernet's idle
list.
"""

from __future__ import annotations

import math

from host_agents.cc.base import Host, NotificationPoint, Path
from host_agents.fifo import Fifo
from host_agents.pcie import Pcie
from host_agents.timers import Timer, TimerOwner, TimerQueue


class PullPacer(TimerOwner):
    def __init__(self, timers: TimerQueue, line_rate_bps: float, pcie: Pcie | None = None) -> None:
        self._line_ns_per_byte = 8e9 / line_rate_bps
        self._ns_per_byte = self._line_ns_per_byte
        self._pcie = pcie
        self._next_ns = 0.0  # time at which the link has carried the data pulled so far
        self._ring: Fifo[NotificationPoint] = Fifo()
        # A point that has credit to send again leaves this queue on its next turn here.
        self._idle: Fifo[NotificationPoint] = Fifo()
        self._timer = Timer(timers, self)

    def add(self, now_ns: int, point: NotificationPoint) -> None:
        """Add `point`, which has credit to send, to the ring until it has none."""
        if point.pulling:
            return
        point.pulling = True
        self._ring.push(point)
        if not self._timer.is_armed():
            self._timer.arm(max(now_ns, math.ceil(self._next_ns)))

    def set_rate(self, share: float) -> None:
        """Set the pull rate to `share` of the link's rate, from the next turn on."""
        self._ns_per_byte = self._line_ns_per_byte / share

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Give the next point its turn."""
        while self._ring.size > 0:
            point = self._ring.pop()
            drawn_bytes = point.on_turn(now_ns)
            if drawn_bytes > 0:
                self._ring.push(point)
                self._wait(now_ns, drawn_bytes)
                return
            point.pulling = False
            if point.pulls_ahead and (not point.idling or point.idles_repeatedly):
                point.idling = True
                self._idle.push(point)
        while self._idle.size > 0:
            point = self._idle.pop()
            drawn_bytes = point.on_idle_turn(now_ns)
            if drawn_bytes > 0:
                self._idle.push(point)
                self._wait(now_ns, drawn_bytes)
                return
            point.idling = False

    def _wait(self, now_ns: int, drawn_bytes: int) -> None:
        """Wait for the time that the link needs for the pulled bytes."""
        # Idle time does not accumulate, and rounding up to a whole ns does not add up.
        started_ns = max(self._next_ns, float(now_ns - 1))
        ns_per_byte = self._ns_per_byte
        if self._pcie is not None:
            ns_per_byte = max(ns_per_byte, self._line_ns_per_byte / self._pcie.pull_rate(now_ns))
        self._next_ns = started_ns + drawn_bytes * ns_per_byte
        self._timer.arm(math.ceil(self._next_ns))


def pull_pacer(host: Host, path: Path) -> PullPacer:
    """Return the pull pacer of a NIC, which the first call makes."""
    pacer = host.part("pull pacer", lambda: PullPacer(host.timers, path.line_rate_bps, host.pcie))
    assert isinstance(pacer, PullPacer)
    return pacer
