"""`p4cc run`: carries out scenarios, and compares the protocols and seeds that they are run with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.commands import _names
from harness.commands._seeds import seeds as seeds_of
from harness.commands._where import resume_option, where, where_options
from harness.debugging import debug_option
from harness.worlds.mininet import package
from harness.worlds.mininet.prompt import moment
from harness.worlds.native_hosts import use_native_hosts
from harness.worlds.ranks import MPI, Ranks, begin
from p4switch.errors import UserError
from p4switch.quantities import quantity

if TYPE_CHECKING:
    from harness.replay.live import Watch
    from harness.worlds.workers import Cluster


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...", shell_complete=_names.scenarios)
@click.option(
    "--cc",
    multiple=True,
    metavar="NAME",
    shell_complete=_names.protocols,
    help="Congestion control, instead of the scenario's; or several.",
)
@click.option(
    "--lb",
    multiple=True,
    metavar="NAME",
    shell_complete=_names.load_balancers,
    help="Load balancer, instead of the scenario's; or several.",
)
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    callback=seeds_of,
    metavar="N",
    help="Several give confidence intervals: --seed 1 --seed 2, or --seed 1-100.",
)
@click.option("--program", metavar="NAME", help="P4 program of the switches: a name, or a .p4 file.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key, for example topology.k=8.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SCENARIO.")
@click.option(
    "--world",
    type=click.Choice(["virtual", "mininet"]),
    default="virtual",
    show_default=True,
    help="Virtual time in one process, or real frames in Mininet (as root).",
)
@click.option("--switch", metavar="NAME", help="With --world mininet: builtin or bmv2. Default: builtin.")
@click.option(
    "--dilation",
    type=click.IntRange(1),
    metavar="D",
    help="With --world mininet: wall-clock time of a unit of model time. Default: what suits the machine.",
)
@click.option(
    "--compiler", type=click.Choice(["builtin", "p4c"]), default="builtin", show_default=True, help="Of P4 programs."
)
@click.option("--dry-run", is_flag=True, help="Tell what would be run, and what it would take; run nothing.")
@click.option(
    "--reuse",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FOLDER",
    help="Take runs of the same inputs from there.",
)
@resume_option
@click.option("--strict", is_flag=True, help="Fail where flows are not done at the end, or a machine did not keep up.")
@click.option(
    "--report/--no-report", default=True, show_default=True, help="Write the report; `p4cc report` does it later, too."
)
@click.option("--pcap", is_flag=True, help="Also write the frames on every host's link, as pcap-ng.")
@click.option(
    "--trace",
    type=click.IntRange(0),
    metavar="FLOW",
    help="Tell what each hop did with a flow's packets (trace.txt, trace.jsonl); flows count from 0.",
)
@click.option("--trace-packets", type=click.IntRange(1), metavar="N", help="With --trace: only the flow's first N.")
@click.option("--trace-from", metavar="TIME", help="With --trace: those sent from this model time on, as in 20us.")
@click.option("--trace-until", metavar="TIME", help="With --trace: those sent before this model time.")
@click.option("--trace-hops", is_flag=True, help="With --trace: without what pipelines do, a hundredth as long.")
@click.option(
    "--workers",
    metavar="N",
    help="Processes that share each run of the virtual world; auto: as many as pay; mpi: mpiexec's. "
    "Default: the scenario's, or auto.",
)
@where_options("one run after the other, in this process")
@click.option("--watch", is_flag=True, help="With --world mininet: a page on loopback shows the network while it runs.")
@click.option(
    "--cli",
    metavar="MOMENT",
    help="With --world mininet: open Mininet's own prompt at start, when all is up and nothing is sent, at end, or at "
    "a model time, as in 5ms; the run goes on meanwhile.",
)
@click.option("--coverage", is_flag=True, help="Also write what of the P4 program packets reached (coverage/).")
@debug_option
def command(
    scenarios: tuple[str, ...],
    cc: tuple[str, ...],
    lb: tuple[str, ...],
    seeds: list[int],
    program: str | None,
    settings: tuple[str, ...],
    out: Path | None,
    world: str,
    switch: str | None,
    dilation: int | None,
    compiler: str,
    dry_run: bool,
    reuse: tuple[Path, ...],
    resume: Path | None,
    strict: bool,
    report: bool,
    pcap: bool,
    trace: int | None,
    trace_packets: int | None,
    trace_from: str | None,
    trace_until: str | None,
    trace_hops: bool,
    workers: str | None,
    watch: bool,
    cli: str | None,
    coverage: bool,
    **whose: Any,
) -> None:
    """Run scenarios and write a report.

    A SCENARIO is a name from `p4cc list scenarios`, or a .toml file. Every combination of protocol, load balancer and
    seed is a run, which gets a folder with its results; report.html compares them.
    """
    with _ranks(workers) as ranks:
        there = _elsewhere(whose, world, workers)
        prompt = None
        if world == "mininet":
            prompt = None if cli is None else moment(cli)
            package.require()
            if trace is not None:
                raise UserError("--trace: the Mininet world has no traces; expected --world virtual, or --pcap instead")
            if coverage:
                raise UserError("--coverage: the Mininet world does not count; expected --world virtual")
            if workers not in (None, "1"):
                raise UserError(
                    f"--workers {workers}: hosts and switches of the Mininet world are processes of their own; "
                    "expected --world virtual"
                )
        else:
            given = {"--switch": switch, "--dilation": dilation, "--watch": watch or None, "--cli": cli}
            for option in (option for option, value in given.items() if value is not None):
                raise UserError(f"{option}: the virtual world has no such thing; expected --world mininet with it")
        limits: dict[str, Any] = {
            "packets": trace_packets,
            "from_ns": None if trace_from is None else quantity("--trace-from", trace_from, "ns"),
            "until_ns": None if trace_until is None else quantity("--trace-until", trace_until, "ns"),
            "pipelines": False if trace_hops else None,
        }
        limits = {name: value for name, value in limits.items() if value is not None}
        if limits and trace is None:
            raise UserError("--trace-packets, --trace-from, --trace-until, --trace-hops: expected --trace FLOW, too")
        if program is not None:
            settings = (*settings, f"program={program}")
        several: dict[str, Sequence[str | int]] = {"cc": cc, "lb": lb, "seeds": seeds}
        if dry_run:
            from harness.commands._dry_run import tell_plan
            from harness.measure.tracing import Tracing
            from harness.worlds.parallel import workers_of

            own = "1" if there is not None else workers
            staff = workers_of(own, trace is not None) if ranks is None else lambda run, foreseen=None: ranks.count
            traced = None if trace is None else Tracing(trace, **limits)
            tell_plan(scenarios, settings, several, world, staff, traced, ranks, there)
            return
        use_native_hosts()

        from harness.commands import _run
        from harness.measure.inputs import How
        from harness.measure.tracing import Tracing
        from harness.worlds.makers import follow, maker

        if world == "mininet":
            switch = switch or "builtin"
        traced = None if trace is None else Tracing(trace, **limits)
        how = How(world, compiler, switch, dilation, pcap, traced, coverage)
        if ranks is not None and not ranks.first:
            follow(ranks, scenarios, settings, several, how)
            return
        with _watch(watch) as watcher:
            make = maker(how, _run.staff(workers, ranks, traced=trace is not None), watcher, prompt)
            bar = prompt is None  # it would write over the prompt
            _run.carry_out(scenarios, settings, several, make, out, strict, reuse, how, report, there, resume, bar)


def _elsewhere(whose: Mapping[str, Any], world: str, workers: str | None) -> Cluster | int | None:
    """Who else makes the runs; None: this process. Raises UserError for options that do not go together."""
    there = where(**whose)
    if there in (None, 1):
        return None
    option = f"--jobs {there}" if isinstance(there, int) else "--scheduler"
    if world == "mininet":
        raise UserError(f"{option}: a machine has one Mininet network at a time; expected --world virtual with it")
    if workers not in (None, "1"):
        raise UserError(f"--workers {workers}: with {option} each run is one process's; expected one of the two")
    return there


@contextmanager
def _watch(wanted: bool) -> Iterator[Watch | None]:
    """The page of the runs, and where it is."""
    if not wanted:
        yield None
        return
    from harness.replay.live import Watch

    with Watch() as watcher:
        click.echo(f"watch it: {watcher.url}", err=True)
        yield watcher


def _ranks(workers: str | None) -> AbstractContextManager[Ranks | None]:
    """Those of mpiexec, if the workers are to be these."""
    return begin() if workers == MPI else nullcontext()
