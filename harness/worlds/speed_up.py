"""Model of a run with several workers, whose windows are as long as the busiest one's work.

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
    """Terms of a machine, in seconds."""

    crossing_s: float  # to hand over a frame, and to take it
    copying_s: float  # of a byte of the network, once
    meeting_s: float  # of two, ...
    meeting_each_s: float  # ... and more for each further one
    imbalance: float  # the work of who has most in a window over that of who has most in all

    def meeting(self, workers: int) -> float:
        """Return the cost of a meeting of that many workers, with nothing to hand over."""
        return self.meeting_s + (workers - 2) * self.meeting_each_s if workers > 1 else 0.0


@dataclass(frozen=True)
class Work:
    """Work of one run, whoever does it."""

    cpu_s: float  # of one worker
    packet_hops: int
    windows: int
    network_bytes: int


def wall_s(work: Work, of: Shares, terms: Terms, processors: int | None = None) -> float:
    """Return the wall-clock time with workers of these shares, on that many processors; None: one each."""
    workers = len(of.work)
    if workers == 1:
        return work.cpu_s
    each_s = work.cpu_s * max(of.work) * terms.imbalance + work.windows * terms.meeting(workers)
    each_s += _handed_over_s(work, of, terms) / workers
    return max(each_s, cpu_s(work, of, terms) / (processors or workers))


def cpu_s(work: Work, of: Shares, terms: Terms) -> float:
    """Return the CPU time of all workers together."""
    workers = len(of.work)
    if workers == 1:
        return work.cpu_s
    return work.cpu_s + _handed_over_s(work, of, terms) + workers * work.windows * terms.meeting(workers)


def _handed_over_s(work: Work, of: Shares, terms: Terms) -> float:
    """Return the CPU time for crossing frames, and for what each worker copies of the network."""
    return of.crossing * work.packet_hops * terms.crossing_s + work.network_bytes * terms.copying_s
