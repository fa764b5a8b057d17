"""Margins of tests that compare a run on real frames with virtual ones.

The model is that of `harness.worlds.mininet.fidelity`: a frame that leaves a link late by x
corresponds to a frame on a link whose delay is longer by x. Frames
that decide when a flow ends may be later than the average, but few are later than the 99th
percentile m. The real run is therefore one of the virtual runs whose links are longer by 0 to m.
Small changes of delays also swap frames that are due at the same time, and switches then draw other random numbers
for them, so these virtual runs differ by chance, too. A quantity of the real run is expected within
the prediction interval of theirs: the range in which one more value of a normal distribution lies
with the probability `tests.margins.LEVEL`, estimated from the values of the virtual runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.measure.results import Result, load_all
from tests.margins import prediction
from tests.mininet.networks import p4cc

RUNS = 8  # virtual runs, whose delays differ by whole nanoseconds


def mean_fct_ns(result: Result) -> float:
    """Return the mean FCT of a run's flows."""
    return float(result.summary["fct_ns"]["mean"])


def late_ns(real: Result) -> float:
    """Return the 99th percentile of lateness in model time: that of hosts or of switches, whichever is larger."""
    fidelity = real.summary["fidelity"]
    return float(max(lag["p99_ns"] for lag in fidelity["lag"].values()) / fidelity["dilation"])


def virtual_runs(arguments: Sequence[str], real: Result) -> list[Result]:
    """Return the virtual runs that the real run may be: those of `p4cc run ARGUMENTS` with longer links."""
    (delay_ns,) = {link.delay_ns for link in real.topology.links}
    results: list[Result] = []
    for longer_ns in np.linspace(0, max(late_ns(real), RUNS - 1), RUNS).round().astype(int):
        out = real.folder.parents[1] / f"{real.folder.parent.name}-longer-by-{longer_ns}"
        if not out.exists():
            delay = f"topology.link_delay_ns={delay_ns + longer_ns}"
            p4cc("run", *arguments, "--set", delay, "--no-report", "--out", str(out))
        results += [result for result in load_all(out) if result.summary["protocol"] == real.summary["protocol"]]
    return results


def expected(
    arguments: Sequence[str], real: Result, quantity: Callable[[Result], float], resolution: float = 0.0
) -> tuple[float, float]:
    """Return the interval in which a quantity of the real run is expected."""
    return prediction([quantity(result) for result in virtual_runs(arguments, real)], resolution)
