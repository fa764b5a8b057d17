"""Timers of one NIC, which expire at their nominal times in order of time, then of arming.

They are in a binary heap that knows the place of each timer. So a timer is moved without leaving an
old entry, and pacing moves one for almost every packet. (`heapq` costs six times as much in
compiled code; see docs/decisions/.)
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

NEVER: Final = 1 << 61  # also the fabric's value; 2^62 would not fit into a tagged integer of compiled code


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerOwner:
    """Owner of timers, which is called when they expire."""

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        """Handle the timer; `now_ns` is its nominal time, independent of the driver's call."""


class Timer:
    """Timer that is moved if it is armed again.

    `kind` has a meaning for its owner only.
    """

    def __init__(self, queue: TimerQueue, owner: TimerOwner, kind: int = 0) -> None:
        self.queue = queue
        self.owner = owner
        self.kind = kind
        self.deadline_ns = NEVER
        self.turn = 0  # order among timers with the same deadline
        self.place = -1  # index in the heap

    def arm(self, at_ns: int) -> None:
        self.queue.arm(self, at_ns)

    def cancel(self) -> None:
        self.queue.cancel(self)

    def is_armed(self) -> bool:
        return self.place >= 0

    def dismiss(self) -> None:
        """Cancel the timer finally, and release its owner, which may then be deleted."""
        self.cancel()
        self.owner = _nobody


_nobody: Final = TimerOwner()


class TimerQueue:
    def __init__(self) -> None:
        self.first_ns = NEVER  # time of the next timer; NEVER if none is armed
        self._heap: list[Timer] = []
        self._turn = 0

    def arm(self, timer: Timer, at_ns: int) -> None:
        self._turn += 1
        later = timer.place >= 0 and at_ns >= timer.deadline_ns
        timer.deadline_ns = at_ns
        timer.turn = self._turn
        if timer.place < 0:
            timer.place = len(self._heap)
            self._heap.append(timer)
        if later:
            self._sink(timer)
        else:
            self._rise(timer)
        self.first_ns = self._heap[0].deadline_ns

    def cancel(self, timer: Timer) -> None:
        place = timer.place
        if place < 0:
            return
        heap = self._heap
        last = heap.pop()
        if last is not timer:
            last.place = place
            heap[place] = last
            self._rise(last)
            self._sink(last)
        timer.place = -1
        timer.deadline_ns = NEVER
        self.first_ns = heap[0].deadline_ns if heap else NEVER

    def serve(self, now_ns: int) -> None:
        """Expire every timer due at or before `now_ns`, including those that expiring timers arm."""
        while self.first_ns <= now_ns:
            self.serve_first()

    def serve_first(self) -> None:
        """Expire the timer that is due first; there has to be one."""
        timer = self._heap[0]
        at_ns = timer.deadline_ns
        self.cancel(timer)
        timer.owner.on_timer(at_ns, timer)

    def _rise(self, timer: Timer) -> None:
        heap = self._heap
        place = timer.place
        while place > 0:
            above = (place - 1) >> 1
            other = heap[above]
            if not _before(timer, other):
                break
            heap[place] = other
            other.place = place
            place = above
        heap[place] = timer
        timer.place = place

    def _sink(self, timer: Timer) -> None:
        heap = self._heap
        size = len(heap)
        place = timer.place
        while True:
            below = 2 * place + 1
            if below >= size:
                break
            if below + 1 < size and _before(heap[below + 1], heap[below]):
                below += 1
            other = heap[below]
            if not _before(other, timer):
                break
            heap[place] = other
            other.place = place
            place = below
        heap[place] = timer
        timer.place = place


def _before(a: Timer, b: Timer) -> bool:
    return a.deadline_ns < b.deadline_ns or (a.deadline_ns == b.deadline_ns and a.turn < b.turn)
