"""What `p4cc run` does; hosts are in place, compiled or not."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy
from rich.console import Console

from harness.commands._attempt import attempt, tell_kept
from harness.commands._progress import RunProgress
from harness.errors import CheckError, DeadWorkerError
from harness.measure import results
from harness.measure.inputs import How, inputs
from harness.measure.output_folder import new_folder, unused
from harness.measure.recording import World
from harness.measure.summary import delivered, unfinished
from harness.plan.experiment import Run
from harness.plan.request import planned
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.parallel import workers_of
from harness.worlds.ranks import Ranks, differences
from harness.worlds.virtual import COVERAGE_FILE, VirtualWorld
from p4switch.coverage import Coverage, table
from p4switch.coverage import write as write_coverage
from p4switch.errors import UserError
from p4switch.quantities import doubts

if TYPE_CHECKING:
    from harness.worlds.mininet.watching import Watcher

MakeWorld = Callable[[Run], World]


def staff(workers: str | None, ranks: Ranks | None, traced: bool) -> Callable[[Run], int | Ranks]:
    """Who shares a run's work, by what --workers says. `traced`: one of its flows is. Raises UserError."""
    return workers_of(workers, traced) if ranks is None else lambda run: ranks


def maker(
    how: How, workers: Callable[[Run], int | Ranks] = lambda run: 1, watcher: Watcher | None = None
) -> MakeWorld:
    """Makes virtual worlds, each of so many workers, or worlds of Mininet, which has to be installed.

    The latter tell a `watcher` how far they are.
    """
    if how.world == "virtual":
        return lambda run: _made(run, how, workers(run))
    from harness.worlds.mininet.world import MininetWorld

    assert how.switch is not None
    switch = how.switch
    return lambda run: MininetWorld(
        run, capture=how.pcap, switch=switch, dilation=how.dilation, compiler=how.compiler, watcher=watcher
    )


def _made(run: Run, how: How, workers: int | Ranks) -> VirtualWorld:
    """Of ranks, this is the first one: the others make theirs, too."""
    if isinstance(workers, int):
        return _virtual(run, how, workers)
    return workers.lead(_task(run, how), lambda: _virtual(run, how, workers))


def _virtual(run: Run, how: How, workers: int | Ranks) -> VirtualWorld:
    return VirtualWorld(
        run, trace=how.trace, capture=how.pcap, compiler=how.compiler, coverage=how.coverage, workers=workers
    )


def _task(run: Run, how: How) -> tuple[str, dict[str, str]]:
    """A run as all ranks have it, if it is the same for all: its label, and what decides its results."""
    made_of = inputs(run)
    return run.label, {
        "p4cc's sources": made_of["sources"],
        "scenario": made_of["scenario"],
        "P4 program": made_of["program"],
        "files of the scenario": " ".join(sorted(filter(None, made_of["files"].values()))),
        "options": str(how),
        "Python": platform.python_version(),
        "numpy": numpy.__version__,
        "processor": platform.machine(),
    }


def follow(
    ranks: Ranks,
    scenarios: Sequence[str],
    settings: Sequence[str],
    several: Mapping[str, Sequence[str | int]],
    how: How,
) -> None:
    """What another rank than the first does. Raises UserError."""
    runs = {run.label: run for run in planned(scenarios, settings, several)}

    def build(task: tuple[str, dict[str, str]]) -> VirtualWorld:
        label, expected = task
        if label not in runs:
            raise UserError(f"no run {label!r} here; expected the same command at all ranks")
        differences(_task(runs[label], how)[1], expected)
        return _virtual(runs[label], how, ranks)

    ranks.follow(build)


