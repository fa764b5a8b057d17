"""Timers of one NIC: served at their nominal times, in order of time, then of arming."""

from __future__ import annotations

import heapq
from typing import Final

from mypy_extensions import mypyc_attr

NEVER: Final = 1 << 61


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerOwner:
    """Whoever arms timers and is called when they expire."""

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """`now_ns` is the timer's nominal time, whenever the driver happened to call."""


class Timer:
    """One resettable timer. Arming it again moves it; moving it to a later time costs nothing until the earlier one."""

    def __init__(self, queue: TimerQueue, owner: TimerOwner, kind: int = 0) -> None:
        self.queue = queue
        self.owner = owner
        self.kind = kind
        self.deadline_ns = NEVER
        self.queued_ns = NEVER  # time of the earliest entry in the queue for this timer

    def arm(self, at_ns: int) -> None:
        self.deadline_ns = at_ns
        if at_ns < self.queued_ns:
            self.queued_ns = at_ns
            self.queue.push(at_ns, self)

    def cancel(self) -> None:
        self.deadline_ns = NEVER

    def is_armed(self) -> bool:
        return self.deadline_ns != NEVER


class TimerQueue:
    """A heap of timers. An entry whose timer has moved on is dropped or put back when it comes to the top."""

    def __init__(self) -> None:
        self.first_ns = NEVER  # never later than the earliest deadline
        self._heap: list[tuple[int, int, Timer]] = []
        self._armed = 0

    def push(self, at_ns: int, timer: Timer) -> None:
        self._armed += 1
        heapq.heappush(self._heap, (at_ns, self._armed, timer))
        if at_ns < self.first_ns:
            self.first_ns = at_ns

    def next_ns(self) -> int:
        """When the next timer is due; NEVER if none is armed."""
        heap = self._heap
        while heap:
            at_ns, _, timer = heap[0]
            if timer.deadline_ns == at_ns:
                self.first_ns = at_ns
                return at_ns
            heapq.heappop(heap)
            if timer.queued_ns == at_ns:
                timer.queued_ns = NEVER
                if timer.deadline_ns != NEVER:
                    timer.arm(timer.deadline_ns)
        self.first_ns = NEVER
        return NEVER

    def serve(self, now_ns: int) -> None:
        """Expire every timer due at or before `now_ns`, those included that the expired ones arm."""
        while self.next_ns() <= now_ns:
            at_ns, _, timer = heapq.heappop(self._heap)
            timer.queued_ns = NEVER
            timer.deadline_ns = NEVER
            timer.owner.on_timer(at_ns, timer)
