"""Progress of a run, and detection of a stalled run in the virtual world.

Samples, probes and timers of hosts that do nothing but repeat keep the clock going when nothing else does. So what
counts is what flows and collectives have to show for themselves.
"""

from __future__ import annotations

from harness.plan.run import Run
from harness.workloads import Traffic
from harness.worlds.expected_collectives import collective_bytes
from harness.worlds.session import Session

_LOOK_RTTS = 1000
_PATIENCE_LOOKS = 10
_PATIENCE_RETRIES = 2  # times as long as it takes until a queue pair that gets no answer is in error


class DoneShare:
    """Share of a run that is done: of what all hosts have to send, or of its time, whichever is more.

    Where nobody knows what they will send, or it ends by the clock, the share of flows counts instead.
    """

    def __init__(self, traffic: Traffic, limit_ns: int) -> None:
        """Begin with traffic of which nothing is done; the run ends at `limit_ns` at the latest."""
        flow_bytes = traffic.flow_bytes
        self._to_send = None if flow_bytes is None else flow_bytes + collective_bytes(traffic.assignments.values())
        stops_ns = [flow.stop_ns for flow in traffic.flows if flow.stop_ns is not None]
        by_clock = traffic.independent and not traffic.assignments and len(stops_ns) == len(traffic.flows)
        self._end_ns = min(limit_ns, max(stops_ns)) if by_clock else limit_ns

    def at(self, now_ns: int, advanced_bytes: int, done: int, known: int) -> float:
        """Return the share at `now_ns`.

        `advanced_bytes`: what `HostSession.advanced_bytes` returns, of all hosts. `done` of `known` flows are
        over.
        """
        share = advanced_bytes / self._to_send if self._to_send else done / max(known, 1)
        return min(1.0, max(share, now_ns / self._end_ns))


class ProgressWatch:
    """Looks at a run every `interval_ns`."""

    def __init__(self, run: Run, traffic: Traffic) -> None:
        nic, assignments = run.scenario.nic, traffic.assignments.values()
        self.interval_ns = _LOOK_RTTS * run.base_rtt_ns()
        retries_ns = (nic.retry_count + 1) * run.rto_ns
        pauses_ns = [sum(step.idle_ns for step in assignment.steps) for assignment in assignments]
        self._patience_ns = max(_PATIENCE_LOOKS * self.interval_ns, _PATIENCE_RETRIES * retries_ns) + max(
            pauses_ns, default=0
        )
        self._overhead_ns = nic.os_overhead_ns  # between a flow's start and its NIC's knowing of it
        # Until then there may be a change that comes from outside.
        self._last_change_ns = nic.os_overhead_ns + max(
            [
                *(change.time_ns for change in run.link_changes()),
                *(flow.stop_ns for flow in traffic.flows if flow.stop_ns is not None),
                *(assignment.start_ns for assignment in assignments),
            ],
            default=0,
        )
        self._seen: object = None
        self.since_ns = 0  # when something moved last, as far as is known

    def stands_still(self, now_ns: int, moved: int, session: Session) -> bool:
        """Return whether nothing has moved since the last call.

        `moved`: what `HostSession.moved` returns, of all hosts.
        """
        seen = moved, session.progress, len(session.failed)
        to_come = now_ns <= self._last_change_ns or not session.all_started(now_ns - self._overhead_ns - 1)
        if to_come or session.finished or seen != self._seen:
            self._seen = seen
            self.since_ns = now_ns
            return False
        return True

    def out_of_patience(self, now_ns: int) -> bool:
        """Return whether the standstill has lasted longer than a run may wait."""
        return now_ns - self.since_ns > self._patience_ns
