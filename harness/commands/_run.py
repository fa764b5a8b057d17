"""What `p4cc run` does; hosts are in place, compiled or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from harness.commands._attempt import REPORTS, attempt, tell_kept, where_to
from harness.commands._doubts import tell_doubts, tell_large_traces
from harness.commands._progress import RunProgress
from harness.commands._several import Made, complete, known
from harness.errors import CheckError
from harness.measure.inputs import How, program_files
from harness.measure.output_folder import for_user, new_folder
from harness.measure.recording import Progress
from harness.measure.results import Result
from harness.measure.summary import left_behind, not_kept_up, unfinished
from harness.measure.tracing import nothing_traced
from harness.plan.portable import PortableRun
from harness.plan.request import planned
from harness.plan.run import Run
from harness.worlds.carrying import at_once, one_by_one
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.makers import MakeWorld
from harness.worlds.parallel import workers_of
from harness.worlds.ranks import Ranks
from harness.worlds.virtual import COVERAGE_FILE
from harness.worlds.workers import Cluster
from p4switch.coverage import Coverage, table
from p4switch.coverage import write as write_coverage
from p4switch.errors import UserError
from p4switch.printable import tell as tell_line


def staff(workers: str | None, ranks: Ranks | None, traced: bool) -> Callable[[Run], int | Ranks]:
    """Who shares a run's work, by what --workers says. `traced`: one of its flows is. Raises UserError."""
    return workers_of(workers, traced) if ranks is None else lambda run: ranks


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
    where: Cluster | int | None = None,
    resume: Path | None = None,
    bar: bool = True,
) -> None:
    """Every run, and the report if wanted. Raises UserError, and CheckError if a check failed.

    `how` is what `make` makes. `bar`: progress is a bar on a terminal, or else lines. `where`: other processes make
    the runs, so many at a time, or a cluster. Runs that are in `reuse` already, of the same inputs and carried out as
    this says, are copied from there; `resume` names a folder that has some of them, and that gets the others.
    Whatever ends it early, Ctrl-C or the death of a worker, those runs are kept that were done; it is raised again.
    """
    if report:
        from harness.report import agreement_lines, write_report  # before the runs: what it needs may not be installed
    how = how or How()
    runs = planned(scenarios, settings, several)
    tell_doubts(run.scenario.topology for run in runs)
    tell_large_traces(runs, how.trace)
    tell_interpreted([run.protocol.name for run in runs], [run.load_balancing.name for run in runs])
    target = where_to(out, Path("runs") / "-".join(dict.fromkeys(run.name for run in runs)), resume)
    taken = known(runs, [run.label for run in runs], reuse, resume, how)
    failures: dict[int, list[str]] = {}
    scratch = new_folder(target, instead=resume is not None, without=REPORTS)
    shown = RunProgress(len(runs), one_by_one=where is None, bar=bar)
    with scratch as folder, shown as progress:
        folders = [folder / run.label for run in runs]

        def tell(number: int, result: Result, ending: str) -> None:
            progress.end(runs[number].label, ending)
            failures[number] = _failed(runs[number], result.summary, strict)
            if empty := nothing_traced(how.trace, result.folder, result.summary["end_ns"]):
                click.echo(f"warning: {runs[number].label}: {empty}", err=True)

        def begin(run: Run) -> Progress:
            progress.begin(run.label)
            return progress.update

        def made(numbers: Sequence[int]) -> Made:
            if where is None:
                own = ((runs[n], folders[n]) for n in numbers)
                made_here = one_by_one(own, make, how, begin, progress.writing, progress.building)
                yield from zip(numbers, made_here, strict=True)
                return
            for i, result in at_once([(PortableRun.of(runs[n]), folders[n]) for n in numbers], how, where):
                yield numbers[i], result

        found, early = complete(folders, taken, made, tell)
        failed = [text for number in found for text in failures.get(number, ())]
        if report:
            failed += attempt(
                lambda: write_report(list(found.values()), folder / "report.html", folder / "plots"), folder
            )
        failed += attempt(lambda: _write_coverage([(runs[number], found[number]) for number in found], folder), folder)
    if report:
        for line in agreement_lines(list(found.values())):
            click.echo(line, err=True)
    click.echo(f"{len(found)} run{'s' if len(found) > 1 else ''}: {target / 'report.html' if report else target}")
    if early is not None:
        tell_kept(len(found), len(runs), target)
        raise for_user(target, early)
    if failed:
        raise CheckError("; ".join(failed))


def _write_coverage(made: Sequence[tuple[Run, Result]], folder: Path) -> None:
    """Write one page of all runs that counted what their packets reached; tell of those that are left out.

    A run that was taken from a folder of others may name any file for the page to show.
    """
    total = Coverage()
    for run, result in made:
        file = result.folder / COVERAGE_FILE
        if not os.path.lexists(file):
            continue
        try:
            total.merge(Coverage.load(file, program_files(run)))
        except UserError as error:
            tell_line(f"warning: coverage left out: {error}", err=True)
    if not total.counts:
        return
    write_coverage(total, folder / "coverage")
    Console().print(table(total))


def _failed(run: Run, summary: Mapping[str, Any], strict: bool) -> list[str]:
    """The checks that failed, and with `strict` what else is wrong; without, that is a warning."""
    failed = [f"{check['name']}: {check['detail']}" for check in summary["checks"] if not check["holds"]]
    warnings = [told for told in (unfinished(summary), left_behind(summary), not_kept_up(summary)) if told]
    warnings += summary.get("fidelity", {}).get("caveats", [])
    if strict:
        failed += warnings
    else:
        for text in warnings:
            click.echo(f"warning: {run.label}: {text}", err=True)
    return [f"{run.label}: {text}" for text in failed]
