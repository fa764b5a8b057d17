"""Small runs to watch: two racks with PFC pauses, a link that fails for a while and a traced flow; and pods."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.measure import results
from harness.measure.results import Result
from harness.plan import resolve, scenario
from harness.plan.how import Tracing
from harness.worlds.virtual import VirtualWorld

_FOLDERS: list[TemporaryDirectory[str]] = []  # removed when the tests are over
TRACED = 1  # the flow
DOWN_NS, UP_NS = 6_000, 12_000
SCENARIO: dict[str, Any] = {
    "title": "Watched </script><b>",
    "cc": ["dcqcn"],
    "topology": {"name": "dumbbell", "bottleneck_rate_bps": 50e9},
    "workload": {"name": "incast", "senders": 2, "order": "addresses", "size_bytes": 60_000, "interval_ns": 1000},
    "nic": {"rto_ns": 20_000},
    "switch": {"pfc": {"xoff_bytes": 2_000}},
    "record": {"queue_interval_ns": 500, "rate_interval_ns": 1000},
    "events": [
        {"time_ns": DOWN_NS, "link": ["s0", "s1"], "up": False},
        {"time_ns": UP_NS, "link": ["s0", "s1"], "up": True},
    ],
}


@cache
def watched() -> Result:
    return _made("watched", SCENARIO, TRACED)


@cache
def in_pods() -> Result:
    """Return a fat-tree of four pods and two planes."""
    workload = {"name": "incast", "senders": 2, "order": "addresses", "size_bytes": 10_000}
    return _made("pods", {"cc": ["dcqcn"], "topology": {"name": "fat-tree", "k": 4}, "workload": workload}, None)


def _made(name: str, tables: dict[str, Any], trace: int | None) -> Result:
    (run,) = resolve.plan(name, scenario.check(tables), Path())
    world = VirtualWorld(run, trace=None if trace is None else Tracing(trace))
    _FOLDERS.append(TemporaryDirectory())
    folder = Path(_FOLDERS[-1].name) / run.label
    files = results.files(run, world.run())
    result = results.write(folder, files)
    world.write_more(folder)
    return result
