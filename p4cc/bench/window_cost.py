"""Cost of the windows of a run with several workers: work, imbalance, exchange and meetings.

A worker's work in a window is its CPU time between two meetings. So it does not include waiting,
even if there are fewer processors than workers. It does include the effect of workers on each
other's caches.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.plan.run import Run
from harness.worlds.parallel import Workers
from harness.worlds.speed_up import Terms, Work
from harness.worlds.virtual import VirtualWorld
from host_agents.timers import NEVER
from p4switch.fabric import Fabric

FRAME_BYTES = 134  # bytes that cross between workers for each frame: its headers and its description


@dataclass(frozen=True)
class WindowCosts:
    """Window costs of one run.

    `work_s` is the CPU time of all workers in windows. `longest_s` is the sum over windows of the
    CPU time of the busiest worker.
    """

    workers: int
    windows: int
    work_s: float
    longest_s: float
    largest_share: float  # share of the busiest worker in the total work
    crossing_bytes: int

    @property
    def imbalance(self) -> float:
        """Factor of the cost that arises because the busiest worker differs between windows."""
        return self.longest_s / (self.largest_share * self.work_s)

    @property
    def crossing_frames(self) -> int:
        return self.crossing_bytes // FRAME_BYTES


class _Timed(Workers):
    """Workers that exchange everything through the first one, which notes the work of each."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.worked_ns: list[list[int]] = []  # work by window and rank; filled at the first worker only
        self.crossed_bytes = 0
        # The first worker's connections to all others; another worker's to the first.
        self._ends: list[Connection] = []
        self._since_ns = 0
        self._in_window = True  # whether workers exchange data; not at a meeting that collects answers

    def _fork(self, rank: int) -> bool:
        here, there = Pipe()
        stays = super()._fork(rank)
        self._ends = [*self._ends, here] if stays else [there]
        return stays

    def _join(self, memory: Any) -> None:
        self._fabric.join(self.rank, self.count, self._owners, deliver=self._hear, exchange=self._exchange)
        self._since_ns = time.thread_time_ns()

    def gather(self, value: Any) -> list[Any]:
        with self._between_windows():
            return super().gather(value)

    def agree(self, value: Any) -> Any:
        with self._between_windows():
            return super().agree(value)

    def either(self, value: bool) -> bool:
        with self._between_windows():
            return super().either(value)

    @contextlib.contextmanager
    def _between_windows(self) -> Iterator[None]:
        self._in_window = False
        yield
        self._in_window = True

    def _exchange(self, notice: bytes, parts: Sequence[bytes]) -> tuple[list[bytes], list[bytes | bytearray]]:
        worked_ns = time.thread_time_ns() - self._since_ns
        if self.rank:
            self._ends[0].send((worked_ns, notice, parts))
            result = self._ends[0].recv()
        else:
            result = self._exchanged(worked_ns, notice, parts)
        self._since_ns = time.thread_time_ns()
        return result  # type: ignore[no-any-return]

    def _exchanged(self, *own: Any) -> Any:
        try:
            all_of_them = [own, *(end.recv() for end in self._ends)]
        except EOFError:
            self._look_at_others()
            raise
        came = [[parts[rank] for _, _, parts in all_of_them] for rank in range(self.count)]
        if self._in_window:
            self.worked_ns.append([worked_ns for worked_ns, _, _ in all_of_them])
            self.crossed_bytes += sum(len(part) for parts in came for part in parts)
        notices = [notice for _, notice, _ in all_of_them]
        for rank, end in enumerate(self._ends, start=1):
            end.send((notices, came[rank]))
        return notices, came[0]


def window_costs(run: Run, workers: int) -> WindowCosts:
    """Return the window costs of a run, which has to run to its end."""
    timed: list[_Timed] = []

    def crew(*arguments: Any) -> _Timed:
        timed.append(_Timed(*arguments))
        return timed[0]

    recording = VirtualWorld(run, workers=workers, crew=crew).run()
    assert recording.ended == "done", recording.ended
    worked: NDArray[np.int64] = np.array(timed[0].worked_ns, np.int64)
    of_each = worked.sum(axis=0)
    return WindowCosts(
        workers=workers,
        windows=len(worked),
        work_s=float(worked.sum()) / 1e9,
        longest_s=float(worked.max(axis=1).sum()) / 1e9,
        largest_share=float(of_each.max() / of_each.sum()),
        crossing_bytes=timed[0].crossed_bytes,
    )


class _Silent:
    """Host that sends nothing."""

    def receive(self, now_ns: int, frame: bytes) -> None:
        raise AssertionError("nobody sends")

    def next_frame(self, now_ns: int) -> bytes | None:
        return None

    def next_wakeup_ns(self) -> int:
        return NEVER


@dataclass(frozen=True)
class MeetingCost:
    """Cost of a meeting of processes that have nothing to exchange.

    `cpu_s` is the CPU time of each process.
    """

    workers: int
    wall_s: float
    cpu_s: float


def meeting_cost(workers: int, times: int = 2000) -> MeetingCost:
    """Measure a meeting of forked processes that share memory like the workers of a run."""
    fabric = Fabric(independent_hosts=True)
    for _ in range(workers):
        fabric.add_host(_Silent())
    crew = Workers(fabric, range(workers), workers, hear=list)
    wall_s = cpu_s = 0.0
    with crew.at_work():
        for count in (times // 10, times):  # the first meetings only warm up the memory
            began_s, used_s = time.perf_counter(), time.process_time()
            for _ in range(count):
                fabric.gather(b"")
            wall_s = (time.perf_counter() - began_s) / count
            cpu_s = (time.process_time() - used_s) / count
        used = crew.gather(cpu_s)
    return MeetingCost(workers, wall_s, sum(used) / workers)


@dataclass(frozen=True)
class Shared:
    """One run, made by one worker and by two.

    `cpu_s` is the total of the two workers without instrumentation.
    """

    work: Work
    two: WindowCosts
    cpu_s: float

    def handed_over_s(self, meeting: MeetingCost) -> float:
        """Return the additional CPU time of two workers, excluding their meetings."""
        return self.cpu_s - self.work.cpu_s - 2 * self.two.windows * meeting.cpu_s


def terms_of(short: Shared, long: Shared, meetings: Sequence[MeetingCost]) -> Terms:
    """Return the terms of the model.

    Both runs have the same network, and the first meeting has two workers. The additional cost of
    the long run is attributed to the frames that cross. The rest of the cost of the short run is
    paid once.
    """
    first, last = meetings[0], meetings[-1]
    frames = long.two.crossing_frames - short.two.crossing_frames
    crossing_s = max(0.0, long.handed_over_s(first) - short.handed_over_s(first)) / max(frames, 1)
    once_s = max(0.0, short.handed_over_s(first) - crossing_s * short.two.crossing_frames)
    return Terms(
        crossing_s=crossing_s,
        copying_s=once_s / short.work.network_bytes,
        meeting_s=first.wall_s,
        # With more workers than processors, the wall-clock time contains waiting, so CPU time is
        # used.
        meeting_each_s=max(0.0, last.cpu_s - first.cpu_s) / max(last.workers - first.workers, 1),
        imbalance=long.two.imbalance,
    )
