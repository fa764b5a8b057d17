"""Checks of priorities: the classes of a run's data."""

from __future__ import annotations

from harness.plan.run import Run, named
from harness.plan.traffic_summary import TrafficSummary
from host_agents.config import SCOPE_PAIR
from p4switch.errors import UserError


def priorities(run: Run) -> None:
    """Check that data which a protocol ranks below other data has a lower class.

    Raises UserError otherwise.
    """
    usual = run.scenario.nic.data_priority
    for priority in run.protocol.priorities:
        if priority >= usual:
            where = f"protocols.{run.protocol.name}"
            raise UserError(f"{where}: data in class {priority}; expected one below nic.data_priority, {usual}")


def classes(run: Run, traffic: TrafficSummary) -> None:
    """Check that queue pairs which share a limiter send in one class.

    Raises UserError otherwise.
    """
    usual = run.scenario.nic.data_priority
    if run.cc_scope == SCOPE_PAIR and (others := traffic.priorities - {usual}):
        name, _ = named("workload", run.scenario.workload)
        raise UserError(
            f"workload {name!r}: flows in class {min(others)}; expected nic.data_priority, {usual}: with nic.cc_scope "
            f"'pair', as cc {run.protocol.name!r} has it, the queue pairs between two hosts share a limiter"
        )
