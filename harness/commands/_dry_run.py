"""What `p4cc run --dry-run` tells: each run's network, and what it will take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from harness.plan.experiment import Run
from harness.plan.request import planned
from harness.worlds.expected import best_workers, expected
from harness.worlds.partition import partition, shares
from p4switch.processes import processors
from p4switch.quantities import doubts


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
    foreseen, traffic = expected(run), run.traffic()
    total_bytes = sum(flow.size_bytes for flow in traffic.flows)
    more = "" if traffic.independent else " at the start; others follow when these are done"
    yield (
        f"traffic: {foreseen.flows:,} flows, {total_bytes / 1e6:,.1f} MB, {foreseen.data_packets:,} packets, "
        f"{foreseen.packet_hops:,} packet-hops{more}"
    )
    if run.scenario.limit_ns:
        yield f"ends: when all is acknowledged, or after {run.scenario.limit_ns / 1e6:g} ms of model time"
    yield (
        f"expected: some {foreseen.set_up_s + foreseen.run_s:.2g} s of CPU if all is sent, {foreseen.set_up_s:.2g} s "
        f"of it to set up, and some {foreseen.memory_bytes / 1e9:.1f} GB of memory"
    )
    count = best_workers(run, processors(), traffic.independent)
    if count > 1:
        owners = partition(run.topology, count, not traffic.independent)
        wall_s = foreseen.run_wall_s(shares(run.topology, owners, count))
        yield f"workers: {count} would take some {foreseen.set_up_s + wall_s:.2g} s of wall-clock time"
    else:
        yield "workers: one; more would save little here"
