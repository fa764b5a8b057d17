"""Model of a run with several workers, whose windows are as long as the busiest one's work.

    wall(n) = work x largest share x imbalance + windows x meeting(n) + (handing over + copying) / n
    CPU(n)  = work + n x windows x meeting(n) + handing over + copying

Handing over is the cost of one crossing frame times the number of frames that cross. Copying is the
cost of copying the network: workers start with shared memory pages, and a page is copied when a
worker first writes to it. `work` is the CPU time of one worker, and the largest share is that of
the partition. The imbalance accounts for changes of the busiest worker from window to window. Each
worker is assumed to have a processor and memory as fast as that of a single worker;
docs/performance.md has the limits. `p4cc bench windows` measures the terms and the resulting
speed-up.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.worlds.partition import Shares


@dataclass(frozen=True)
class Terms:
    """Costs of running several workers on one machine, in seconds."""

    crossing_s: float  # cost of a frame that crosses, at both workers
    copying_s: float  # cost per byte of the network, paid once
    meeting_s: float  # cost of a meeting of two workers
    meeting_each_s: float  # additional cost for each further worker
    imbalance: float  # ratio of the largest work in each window to the largest total work

    def meeting(self, workers: int) -> float:
        """Return the cost of a meeting of this number of workers without data to exchange."""
        return self.meeting_s + (workers - 2) * self.meeting_each_s if workers > 1 else 0.0


@dataclass(frozen=True)
class Work:
    """Work of one run, independent of the number of workers."""

    cpu_s: float  # CPU time of a single worker
    packet_hops: int
    windows: int
    network_bytes: int


def wall_s(work: Work, of: Shares, terms: Terms, processors: int | None = None) -> float:
    """Return the wall-clock time with workers of these shares, on this number of processors.

    None means one for each worker.
    """
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
    """Return the CPU time for crossing frames, and for each worker's copies of the network."""
    return of.crossing * work.packet_hops * terms.crossing_s + work.network_bytes * terms.copying_s
