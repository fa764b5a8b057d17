"""Fidelity of a run in real time: lateness of events, and losses by the machine.

The model is as follows. A frame that leaves a link late by x corresponds to a frame on a link whose
delay is longer by x. So a run whose frames are late by m on average corresponds to a network with
link delays longer by m. Its base RTT is longer by the share g = (mean lateness of all links of a
round trip) / (base RTT), both on the wall clock. The minimum FCT of a flow, which it has alone,
grows by g if the flow only waits for round trips, and by less if its link is the limit. The rest of
its FCT is queueing, and late frames do not make queues longer. So the mean FCT grows by about g
times (sum of minimum FCTs) / (sum of FCTs), which is called `drift`.

This is a first-order approximation in g. Reaction points see round trips that are longer by g, and
behave differently if g is large. So g has a limit of its own.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

DRIFT_LIMIT = 0.02  # limit of the drift, as a share of the mean FCT
LATE_LIMIT = 0.3  # limit of lateness in base RTTs; docs/mininet.md has measurements below and above it
_MARGIN = 1.5
_MOST_AT_ONCE = 3.0  # factor; one stall of the machine is no reason for a hundredfold slowdown


def percentile_ns(lag_log2_ns: Sequence[int], share: float) -> float:
    """Return a percentile of a histogram by powers of 2; 0 if it is empty.

    Bucket i is from 2^i to 2^(i+1). Values are taken as evenly distributed within a bucket.
    """
    wanted = share * sum(lag_log2_ns)
    below = 0
    for i, frames in enumerate(lag_log2_ns):
        if frames and below + frames >= wanted:
            low = 2.0**i if i else 0.0
            return low + (2.0 ** (i + 1) - low) * (wanted - below) / frames
        below += frames
    return 0.0


def total(histograms: Iterable[Sequence[int]]) -> list[int]:
    """Return the sum of histograms."""
    return [sum(column) for column in zip(*histograms, strict=True)]


@dataclass(frozen=True)
class Lateness:
    """Lateness of frames that left a link after they were due, on the wall clock."""

    who: str  # "hosts" or "switches"
    links: int  # number of their links in a round trip on the network's longest path
    lag_log2_ns: list[int]
    sum_ns: int

    @property
    def mean_ns(self) -> float:
        return self.sum_ns / max(sum(self.lag_log2_ns), 1)

    @property
    def p50_ns(self) -> float:
        return percentile_ns(self.lag_log2_ns, 0.5)

    @property
    def p99_ns(self) -> float:
        return percentile_ns(self.lag_log2_ns, 0.99)


class Meter:
    """Measurement of the run's processes and the whole machine, from its creation until `stop`."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._processes = [psutil.Process(pid) for pid in pids]
        self._began = time.monotonic()
        self._own = self._own_s()
        self._machine = self._machine_ticks()

    def stop(self) -> None:
        """Stop the measurement, while the processes still exist."""
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
        """Return ticks since boot: user, nice, system, idle, iowait, irq, softirq, steal."""
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        return [int(text) for text in first.split()[1:9]]


def judge(
    *,
    dilation: int,
    base_rtt_ns: int,
    least_share: float,
    lateness: Sequence[Lateness],
    lost: dict[str, int],
    meter: Meter,
    set_up_s: float,
    caveats: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the fidelity figures of a run for its summary.

    `least_share` is the sum of the flows' minimum FCTs divided by the sum of their FCTs; 1 without
    flows.

    If "kept_up" is false, "reasons" has the reasons, and "dilation_to_use" is the dilation at which
    the machine would have kept up; otherwise it is None. "caveats" are limits of these switches on
    a machine of any speed.
    """
    base_rtt_wall_ns = base_rtt_ns * dilation
    late_share = sum(each.links * each.mean_ns for each in lateness) / base_rtt_wall_ns
    drift = late_share * least_share
    figures: dict[str, Any] = {
        "dilation": dilation,
        "base_rtt_wall_ns": base_rtt_wall_ns,
        "set_up_s": set_up_s,
        "run_s": meter.wall_s,
        # Shares of all processors' time: everything that ran; time that the hypervisor gave to
        # others; this run's processes.
        "cpu_busy": meter.busy,
        "cpu_stolen": meter.stolen,
        "cpu_own": meter.cpu_s / (meter.wall_s * (os.cpu_count() or 1)),
        "memory_bytes": meter.memory_bytes,
        "lost_by_the_kernel": sum(lost.values()),
        "lag": {
            each.who: {
                "mean_ns": each.mean_ns,
                "p50_ns": each.p50_ns,
                "p99_ns": each.p99_ns,
                "p99_of_base_rtt": each.p99_ns / base_rtt_wall_ns,
            }
            for each in lateness
        },
        "late_of_base_rtt": late_share,
        "drift": drift,
    }
    reasons = []
    if late_share > LATE_LIMIT:
        reasons.append(
            f"frames were late by {late_share:.0%} of the base RTT in a round trip (limit {LATE_LIMIT:.0%})"
        )
    elif drift > DRIFT_LIMIT:
        reasons.append(
            f"frames were late by {late_share:.1%} of the base RTT in a round trip, which may make the mean FCT longer "
            f"by {drift:.1%} (limit {DRIFT_LIMIT:.0%})"
        )
    reasons += [f"{count} frames lost: {reason}" for reason, count in lost.items() if count]
    figures["reasons"] = reasons
    figures["caveats"] = list(caveats)
    figures["kept_up"] = not reasons
    too_late = max(drift / DRIFT_LIMIT, late_share / LATE_LIMIT)
    figures["dilation_to_use"] = _slower(dilation, too_late) if reasons else None
    return figures


def _slower(dilation: int, too_late: float) -> int:
    """Return the dilation at which the machine would keep up.

    Lateness on the wall clock does not depend on the dilation. `too_late` is the ratio of the
    lateness to its limit.
    """
    wanted = dilation * _MARGIN * max(too_late, 1.0)
    return rounded_up(min(wanted, _MOST_AT_ONCE * dilation))


def rounded_up(value: float) -> int:
    """Return the next integer with two significant digits that is not smaller."""
    unit = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / unit) * unit)
