"""What a run takes with several workers: a model of windows, each as long as who has most to do in it.

    wall(n) = work x largest share x imbalance + crossing frames / n x what one takes + windows x meeting(n)
    CPU(n)  = work + crossing frames x what one takes + n x windows x meeting(n)

`work` is what one worker takes, the largest share is the partition's, and who has most to do changes from window to
window, which is the imbalance. Each worker has a processor, and as much of the memory as one alone would have:
docs/performance.md says where that ends. `p4cc bench windows` measures the terms, and what comes of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.worlds.partition import Shares


@dataclass(frozen=True)
class Terms:
    """Of a machine, in seconds."""

    crossing_s: float  # to hand over a frame, and to take it
    meeting_s: float  # of two, ...
    meeting_each_s: float  # ... and more for each further one
    imbalance: float  # the work of who has most in a window over that of who has most in all

    def meeting(self, workers: int) -> float:
        """Of so many workers, with nothing to hand over."""
        return self.meeting_s + (workers - 2) * self.meeting_each_s if workers > 1 else 0.0


@dataclass(frozen=True)
class Work:
    """Of one run, whoever does it."""

    cpu_s: float  # of one worker
    packet_hops: int
    windows: int


def wall_s(work: Work, of: Shares, terms: Terms, processors: int | None = None) -> float:
    """Wall-clock time of a run with workers that have these shares, on so many processors; None: on one each."""
    workers = len(of.work)
    if workers == 1:
        return work.cpu_s
    crossing_s = of.crossing * work.packet_hops / workers * terms.crossing_s
    each_s = work.cpu_s * max(of.work) * terms.imbalance + crossing_s + work.windows * terms.meeting(workers)
    return max(each_s, cpu_s(work, of, terms) / (processors or workers))


def cpu_s(work: Work, of: Shares, terms: Terms) -> float:
    """CPU time of all of them together."""
    workers = len(of.work)
    crossing_s = of.crossing * work.packet_hops * terms.crossing_s
    return work.cpu_s + crossing_s + workers * work.windows * terms.meeting(workers)
