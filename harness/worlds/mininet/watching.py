"""What a run's switches have counted so far, asked for while it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from harness.measure.flow_record import FlowRecord
from harness.measure.recording import Progress
from harness.plan.experiment import Run
from harness.worlds.mininet.switches import P4Switch

_EVERY_S = 1.0


class Watcher(Protocol):
    """Who is told: `harness.replay.live.Watch`."""

    def begin(self, run: Run) -> None: ...

    def look(
        self, now_ns: int, counters: Mapping[str, Mapping[str, Any]], dilation: int, records: Sequence[FlowRecord]
    ) -> None: ...


def watched(
    watcher: Watcher,
    switches: Mapping[str, P4Switch],
    dilation: int,
    records: Sequence[FlowRecord],
    progress: Progress | None,
) -> Callable[[int, int, int], None]:
    """`progress`, which asks switches once a second, and tells what they answered to what was asked before."""
    asked_ns, next_s = -1, 0.0

    def tell(done: int, known: int, now_ns: int) -> None:
        nonlocal asked_ns, next_s
        if progress is not None:
            progress(done, known, now_ns)
        if time.monotonic() < next_s:
            return
        counters = {name: counted for name, switch in switches.items() if (counted := switch.counted_so_far())}
        if asked_ns >= 0 and len(counters) == len(switches):
            watcher.look(asked_ns, counters, dilation, records)
        for switch in switches.values():
            switch.count()
        asked_ns, next_s = now_ns, time.monotonic() + _EVERY_S

    return tell
