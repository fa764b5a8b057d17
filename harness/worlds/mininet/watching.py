"""Live counters of a run's switches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness.measure.flow_record import FlowRecord
from harness.measure.recording import Progress
from harness.plan.run import Run
from harness.worlds.mininet.switches import PlannedSwitch

_EVERY_S = 1.0
_MONOTONIC = "monotonic_ns"  # time at which a switch wrote its statistics


class Watcher(Protocol):
    """Listener of live counters: `reports.replay.live.Watch`."""

    def begin(self, run: Run) -> None: ...

    def look(
        self,
        times_ns: Mapping[str, int],
        counters: Mapping[str, Mapping[str, Any]],
        dilation: int,
        records: Sequence[FlowRecord],
    ) -> None: ...


def watched(
    watcher: Watcher,
    switches: Mapping[str, PlannedSwitch],
    epoch_ns: int,
    dilation: int,
    records: Sequence[FlowRecord],
    progress: Progress | None,
) -> Callable[[float, int, int, int], None]:
    """Return an extended `progress` that queries switches once a second and passes their answers on.

    Model time is 0 at `epoch_ns` (CLOCK_MONOTONIC). A query is delayed until all switches have
    answered the one before.
    """
    asked_ns, next_s = -1, 0.0

    def tell(share: float, done: int, known: int, now_ns: int) -> None:
        nonlocal asked_ns, next_s
        if progress is not None:
            progress(share, done, known, now_ns)
        if time.monotonic() < next_s:
            return
        next_s = time.monotonic() + _EVERY_S
        if asked_ns >= 0:
            counters = {name: counted for name, switch in switches.items() if (counted := switch.counted_so_far())}
            if len(counters) < len(switches) or any(each[_MONOTONIC] < asked_ns for each in counters.values()):
                return
            times_ns = {name: max(0, (each[_MONOTONIC] - epoch_ns) // dilation) for name, each in counters.items()}
            watcher.look(times_ns, counters, dilation, records)
        asked_ns = time.monotonic_ns()
        for switch in switches.values():
            switch.count()

    return tell
