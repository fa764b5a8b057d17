"""`p4cc run`: run scenarios, and compare their protocols and seeds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.plan.how import How, Tracing
from harness.worlds.mininet import package
from harness.worlds.mininet.prompt import moment
from harness.worlds.native_hosts import use_native_hosts
from harness.worlds.ranks import MPI, Ranks, begin
from p4cc.commands import _names
from p4cc.commands._debugging import debug_option
from p4cc.commands._seeds import seeds as seeds_of
from p4cc.commands._where import resume_option, where, where_options
from p4cc.execution.pool import Cluster
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import ScenarioSelection
from p4switch.errors import UserError
from p4switch.quantities import quantity


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
    help="Virtual world, or real frames in Mininet (as root).",
)
@click.option("--switch", metavar="NAME", help="With --world mininet: builtin or bmv2. Default: builtin.")
@click.option(
    "--dilation",
    type=click.IntRange(1),
    metavar="D",
    help="With --world mininet: wall-clock time of a unit of model time. Default: chosen for this machine.",
)
@click.option(
    "--compiler", type=click.Choice(["builtin", "p4c"]), default="builtin", show_default=True, help="P4 compiler."
)
@click.option("--dry-run", is_flag=True, help="Show the runs and their predicted cost, and run nothing.")
@click.option(
    "--reuse",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FOLDER",
    help="Take runs of the same inputs from this folder.",
)
@resume_option
@click.option("--strict", is_flag=True, help="Exit with status 1 if flows did not finish or the machine was too slow.")
@click.option(
    "--report/--no-report", default=True, show_default=True, help="Write the report; `p4cc report` does it later, too."
)
@click.option("--pcap", is_flag=True, help="Also write the frames on every host's link, as pcap-ng.")
@click.option(
    "--trace",
    type=click.IntRange(0),
    metavar="FLOW",
    help="Record what each hop does with a flow's packets (trace.txt, trace.jsonl); flows count from 0.",
)
@click.option("--trace-packets", type=click.IntRange(1), metavar="N", help="With --trace: only the flow's first N.")
@click.option("--trace-from", metavar="TIME", help="With --trace: those sent from this model time on, as in 20us.")
@click.option("--trace-until", metavar="TIME", help="With --trace: those sent before this model time.")
@click.option("--trace-hops", is_flag=True, help="With --trace: leave out the events of pipelines, most of a trace.")
@click.option(
    "--workers",
    metavar="N",
    help="Processes that share each run of the virtual world; auto: the fastest number; mpi: the ranks of mpiexec. "
    "Default: the scenario's, or auto.",
)
@where_options("one run after the other, in this process")
@click.option("--watch", is_flag=True, help="With --world mininet: a page on loopback shows the network while it runs.")
@click.option(
    "--cli",
    metavar="MOMENT",
    help="With --world mininet: open Mininet's own prompt at start, which is before the first packet, at end, or at "
    "a model time, as in 5ms; the run does not stop meanwhile.",
)
@click.option("--coverage", is_flag=True, help="Also write the coverage of the P4 program by packets (coverage/).")
@debug_option
def command(dry_run: bool, **options: Any) -> None:
    """Run scenarios and write a report.

    A SCENARIO is a name from `p4cc list scenarios`, or a .toml file. Every combination of protocol, load balancer and
    seed is a run, which gets a folder with its results; report.html compares them.
    """
    parsed = _Options(**options)
    with _ranks(parsed.workers) as ranks:
        request = parsed.request()
        if dry_run:
            from p4cc.execution.dry_run import describe

            describe(request, ranks)
            return
        use_native_hosts()

        from p4cc.execution.execute import execute

        execute(request, ranks)


@dataclass(frozen=True)
class _Options:
    """Arguments and options of the command, as click passes them."""

    scenarios: tuple[str, ...]
    cc: tuple[str, ...]
    lb: tuple[str, ...]
    seeds: list[int]
    program: str | None
    settings: tuple[str, ...]
    out: Path | None
    world: str
    switch: str | None
    dilation: int | None
    compiler: str
    reuse: tuple[Path, ...]
    resume: Path | None
    strict: bool
    report: bool
    pcap: bool
    trace: int | None
    trace_packets: int | None
    trace_from: str | None
    trace_until: str | None
    trace_hops: bool
    workers: str | None
    jobs: int | None
    scheduler: str | None
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    watch: bool
    cli: str | None
    coverage: bool

    def request(self) -> RunRequest:
        """Return the request of these options. Raises UserError where they conflict."""
        where = self._where()
        how = self._how()
        settings = self.settings if self.program is None else (*self.settings, f"program={self.program}")
        selection = ScenarioSelection(self.scenarios, settings, {"cc": self.cc, "lb": self.lb, "seeds": self.seeds})
        return RunRequest(
            selection, how, where, self.workers, self.out, self.resume, self.reuse, self.strict, self.report,
            self.watch, None if self.cli is None else moment(self.cli),
        )  # fmt: skip

    def _where(self) -> Cluster | int | None:
        """Return the processes or the cluster that make the runs; None: this process."""
        chosen = where(self.jobs, self.scheduler, self.tls_ca, self.tls_cert, self.tls_key)
        if chosen in (None, 1):
            return None
        option = f"--jobs {chosen}" if isinstance(chosen, int) else "--scheduler"
        if self.world == "mininet":
            raise UserError(f"{option}: a machine has one Mininet network at a time; expected --world virtual with it")
        if self.workers not in (None, "1"):
            raise UserError(
                f"--workers {self.workers}: with {option} each run is one process's; expected one of the two"
            )
        return chosen

    def _how(self) -> How:
        """Return how runs are carried out."""
        if self.world == "virtual":
            given = {"--switch": self.switch, "--dilation": self.dilation, "--watch": self.watch or None,
                     "--cli": self.cli}  # fmt: skip
            for option in (option for option, value in given.items() if value is not None):
                raise UserError(f"{option}: the virtual world has no such option; expected --world mininet with it")
            return How("virtual", self.compiler, pcap=self.pcap, trace=self._trace(), coverage=self.coverage)
        if self.cli is not None:
            moment(self.cli)
        package.require()
        if self.trace is not None:
            raise UserError("--trace: the Mininet world has no traces; expected --world virtual, or --pcap instead")
        if self.coverage:
            raise UserError("--coverage: the Mininet world does not count; expected --world virtual")
        if self.workers not in (None, "1"):
            raise UserError(
                f"--workers {self.workers}: hosts and switches of the Mininet world are processes of their own; "
                "expected --world virtual"
            )
        self._trace()
        return How("mininet", self.compiler, self.switch or "builtin", self.dilation, self.pcap)

    def _trace(self) -> Tracing | None:
        """Return the selection of packets that is traced in each run."""
        limits: dict[str, Any] = {
            "packets": self.trace_packets,
            "from_ns": None if self.trace_from is None else quantity("--trace-from", self.trace_from, "ns"),
            "until_ns": None if self.trace_until is None else quantity("--trace-until", self.trace_until, "ns"),
            "pipelines": False if self.trace_hops else None,
        }
        limits = {name: value for name, value in limits.items() if value is not None}
        if limits and self.trace is None:
            raise UserError("--trace-packets, --trace-from, --trace-until, --trace-hops: expected --trace FLOW, too")
        return None if self.trace is None else Tracing(self.trace, **limits)


def _ranks(workers: str | None) -> AbstractContextManager[Ranks | None]:
    """Return the ranks of mpiexec, if they are the workers."""
    return begin() if workers == MPI else nullcontext()
