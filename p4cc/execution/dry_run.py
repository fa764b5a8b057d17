"""Output of `--dry-run`: network and expected cost of each run, and a row for each run of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import click
from rich.table import Table

from harness.measure.tracing import check_trace
from harness.plan.run import Run
from harness.worlds.expected import Expected, check_fits, expected, memory_limit, run_wall_s
from harness.worlds.parallel import AUTO, paying_workers, workers_of
from harness.worlds.ranks import Ranks
from p4cc.execution.batch import batch_of
from p4cc.execution.doubts import tell_doubts
from p4cc.execution.pool import Cluster
from p4cc.execution.request import RunRequest
from p4cc.execution.terminal_tables import show
from p4switch.errors import Mistakes
from topologies.model import Routing

_WIDE = 1.2  # ratio of the largest memory to the smallest one above which both are shown
_ROUTES: Mapping[Routing, str] = {
    "shortest": "shortest paths",
    "minimal": "by one link between groups",
    "valiant": "through a third group",
    "ugal": "by one link between groups or through a third group",
}


def describe(request: RunRequest, ranks: Ranks | None = None) -> None:
    """Print the runs of a request and their expected cost without running anything.

    Parameters
    ----------
    request
        The request.
    ranks
        The processes that would share each run.

    Raises
    ------
    UserError
        As the runs themselves would.
    """
    batch, how, where = batch_of(request.selection), request.how, request.where
    virtual, traced = how.world == "virtual", how.trace is not None
    built, built_here = (1, 1) if ranks is None else (ranks.count, ranks.count_here)
    workers = workers_of("1" if where is not None else request.workers, traced)
    too_large = Mistakes()
    expectations: list[Expected] = []
    rows: list[dict[str, str]] = []
    for planned in batch.runs:
        run = planned.run()
        if virtual:
            memory_limit(run, built, built_here)
        foreseen = expected(run)
        expectations.append(foreseen)
        count = workers(run, foreseen) if ranks is None else ranks.count
        if how.trace is not None:
            check_trace(run.traffic(), how.trace.flow, count > 1)
        if batch.sweep is not None:
            rows.append({"run": planned.title, **_row(run, foreseen)})
        else:
            click.echo(planned.title)
            for line in _lines(run, foreseen):
                click.echo(f"  {line}")
            if virtual:
                click.echo(f"  {_workers(run, foreseen, count, traced)}")
        if virtual and ranks is None and not isinstance(where, Cluster):
            too_large.attempt(partial(check_fits, run, foreseen))
    if rows:
        _show(rows)
    if where is not None and (len(expectations) > 1 or rows):
        click.echo(_all(expectations, where))
    tell_doubts(batch, how.trace)
    too_large.tell()


def _show(rows: Sequence[Mapping[str, str]]) -> None:
    """Print a row for each run, without columns that are empty in all of them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = [column for column in rows[0] if any(row[column] for row in rows)]
    for column in shown:
        table.add_column(column, justify="left" if column in ("run", "network") else "right")
    for row in rows:
        table.add_row(*(row[column] for column in shown))
    show(table)


def _row(run: Run, foreseen: Expected) -> dict[str, str]:
    """Return the contents of `_lines` by column; missing values are empty."""
    work = foreseen.collectives
    return {
        "network": f"{run.topology.name}, {foreseen.hosts:,} hosts",
        "base RTT": f"{run.base_rtt_ns() / 1e3:g} us",
        "BDP": f"{_bdp_bytes(run) / 1e3:,.1f} KB",
        "flows": f"{foreseen.flows:,}" if foreseen.flows else "",
        "sent": f"{_megabytes(foreseen.flow_bytes)} MB" if foreseen.flows else "",
        "packets": f"{foreseen.data_packets:,}" if foreseen.flows else "",
        "operations": f"{work.operations:,.0f}" if work.hosts else "",
        "packet-hops": f"{foreseen.packet_hops:,}",
        "limit": f"{run.limit_ns / 1e6:g} ms",
        "CPU": _seconds(foreseen.set_up_s + foreseen.run_s),
        "memory": f"{foreseen.memory_bytes / 1e9:.1f} GB",
    }


