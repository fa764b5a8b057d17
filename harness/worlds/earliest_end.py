"""Earliest end of a run, as far as its flows are known."""

from __future__ import annotations

from collections.abc import Sequence

from harness.plan.run import Run
from harness.workloads import Flow
from harness.worlds.expected import Paths


class EarliestEnd:
    """Bound of the end of a run by the links of its sources, which carry the payload of one flow after the other."""

    def __init__(self, run: Run, rates_bps: Sequence[int]) -> None:
        """Prepare the bound; `rates_bps` are the highest rates of hosts' links."""
        self._paths = Paths(run)
        self._shortest_ns = run.shortest_delay_ns
        self._rates_bps = rates_bps
        self._last_start_ns = [0] * len(rates_bps)  # by source, as is the next one
        self._sent_ns = [0.0] * len(rates_bps)  # least time at which the payload of the known flows is sent

    def after(self, flow: Flow) -> int:
        """Return a time before which the run cannot end because of this flow, which has become known."""
        source = flow.source
        own_ns = 0.0 if flow.stop_ns is not None else flow.size_bytes * 8e9 / self._rates_bps[source]
        begun_ns = float(flow.start_ns)
        if flow.start_ns >= self._last_start_ns[source]:  # otherwise earlier payload may be sent after this one
            begun_ns = max(begun_ns, self._sent_ns[source])
            self._last_start_ns[source] = flow.start_ns
            self._sent_ns[source] = begun_ns + own_ns
        there, back = self._paths.links(flow)
        return int(begun_ns + own_ns) + (there + back) * self._shortest_ns
