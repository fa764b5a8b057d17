"""How much slower than the model a run has to be for the machine to keep up."""

from __future__ import annotations

import os

from harness.experiment import Run

_LAG_NS = 500_000
_LAG_SHARE = 0.1


def choose(run: Run) -> int:
    """Wall-clock nanoseconds for one of model time."""
    lag = _LAG_NS / (_LAG_SHARE * run.base_rtt_ns())
    return int(max(lag, 5000)) * max(1, 2 // (os.cpu_count() or 1))