def _lines(run: Run, foreseen: Expected) -> Iterator[str]:
    topology = run.topology
    rates = sorted({link.rate_bps for link in topology.links})
    yield f"network: {topology.name}, {len(topology.hosts)} hosts, {_switches(len(topology.switches))}"
    own = {topology.framing_bytes if link.framing_bytes is None else link.framing_bytes for link in topology.links}
    framing = f", with {' and '.join(map(str, sorted(own)))} bytes of framing" if len(own) > 1 else ""
    yield f"links: {len(topology.links)} at {', '.join(map(_rate, rates))}{framing}"
    rtts_us = {switches: rtt / 1e3 for switches, rtt in enumerate(run.base_rtts_ns) if rtt}
    rtts = ", ".join(f"{us:g} us over {_switches(n)}" for n, us in rtts_us.items())
    yield f"routes: {_ROUTES[topology.routing]}; base RTT {rtts}"
    yield f"BDP: {_bdp_bytes(run) / 1e3:,.1f} KB (at {_rate(_slowest_bps(run))} and the largest base RTT)"
    yield f"protocol: {run.protocol.name}, load balancer {run.load_balancing.name}, {_programs(run)}"
    for name, (protocol, balancing) in run.group_senders.items():
        yield f"group {name}: protocol {protocol.name}, load balancer {balancing.name}"
    yield from _cost(run, foreseen)


def _programs(run: Run) -> str:
    """Return the switches' programs, with the numbers of switches if there are several."""
    if len(run.switch_programs) == 1:
        return f"program {run.program_names}"
    each = (f"{one.name} on {_switches(len(one.switches))}" for one in run.switch_programs)
    return f"programs {' and '.join(each)}"


def _slowest_bps(run: Run) -> int:
    """Return the lowest rate of the hosts' links."""
    return min(run.topology.uplink(host).rate_bps for host in run.topology.hosts)


def _bdp_bytes(run: Run) -> float:
    return _slowest_bps(run) * run.base_rtt_ns() / 8e9


def _switches(number: int) -> str:
    return f"{number} switch{'' if number == 1 else 'es'}"


def _rate(bps: float) -> str:
    """Return a rate in Gb/s, or in b/s if it is small."""
    return f"{bps / 1e9:g} Gb/s" if bps >= 1e6 else f"{bps:g} b/s"


def _cost(run: Run, foreseen: Expected) -> Iterator[str]:
    more = "" if foreseen.independent else ", with those that start when others are done"
    if foreseen.model_ns == run.limit_ns:
        more += " within the limit"
    hops = foreseen.packet_hops - round(foreseen.collectives.packet_hops)
    yield (
        f"traffic: {foreseen.flows:,} flows, {_megabytes(foreseen.flow_bytes)} MB, {foreseen.data_packets:,} packets, "
        f"{hops:,} packet-hops{more}"
    )
    if (work := foreseen.collectives).hosts:
        yield (
            f"collectives: of {work.hosts:,} hosts, {work.operations:,.0f} operations, {work.flits:,.0f} flits, "
            f"{work.packet_hops:,.0f} packet-hops"
        )
    yield f"ends: when all is acknowledged, or after {run.limit_ns / 1e6:g} ms of model time"
    yield (
        f"expected: some {_seconds(foreseen.set_up_s + foreseen.run_s)} of CPU, {_seconds(foreseen.set_up_s)} "
        f"of it to set up, and some {foreseen.memory_bytes / 1e9:.1f} GB of memory"
    )
    least_bytes, most_bytes = foreseen.memory_range_bytes
    if most_bytes > _WIDE * least_bytes:
        yield (
            f"memory: {least_bytes / 1e9:.1f} GB if no packet waits for a link, {most_bytes / 1e9:.1f} GB if no sender "
            "reacts to feedback"
        )


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.1f}" if count >= 1e5 else f"{count / 1e6:.2g}"


def _seconds(count: float) -> str:
    """Return seconds to two digits."""
    return f"{float(f'{count:.2g}'):g} s"


def _workers(run: Run, foreseen: Expected, count: int, traced: bool) -> str:
    """Return the number of workers of the run, and the worthwhile number if it differs."""

    def in_words(workers: int) -> str:
        return f"some {_seconds(foreseen.set_up_s + run_wall_s(run, foreseen, workers))} of wall-clock time"

    auto = paying_workers(run, foreseen, traced)
    if auto == count:
        return f"workers: {count}, as --workers {AUTO} gives; {in_words(count)}"
    return f"workers: {count}, {in_words(count)}; --workers {AUTO} gives {auto}, {in_words(auto)}"


def _all(runs: Sequence[Expected], where: Cluster | int) -> str:
    """Return the total cost of all runs, `where` of which run at the same time on a processor each."""
    each_s = [run.set_up_s + run.run_s for run in runs]
    in_words = f"all {len(runs)} runs: some {_seconds(sum(each_s))} of CPU"
    if isinstance(where, Cluster):
        return in_words
    largest = sorted((run.memory_bytes for run in runs), reverse=True)[:where]
    return (
        f"{in_words}; {where} at a time some {_seconds(max(sum(each_s) / where, *each_s))} of wall-clock time, "
        f"and up to {sum(largest) / 1e9:.1f} GB of memory"
    )
