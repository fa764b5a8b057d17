"""`p4cc run`: carries out scenarios, and compares the protocols and seeds that they are run with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import CheckError
from p4switch.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.commands._progress import RunProgress
    from harness.measure.recording import World
    from harness.plan.experiment import Run

    MakeWorld = Callable[[Run], World]


@click.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--cc", multiple=True, metavar="NAME", help="Congestion control, instead of the scenario's; or several.")
@click.option("--lb", multiple=True, metavar="NAME", help="Load balancer, instead of the scenario's; or several.")
@click.option(
    "--seed", "seeds", multiple=True, type=click.IntRange(0), metavar="N", help="Several give confidence intervals."
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
@click.option("--strict", is_flag=True, help="Fail where flows are not done at the end, or times cannot be trusted.")
@click.option("--pcap", is_flag=True, help="Also write the frames on every host's link, as pcap-ng.")
@click.option(
    "--trace",
    type=click.IntRange(0),
    metavar="FLOW",
    help="Tell what each hop did with a flow's packets (trace.txt); flows count from 0.",
)
def command(
    scenarios: tuple[str, ...],
    cc: tuple[str, ...],
    lb: tuple[str, ...],
    seeds: tuple[int, ...],
    program: str | None,
    settings: tuple[str, ...],
    out: Path | None,
    world: str,
    switch: str | None,
    dilation: int | None,
    compiler: str,
    strict: bool,
    pcap: bool,
    trace: int | None,
) -> None:
    """Run scenarios and write a report.

    A SCENARIO is a name from `p4cc list scenarios`, or a .toml file. Every combination of protocol, load balancer and
    seed is a run, which gets a folder with its results; report.html compares them.
    """
    make = _virtual(pcap, trace, compiler)
    if world == "mininet":
        make = _mininet(pcap, trace, switch, dilation, compiler)
    else:
        given = {"--switch": switch is not None, "--dilation": dilation is not None}
        for option in (option for option, is_given in given.items() if is_given):
            raise UserError(f"{option}: the virtual world has no such thing; expected --world mininet with it")

    from harness.worlds.native_hosts import tell_interpreted, use_native_hosts

    use_native_hosts()

    from harness.commands._attempt import attempt
    from harness.commands._progress import RunProgress
    from harness.measure import results
    from harness.measure.output_folder import new_folder
    from harness.report import write_report

    if program is not None:
        settings = (*settings, f"program={program}")
    runs = planned(scenarios, settings, {"cc": cc, "lb": lb, "seeds": seeds})
    tell_interpreted([run.protocol.name for run in runs], [run.load_balancing.name for run in runs])
    target = out or unused(Path("runs") / "-".join(dict.fromkeys(run.name for run in runs)))
    with new_folder(target) as folder, RunProgress(len(runs)) as progress:
        failed = [check for run in runs for check in _carry_out(run, make, folder, progress, strict)]
        found = [results.load(folder / run.label) for run in runs]
        failed += attempt(lambda: write_report(found, folder / "report.html", folder / "plots"), folder)
    click.echo(f"{len(found)} run{'s' if len(found) > 1 else ''}: {target / 'report.html'}")
    if failed:
        raise CheckError("; ".join(failed))


def planned(
    scenarios: Sequence[str], settings: Sequence[str], several: Mapping[str, Sequence[str | int]]
) -> list[Run]:
    """Every run of what a command line asks for, `several` by the scenario's key. Raises UserError."""
    from harness.plan.experiment import plan
    from harness.plan.scenario import anchored, check, find, override, read

    runs: list[Run] = []
    for name in scenarios:
        path = find(name)
        tables = override(read(path), settings)
        tables.update(anchored({key: list(values) for key, values in several.items() if values}, Path.cwd()))
        runs += plan(path.stem, check(tables), path.parent)
    if len({run.label for run in runs}) < len(runs):
        raise UserError("scenarios of the same name cannot share an output folder")
    return runs


def unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3, ... that does not exist and is not being written."""
    from harness.measure.output_folder import is_taken

    candidate, number = path, 1
    while is_taken(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def _virtual(pcap: bool, trace: int | None, compiler: str) -> MakeWorld:
    def make(run: Run) -> World:
        from harness.worlds.virtual import VirtualWorld

        return VirtualWorld(run, trace=trace, capture=pcap, compiler=compiler)

    return make


def _mininet(
    pcap: bool, trace: int | None, switch: str | None, dilation: int | None, compiler: str
) -> MakeWorld:
    """Raises UserError where this machine or this world cannot."""
    from harness.worlds.mininet import package

    package.require()
    if trace is not None:
        raise UserError("--trace: the Mininet world has no traces; expected --world virtual, or --pcap instead")

    def make(run: Run) -> World:
        from harness.worlds.mininet.world import MininetWorld

        return MininetWorld(run, capture=pcap, switch=switch or "builtin", dilation=dilation, compiler=compiler)

    return make


def _carry_out(run: Run, make: MakeWorld, folder: Path, progress: RunProgress, strict: bool) -> list[str]:
    """One run, written to a folder of its own; returns the checks that failed."""
    from harness.measure import results
    from harness.measure.summary import unfinished

    progress.begin(run.label)
    world = make(run)
    recording = world.run(progress.update)
    target = folder / run.label
    summary = results.write(target, results.files(run, recording)).summary
    world.write_more(target)
    fidelity = recording.fidelity
    cost = f"{recording.set_up_s + recording.cpu_s:.1f} s of CPU"
    if fidelity is not None:
        cost = f"{fidelity['run_s']:.1f} s of wall clock at 1:{fidelity['dilation']}"
        if fidelity["given_up"]:
            cost += f" (too fast for this machine: {', '.join(f'1:{factor}' for factor in fidelity['given_up'])})"
        cost += f", {fidelity['set_up_s']:.1f} s of set-up"
    progress.end(
        f"{summary['flows_delivered']}/{summary['flows']} flows in {recording.end_ns / 1e3:,.0f} µs of model time, "
        f"{cost}"
    )
    failed = [f"{check['name']}: {check['detail']}" for check in summary["checks"] if not check["holds"]]
    warnings = {}  # what they say, and what may help
    if told := unfinished(summary):
        warnings[told] = ""
    if fidelity is not None and not fidelity["trusted"]:
        text = f"its times cannot be trusted: {'; '.join(fidelity['caveats'] + fidelity['reasons'])}"
        warnings[text] = "; a larger --dilation may help" if fidelity["reasons"] else ""
    if strict:
        failed += warnings
    else:
        for text, help_ in warnings.items():
            click.echo(f"warning: {run.label}: {text}{help_}", err=True)
    return [f"{run.label}: {text}" for text in failed]
