"""Checks of a run before it starts, for runs that are impossible or misleading.

A check is a function that raises UserError. A new check is a function in a file of this package,
with its name in one of the lists below. Each list states when its checks run. Cheap checks come
before the traffic is generated, which may take seconds.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.plan.checks import buffers, groups, hosts, lanes, priorities, program, routes, starts
from harness.plan.run import Run
from harness.plan.traffic_summary import TrafficSummary


def _events(run: Run, traffic: TrafficSummary) -> None:
    """Check that events name existing links.

    Raises UserError if one does not.
    """
    run.link_changes()


RUN: list[Callable[[Run], None]] = [
    program.architecture,
    program.loopback,
    program.telemetry,
    program.agreement,
    lanes.lanes,
    routes.paths,
    hosts.reliability,
    priorities.priorities,
    hosts.extensions,
]
"""Checks of every run, before there is traffic."""

NETWORK: list[Callable[[Run], None]] = [hosts.nics, routes.cycles]
"""Checks before there is traffic whose result is the same for all runs of a variant; only its first run is checked."""

TRAFFIC: list[Callable[[Run, TrafficSummary], None]] = [
    program.link_rates,
    program.time_outs,
    priorities.classes,
    groups.work,
    starts.starts,
]
"""Checks of every run with its traffic."""

NETWORK_TRAFFIC: list[Callable[[Run, TrafficSummary], None]] = [groups.collectives, _events, buffers.headroom]
"""Checks with the traffic whose result is the same for all runs of a variant; only its first run is checked."""
