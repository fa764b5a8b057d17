"""Checks of starts: whether anything happens before the run ends."""

from __future__ import annotations

from harness import workloads
from harness.plan.run import Run, named
from harness.plan.traffic_summary import TrafficSummary
from harness.workloads.base import TimedParameters
from p4switch.errors import UserError


def starts(run: Run, traffic: TrafficSummary) -> None:
    """Check that something starts before the run ends.

    Raises UserError if nothing does.
    """
    if traffic.first_start_ns >= run.limit_ns:
        name, values = named("workload", run.scenario.workload)
        timed = issubclass(workloads.parameters(name), TimedParameters) and not values.get("start_at_zero")
        help_ = ", or workload.start_at_zero = true" if timed else ""
        raise UserError(
            f"workload {name!r}: its first flow starts at {traffic.first_start_ns} ns; expected it before the run "
            f"ends, at limit_ns = {run.limit_ns}{help_}"
        )
