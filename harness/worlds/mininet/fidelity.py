"""How far a run in real time can be trusted: how late things happened, and what the machine lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

LAG_LIMIT = 0.1  # of the base RTT, for 99% of all frames at every link


def percentile_ns(lag_log2_ns: Sequence[int], share: float) -> float:
    """From a histogram by powers of 2 (bucket i: 2^i to 2^(i+1)), straight within a bucket; 0 for nothing."""
    wanted = share * sum(lag_log2_ns)
    below = 0
    for i, frames in enumerate(lag_log2_ns):
        if frames and below + frames >= wanted:
            low = 2.0**i if i else 0.0
            return low + (2.0 ** (i + 1) - low) * (wanted - below) / frames
        below += frames
    return 0.0


def total(histograms: Iterable[Sequence[int]]) -> list[int]:
    """The sum of histograms."""
    return [sum(column) for column in zip(*histograms, strict=True)]


@dataclass(frozen=True)
class Lateness:
    """Frames that left a link after they were due, wall clock."""

    who: str  # "hosts" or "switches"
    lag_log2_ns: list[int]
    max_ns: int

    @property
    def p50_ns(self) -> float:
        return percentile_ns(self.lag_log2_ns, 0.5)

    @property
    def p99_ns(self) -> float:
        return min(percentile_ns(self.lag_log2_ns, 0.99), float(self.max_ns))


class Meter:
    """What the run's processes and the whole machine do, from when it is made until `stop`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._processes = [psutil.Process(pid) for pid in pids]
        self._began = time.monotonic()
        self._own = self._own_s()
        self._machine = self._machine_ticks()

    def stop(self) -> None:
        """The processes are still there."""
        self.wall_s = time.monotonic() - self._began
        self.cpu_s = self._own_s() - self._own
        spent = [after - before for after, before in zip(self._machine_ticks(), self._machine, strict=True)]
        everything = max(sum(spent), 1)
        idle, steal = spent[3] + spent[4], spent[7]
        self.busy = 1 - idle / everything
        self.stolen = steal / everything
        self.memory_bytes = sum(process.memory_full_info().pss for process in self._processes)

    def _own_s(self) -> float:
        times = [process.cpu_times() for process in self._processes]
        return sum(time.user + time.system for time in times)

    @staticmethod
    def _machine_ticks() -> list[int]:
        """Since boot: user, nice, system, idle, iowait, irq, softirq, steal."""
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        return [int(text) for text in first.split()[1:9]]


def judge(
    *,
    dilation: int,
    base_rtt_ns: int,
    lateness: Sequence[Lateness],
    lost: dict[str, int],
    meter: Meter,
    set_up_s: float,
    caveats: Sequence[str] = (),
) -> dict[str, Any]:
    """The fidelity figures of a run for its summary.

    "reasons": what went wrong in this run; "caveats": what no run with these switches can show. "trusted": neither.
    """
    base_rtt_wall_ns = base_rtt_ns * dilation
    figures: dict[str, Any] = {
        "dilation": dilation,
        "base_rtt_wall_ns": base_rtt_wall_ns,
        "set_up_s": set_up_s,
        "run_s": meter.wall_s,
        # Of all processors' time: everything that ran; what the hypervisor gave to others; this run's processes.
        "cpu_busy": meter.busy,
        "cpu_stolen": meter.stolen,
        "cpu_own": meter.cpu_s / (meter.wall_s * (os.cpu_count() or 1)),
        "memory_bytes": meter.memory_bytes,
        "lost_by_the_kernel": sum(lost.values()),
        "lag": {},
    }
    reasons = []
    for late in lateness:
        share = late.p99_ns / base_rtt_wall_ns
        figures["lag"][late.who] = {
            "p50_ns": late.p50_ns,
            "p99_ns": late.p99_ns,
            "max_ns": late.max_ns,
            "p99_of_base_rtt": share,
        }
        if share > LAG_LIMIT:
            reasons.append(
                f"1% of the frames that {late.who} sent were over {late.p99_ns / 1e6:.1f} ms late, "
                f"{share:.0%} of the base RTT (limit {LAG_LIMIT:.0%})"
            )
    reasons += [f"{count} frames lost: {reason}" for reason, count in lost.items() if count]
    figures["reasons"] = reasons
    figures["caveats"] = list(caveats)
    figures["trusted"] = not reasons and not caveats
    return figures
