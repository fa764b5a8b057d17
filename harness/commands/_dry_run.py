"""What `p4cc run --dry-run` tells: each run's network, and what it will take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from harness.plan.experiment import Run
from harness.plan.request import planned
from p4switch.quantities import doubts
from topologies.routing import path

# Of compiled hosts on one core of a server, measured (docs/performance.md): an order of magnitude, no promise.
_CPU_US_PER_HOP = 1.0
_BYTES_PER_NODE = 300_000
_BYTES_PER_PACKET = 60
_BASE_BYTES = 250_000_000


def tell_plan(scenarios: Sequence[str], settings: Sequence[str], several: Mapping[str, Sequence[str | int]]) -> None:
    """Every run that would be made. Raises UserError as the runs themselves would."""
    runs = planned(scenarios, settings, several)
    for run in runs:
        click.echo(run.label)
        for line in _lines(run):
            click.echo(f"  {line}")
    for line in dict.fromkeys(line for run in runs for line in doubts({"topology": run.scenario.topology})):
        click.echo(f"warning: {line}", err=True)


def _lines(run: Run) -> Iterator[str]:
    topology, rtt_ns = run.topology, run.base_rtt_ns()
    rates = sorted({link.rate_bps for link in topology.links})
    slowest = min(topology.uplink(host).rate_bps for host in topology.hosts)
    yield f"network: {topology.name}, {len(topology.hosts)} hosts, {len(topology.switches)} switches"
    shown = ", ".join(f"{rate / 1e9:g}" for rate in rates)
    yield f"links: {len(topology.links)} at {shown} Gb/s"
    switches = [hops for hops, base_rtt_ns in enumerate(run.base_rtts_ns) if base_rtt_ns]
    of_paths = ", ".join(f"{run.base_rtts_ns[hops] / 1e3:g} us over {hops}" for hops in switches)
    yield f"routes: shortest paths; base RTT {of_paths} switch{'es' if switches[-1:] != [1] else ''}"
    yield f"BDP: {slowest * rtt_ns / 8e12:,.1f} KB (at {slowest / 1e9:g} Gb/s and the largest base RTT)"
    yield f"protocol: {run.protocol.name}, load balancer {run.load_balancing.name}, program {run.program.name}"
    yield from _cost(run)


def _cost(run: Run) -> Iterator[str]:
    """Of the flows that are known before the run: others start when these are done."""
    traffic = run.traffic()
    mtu_bytes, hosts = run.scenario.nic.mtu_bytes, run.topology.hosts
    links: dict[tuple[int, int], int] = {}
    packets = hops = total_bytes = 0
    for flow in traffic.flows:
        ends = flow.source, flow.destination
        if ends not in links:
            links[ends] = len(path(run.topology, hosts[flow.source], hosts[flow.destination]))
        count = -(-flow.size_bytes // mtu_bytes)
        packets += count
        hops += 2 * count * links[ends]  # there, and the acknowledgement back
        total_bytes += flow.size_bytes
    more = "" if traffic.independent else " at the start; others follow when these are done"
    yield f"traffic: {len(traffic.flows):,} flows, {total_bytes / 1e6:,.1f} MB, {packets:,} packets{more}"
    if run.scenario.limit_ns:
        yield f"ends: when all is acknowledged, or after {run.scenario.limit_ns / 1e6:g} ms of model time"
    nodes = len(hosts) + len(run.topology.switches)
    memory = _BASE_BYTES + nodes * _BYTES_PER_NODE + packets * _BYTES_PER_PACKET
    seconds = hops * _CPU_US_PER_HOP / 1e6
    yield f"expected: some {seconds:.1g} s of CPU if all is sent, some {memory / 1e9:.1f} GB of memory"
