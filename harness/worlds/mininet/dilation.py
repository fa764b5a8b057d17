"""Choice of the dilation: the slowdown at which the machine can keep up with a run.

Two quantities limit it. One is work: processing all packets that the workload can have in flight
takes time on the processors. The other is lateness: sometimes a process is woken too late. Both are
measured when a run is planned. The run itself reports whether the dilation was sufficient
(`fidelity`).
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from dataclasses import dataclass

from harness.plan.run import Run
from harness.worlds.mininet import fidelity, isolation
from topologies.routing import path

# Costs in round trips between two processes: a frame at each link (a process wakes up, reads,
# writes), and a frame that a host sends or receives. Each data packet has an ACK.
_LINK_COST = 4
_HOST_COST = 9
_BUSY = 0.6  # share of all processors; the rest is for bursts, and for other work on the machine
_LAG_MARGIN = 3
_LAG_LIMIT = 0.1  # lateness, in base RTTs, that 1% of all frames may exceed at the first attempt
_MOST_LAG_NS = 50e6  # longer lateness means that the whole machine stood still, which no dilation can compensate
_BATCHES = 5
_ROUND_TRIPS = 200
_SLEEPS = 200
_SLEEP_S = 0.001
_TRIES = 2  # measurements of sleeps: if one contains a stall of the machine, the other is typical
_FRAME = bytes(1000)


@dataclass(frozen=True)
class Machine:
    """Speed of this machine now: time of a message to another process and back, and the latest 1% of wake-ups."""

    round_trip_ns: float
    lag_p99_ns: float
    processors: int


def measure() -> Machine:
    """Measure the machine, in about half a second."""
    return Machine(_round_trip_ns(), min(_lag_p99_ns() for _ in range(_TRIES)), os.cpu_count() or 1)


def _round_trip_ns() -> float:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        there, back = other.stdin.fileno(), other.stdout.fileno()
        best = math.inf  # the best of several, because other work disturbs real-time processes less
        for _ in range(_BATCHES):
            began = time.perf_counter_ns()
            for _ in range(_ROUND_TRIPS):
                os.write(there, _FRAME)
                os.read(back, len(_FRAME))
            best = min(best, (time.perf_counter_ns() - began) / _ROUND_TRIPS)
        return best


def _lag_p99_ns() -> float:
    """Return the 99th percentile of lateness at the priority of hosts and switches."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    isolation.above_others()
    isolation.exact_timers()
    lags = []
    for _ in range(_SLEEPS):
        began = time.monotonic_ns()
        time.sleep(_SLEEP_S)
        lags.append(time.monotonic_ns() - began - _SLEEP_S * 1e9)
    os.sched_setscheduler(0, policy, parameters)
    return sorted(lags)[int(0.99 * _SLEEPS)]


def choose(run: Run, machine: Machine, packets_per_s_of_link: int | None = None) -> int:
    """Return the wall-clock nanoseconds for one of model time, to two digits.

    The switches may limit the rate of a link.
    """
    packet_bits = 8 * run.scenario.link_bytes(run.packet_bytes)
    work_ns = machine.round_trip_ns * (2 * _LINK_COST * _mean_links(run) + 4 * _HOST_COST)
    load = _demand_bps(run) / packet_bits * work_ns * 1e-9 / (machine.processors * _BUSY)
    lag = _LAG_MARGIN * min(machine.lag_p99_ns, _MOST_LAG_NS) / (_LAG_LIMIT * run.base_rtt_ns())
    limit = 0.0
    if packets_per_s_of_link is not None:
        limit = max(link.rate_bps for link in run.topology.links) / packet_bits / packets_per_s_of_link
    return fidelity.rounded_up(max(load, lag, limit, 1.0))


def _demand_bps(run: Run) -> float:
    """Return the smaller of the hosts' total sending rate and the receivers' total receiving rate."""
    traffic, hosts = run.traffic(), run.topology.hosts
    flows, at_work = traffic.flows, set(traffic.assignments)
    return min(
        sum(run.topology.uplink(hosts[index]).rate_bps for index in ends | at_work)
        for ends in (
            {source for flow in flows for source in flow.sources},
            {destination for flow in flows for destination in flow.destinations},
        )
    )


def _mean_links(run: Run) -> float:
    """Return the mean number of links that a packet crosses with all its copies.

    For collectives, whose copies are answered individually, it is the number of links between the
    two most distant hosts.
    """
    hosts, traffic = run.topology.hosts, run.traffic()
    trees = {(group.source, group.members): group.tree(run.topology) for group in run.groups}
    transfers = {(flow.source, flow.destinations) for flow in traffic.flows}
    links = [
        len(trees[a, b].up) if (a, b) in trees else len(path(run.topology, hosts[a], hosts[b[0]])) for a, b in transfers
    ]
    at_work = sorted(traffic.assignments)
    if len(at_work) > 1:
        links.append(max(len(path(run.topology, hosts[at_work[0]], hosts[other])) for other in at_work[1:]))
    return sum(links) / max(len(links), 1)
