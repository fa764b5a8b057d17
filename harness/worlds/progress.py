"""Progress of a run, and detection of a stalled run in the virtual world.

Samples, probes and repeating timers of hosts cause events even if nothing else happens. So only the
progress of flows and collectives counts.
"""

from __future__ import annotations

from harness.plan.run import Run
from harness.workloads import Traffic
from harness.worlds.expected_collectives import collective_bytes

_LOOK_RTTS = 1000
_PATIENCE_LOOKS = 10
_PATIENCE_RETRIES = 2  # multiple of the time until a queue pair without answers is in error


class DoneShare:
    """Share of a run that is done: the larger one of the sent share of all data, and the elapsed share of time.

    If the amount of data is unknown or limited by time, the share of flows counts instead.
    """

    def __init__(self, traffic: Traffic, limit_ns: int) -> None:
        """Start with unfinished traffic; the run ends at `limit_ns` at the latest."""
        flow_bytes = traffic.flow_bytes
        self._to_send = None if flow_bytes is None else flow_bytes + collective_bytes(traffic.assignments.values())
        stops_ns = [flow.stop_ns for flow in traffic.flows if flow.stop_ns is not None]
        by_clock = traffic.independent and not traffic.assignments and len(stops_ns) == len(traffic.flows)
        self._end_ns = min(limit_ns, max(stops_ns)) if by_clock else limit_ns

    def at(self, now_ns: int, advanced_bytes: int, done: int, known: int) -> float:
        """Return the share at `now_ns`.

        `advanced_bytes` is the result of `HostSession.advanced_bytes` for all hosts. `done` of
        `known` flows have ended.
        """
        share = advanced_bytes / self._to_send if self._to_send else done / max(known, 1)
        return min(1.0, max(share, now_ns / self._end_ns))


class ProgressWatch:
    """Check of a run's progress every `interval_ns`."""

    def __init__(self, run: Run, traffic: Traffic) -> None:
        nic, assignments = run.scenario.nic, traffic.assignments.values()
        self.interval_ns = _LOOK_RTTS * run.base_rtt_ns()
        retries_ns = (nic.retry_count + 1) * run.rto_ns
        pauses_ns = [sum(step.idle_ns for step in assignment.steps) for assignment in assignments]
        self._patience_ns = max(_PATIENCE_LOOKS * self.interval_ns, _PATIENCE_RETRIES * retries_ns) + max(
            pauses_ns, default=0
        )
        # Until then an external change may happen.
        self._last_change_ns = nic.os_overhead_ns + max(
            [
                *(change.time_ns for change in run.link_changes()),
                *(flow.stop_ns for flow in traffic.flows if flow.stop_ns is not None),
                *(assignment.start_ns for assignment in assignments),
            ],
            default=0,
        )
        self._seen: object = None
        self.since_ns = 0  # time of the last known progress

    def stands_still(self, now_ns: int, seen: object, finished: bool, all_started: bool) -> bool:
        """Return whether there has been no progress since the last call.

        `seen` is any value that changes with progress. `finished` and `all_started` say whether all
        flows of the run have ended and started.
        """
        to_come = now_ns <= self._last_change_ns or not all_started
        if to_come or finished or seen != self._seen:
            self._seen = seen
            self.since_ns = now_ns
            return False
        return True

    def out_of_patience(self, now_ns: int) -> bool:
        """Return whether there has been no progress for longer than a run may wait."""
        return now_ns - self.since_ns > self._patience_ns