def carry_out(
    scenarios: Sequence[str],
    settings: Sequence[str],
    several: Mapping[str, Sequence[str | int]],
    make: MakeWorld,
    out: Path | None,
    strict: bool,
    reuse: Sequence[Path] = (),
    how: How | None = None,
    report: bool = True,
) -> None:
    """Every run, and the report if wanted. Raises UserError, and CheckError if a check failed.

    `how` is what `make` makes. Runs that are in `reuse` already, of the same inputs and carried out as this says, are
    copied from there. After Ctrl-C, or the death of a worker, those runs are kept that were done; KeyboardInterrupt or
    DeadWorkerError is raised again.
    """
    if report:
        from harness.report import write_report  # before the runs: what it needs may not be installed
    how = how or How()
    runs = planned(scenarios, settings, several)
    tell_doubts(runs)
    tell_interpreted([run.protocol.name for run in runs], [run.load_balancing.name for run in runs])
    known = [result for earlier in reuse for result in results.load_all(earlier)]
    target = out or unused(Path("runs") / "-".join(dict.fromkeys(run.name for run in runs)))
    failed: list[str] = []
    found: list[results.Result] = []
    early: KeyboardInterrupt | DeadWorkerError | None = None
    with new_folder(target) as folder, RunProgress(len(runs)) as progress:
        try:
            for run in runs:
                failed += _one(run, make, how, folder, progress, strict, known)
                found.append(results.load(folder / run.label))
        except (KeyboardInterrupt, DeadWorkerError) as error:
            if not found:
                raise
            early = error
            shutil.rmtree(folder / runs[len(found)].label, ignore_errors=True)
        if report:
            failed += attempt(lambda: write_report(found, folder / "report.html", folder / "plots"), folder)
        _write_coverage(folder)
    click.echo(f"{len(found)} run{'s' if len(found) > 1 else ''}: {target / 'report.html' if report else target}")
    if early is not None:
        tell_kept(len(found), len(runs), target)
        raise early
    if failed:
        raise CheckError("; ".join(failed))


def _write_coverage(folder: Path) -> None:
    """Of all runs that counted what their packets reached, in one page."""
    files = sorted(folder.rglob(COVERAGE_FILE))
    if not files:
        return
    total = Coverage()
    for file in files:
        total.merge(Coverage.load(file))
    write_coverage(total, folder / "coverage")
    Console().print(table(total))


def tell_doubts(runs: Sequence[Run]) -> None:
    """Warns of what is possible, but hardly meant."""
    for line in dict.fromkeys(line for run in runs for line in doubts({"topology": run.scenario.topology})):
        click.echo(f"warning: {line}", err=True)


def _one(
    run: Run,
    make: MakeWorld,
    how: How,
    folder: Path,
    progress: RunProgress,
    strict: bool,
    known: Sequence[results.Result],
) -> list[str]:
    """One run, in a folder of its own: made, or taken from those that are known. Returns the checks that failed."""
    progress.begin(run.label)
    target = folder / run.label
    made_of = inputs(run)
    earlier = results.one_that_serves(known, made_of, how)
    if earlier is not None:
        shutil.copytree(earlier.folder, target)
        progress.end(f"taken from {earlier.folder}")
        return _failed(run, earlier.summary, strict)
    world = make(run)
    recording = world.run(progress.update)
    summary = results.write(target, results.files(run, recording, how, made_of)).summary
    world.write_more(target)
    fidelity = recording.fidelity
    cost = f"{recording.set_up_s + recording.cpu_s:.1f} s of CPU"
    if fidelity is not None:
        cost = f"{fidelity['run_s']:.1f} s of wall clock at 1:{fidelity['dilation']}"
        if fidelity["given_up"]:
            cost += f" (too fast for this machine: {', '.join(f'1:{factor}' for factor in fidelity['given_up'])})"
        cost += f", {fidelity['set_up_s']:.1f} s of set-up"
    progress.end(f"{delivered(summary)} in {recording.end_ns / 1e3:,.0f} µs of model time, {cost}")
    return _failed(run, summary, strict)


def _failed(run: Run, summary: Mapping[str, Any], strict: bool) -> list[str]:
    """The checks that failed, and with `strict` what else is wrong; without, that is a warning."""
    failed = [f"{check['name']}: {check['detail']}" for check in summary["checks"] if not check["holds"]]
    warnings = {}  # what they say, and what may help
    if told := unfinished(summary):
        warnings[told] = ""
    fidelity = summary.get("fidelity")
    if fidelity is not None and not fidelity["trusted"]:
        text = f"its times cannot be trusted: {'; '.join(fidelity['caveats'] + fidelity['reasons'])}"
        warnings[text] = "; a larger --dilation may help" if fidelity["reasons"] else ""
    if strict:
        failed += warnings
    else:
        for text, help_ in warnings.items():
            click.echo(f"warning: {run.label}: {text}{help_}", err=True)
    return [f"{run.label}: {text}" for text in failed]
