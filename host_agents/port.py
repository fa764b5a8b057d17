"""Sending side of a NIC, which chooses the next frame by class, next-service time and PFC state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from host_agents import wire
from host_agents.fifo import Fifo
from host_agents.messages import NicStats
from host_agents.timers import NEVER, Timer, TimerOwner, TimerQueue

CLASSES: Final = 8


class Source(TimerOwner):
    """Sender of frames of one class, which may be paced."""

    timer: Timer  # see Port.wait_for_nst; a subclass creates it last, when the object is complete

    def __init__(self, port: Port, priority: int) -> None:
        self.port = port
        self.priority = priority
        self.next_ready: Source | None = None  # in the port's ring

    def transmit(self, now_ns: int) -> bytes | None:
        """Return a frame on its turn; None if there is none to send now."""
        raise NotImplementedError

    def nst_reached(self) -> None:
        """Handle the end of the wait that `Port.wait_for_nst` started."""
        raise NotImplementedError

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        self.nst_reached()


class Arbiter(TimerOwner):
    """Part of the NIC with queues of several classes, among which it chooses itself."""

    def due_ns(self, paused_until_ns: Sequence[int]) -> int:
        """Return the time of the next frame to send, if it is known; a past time means at once.

        `paused_until_ns` is by class.
        """
        raise NotImplementedError

    def transmit(self, now_ns: int, paused: int) -> bytes | None:
        """Return the next frame of a class outside of the bit mask `paused`; None if there is none to send now."""
        raise NotImplementedError


class Port:
    """Parts of a NIC that its components share.

    They are the clock, timers, control frames, and a ring of ready sources per class.
    """

    def __init__(self) -> None:
        # Attributes that every frame needs come first, to occupy fewer cache lines.
        self.now_ns = 0
        self.timers = TimerQueue()
        self.frames_sent = 0
        # The source with the next next-service time, if it is the only one; others use their
        # timers.
        self._waiting: Source | None = None
        self._waiting_ns = NEVER
        self._ready = 0  # bit mask of the classes with a ready source
        # Rings by class: the last source, which the first one follows.
        self._ready_last: list[Source | None] = [None] * CLASSES
        # The next control frame, unless its class is paused; later ones wait in the queue of their
        # class.
        self._first_control: bytes | None = None
        self._control_waiting = 0  # bit mask of the classes whose queue in _control has frames
        self._arbiter: Arbiter | None = None  # served before all sources
        self._any_pause = False  # whether a class may be paused, which has to be checked before sending
        self._control: list[Fifo[bytes] | None] = [None] * CLASSES
        self._paused_until_ns = [0] * CLASSES
        self.stats = NicStats()

    def make_ready(self, source: Source) -> None:
        priority = source.priority
        last = self._ready_last[priority]
        if last is None:
            source.next_ready = source
            self._ready |= 1 << priority
        else:
            source.next_ready = last.next_ready
            last.next_ready = source
        self._ready_last[priority] = source

    def take_back(self, source: Source) -> bool:
        """Remove a source from the ring of its class; return whether it was there."""
        priority = source.priority
        last = self._ready_last[priority]
        before = last
        while before is not None and before.next_ready is not source:
            before = before.next_ready
            if before is last:
                return False
        if before is None:
            return False
        if before is source:
            self._ready_last[priority] = None
            self._ready &= ~(1 << priority)
        else:
            before.next_ready = source.next_ready
            if source is last:
                self._ready_last[priority] = before
        source.next_ready = None
        return True

    def wait_for_nst(self, source: Source, at_ns: int) -> None:
        """Notify `source` at `at_ns`.

        A NIC with one paced source needs no timer for that.
        """
        if self._waiting is source or (self._waiting is None and not source.timer.is_armed()):
            self._waiting = source
            self._waiting_ns = at_ns
        else:
            source.timer.arm(at_ns)

    def send_control(self, frame: bytes) -> None:
        """Queue a control frame.

        Frames are sent in order within a class, and before all data if PFC permits.
        """
        if self._first_control is None:
            self._first_control = frame
        else:
            priority = frame[wire.TOS] >> 5
            queue = self._control[priority]
            if queue is None:
                queue = Fifo()
                self._control[priority] = queue
            queue.push(frame)
            self._control_waiting |= 1 << priority

    def _take_control(self, paused: int) -> bytes | None:
        """Return the next control frame of a class outside of the bit mask `paused`."""
        first = self._first_control
        assert first is not None
        if paused >> (first[wire.TOS] >> 5) & 1:
            return self._take_waiting_control(self._control_waiting & ~paused)
        self._first_control = self._take_waiting_control(self._control_waiting) if self._control_waiting != 0 else None
        return first

    def _take_waiting_control(self, classes: int) -> bytes | None:
        """Return a frame of the highest one of these classes, whose queues are not empty."""
        if classes == 0:
            return None
        priority = CLASSES - 1
        while not classes >> priority & 1:
            priority -= 1
        queue = self._control[priority]
        assert queue is not None
        frame = queue.pop()
        if queue.size == 0:
            self._control_waiting &= ~(1 << priority)
        return frame

    def _control_due_ns(self) -> int:
        """Return the time at which PFC permits the first control frame; NEVER if there is none."""
        first = self._first_control
        if first is None:
            return NEVER
        due_ns = self._paused_until_ns[first[wire.TOS] >> 5]
        if self._control_waiting != 0:
            for priority in range(CLASSES):
                if self._control_waiting >> priority & 1:
                    due_ns = min(due_ns, self._paused_until_ns[priority])
        return due_ns

    def _pause(self, priority: int, until_ns: int) -> None:
        """Pause a class until `until_ns`."""
        self._paused_until_ns[priority] = until_ns
        self._any_pause = True

    def _take_ready(self, priority: int) -> Source:
        """Remove and return the next source from the ring of its class."""
        last = self._ready_last[priority]
        assert last is not None
        source = last.next_ready
        assert source is not None
        if source is last:
            self._ready_last[priority] = None
            self._ready &= ~(1 << priority)
        else:
            last.next_ready = source.next_ready
        source.next_ready = None
        return source

    def _serve(self, now_ns: int) -> None:
        """Serve all due timers, in order of time."""
        while True:
            waiting_ns = self._waiting_ns
            if waiting_ns <= now_ns and waiting_ns <= self.timers.first_ns:
                source = self._waiting
                assert source is not None
                self._waiting = None
                self._waiting_ns = NEVER
                source.nst_reached()
            elif self.timers.first_ns <= now_ns:
                self.timers.serve_first()
            else:
                break
        self.now_ns = now_ns

    def _paused_classes(self, now_ns: int) -> int:
        """Return the bit mask of the classes that are paused at `now_ns`."""
        mask = 0
        for priority in range(CLASSES):
            if self._paused_until_ns[priority] > now_ns:
                mask |= 1 << priority
        self._any_pause = mask != 0
        return mask
