"""What a run takes with several workers: a model of windows, each as long as who has most to do in it.

    wall(n) = work x largest share x imbalance + windows x meeting(n) + (handing over + copying) / n
    CPU(n)  = work + n x windows x meeting(n) + handing over + copying

Handing over is what one frame takes, times the frames that cross. Copying is of the network: workers begin with what
was set up for all of them, and each page gets a place of its own when the worker whose part it is first writes it.
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
    copying_s: float  # of a byte of the network, once
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
    network_bytes: int


def wall_s(work: Work, of: Shares, terms: Terms, processors: int | None = None) -> float:
    """Wall-clock time of a run with workers that have these shares, on so many processors; None: on one each."""
    workers = len(of.work)
    if workers == 1:
        return work.cpu_s
    each_s = work.cpu_s * max(of.work) * terms.imbalance + work.windows * terms.meeting(workers)
    each_s += _handed_over_s(work, of, terms) / workers
    return max(each_s, cpu_s(work, of, terms) / (processors or workers))


def cpu_s(work: Work, of: Shares, terms: Terms) -> float:
    """CPU time of all of them together."""
    workers = len(of.work)
    if workers == 1:
        return work.cpu_s
    return work.cpu_s + _handed_over_s(work, of, terms) + workers * work.windows * terms.meeting(workers)


def _handed_over_s(work: Work, of: Shares, terms: Terms) -> float:
    """CPU time for what crosses, and for what each copies of the network."""
    return of.crossing * work.packet_hops * terms.crossing_s + work.network_bytes * terms.copying_s
