"""Execution of a request: runs are planned, reused or made, written and reported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import psutil
from rich.console import Console

from harness.errors import CheckError
from harness.measure.output_folder import for_user, new_folder
from harness.measure.recording import Progress
from harness.measure.results import Result
from harness.plan.how import How
from harness.plan.inputs import program_files
from harness.plan.run import Run
from harness.worlds.parallel import workers_of
from harness.worlds.ranks import Ranks
from harness.worlds.virtual import COVERAGE_FILE
from p4cc.execution.batch import Batch, batch_of
from p4cc.execution.doubts import tell_doubts
from p4cc.execution.folder import REPORTS, attempt, tell_kept, where_to
from p4cc.execution.interpreted import tell_interpreted
from p4cc.execution.make_world import MakeWorld, follow, maker
from p4cc.execution.planned_run import PlannedRun
from p4cc.execution.progress import RunProgress
from p4cc.execution.request import RunRequest
from p4cc.execution.runners import at_once, one_by_one
from p4cc.execution.several import Made, complete, known
from p4switch.coverage import Coverage, table
from p4switch.coverage import write as write_coverage
from p4switch.errors import UserError
from p4switch.printable import tell
from reports.replay.live import Watch

_MOST_WARNINGS = 20  # these are printed on lines of their own


def execute(request: RunRequest, ranks: Ranks | None = None, make: MakeWorld | None = None) -> None:
    """Make every run of a request, and the report if one is requested.

    If Ctrl-C or the death of a worker ends it early, the completed runs are kept, and the exception
    is raised again.

    Parameters
    ----------
    request
        The request.
    ranks
        The processes that share each run; all but the first one only follow it.
    make
        Function that makes the runs' worlds; it overrides the request's `how`.

    Raises
    ------
    UserError
        For runs that are not possible; before anything starts, if that is known by then.
    CheckError
        If a check of a run does not hold, or with `strict` something else is wrong.
    """
    if ranks is not None and not ranks.first:
        follow(ranks, request)
        return
    if request.report:
        # Checked before the runs, because a package that it needs may be missing.
        from p4cc.execution import reports
    batch = batch_of(request.selection)
    tell_doubts(batch, request.how.trace)
    tell_interpreted(*zip(*(run.portable.names for run in batch.runs), strict=True))
    target = where_to(request.out, Path("runs") / batch.name, request.resume)
    taken = known(batch.runs, request.reuse, request.resume, request.how)
    programs = _covered_programs(batch.runs, taken, request.how)
    scratch = new_folder(target, instead=request.resume is not None, without=REPORTS)
    with scratch as folder:
        if make is None:
            with _watching(request.watch) as watcher:
                make_runs = maker(request.how, _workers(request, ranks), watcher, request.prompt)
                kept, early = _completed(request, batch, taken, folder, make_runs)
        else:
            kept, early = _completed(request, batch, taken, folder, make)
        failed, doubts = _judged(list(kept.values()), request)
        no_report = attempt(lambda: reports.write_page(batch, kept, folder), folder) if request.report else []
        has_page = request.report and not no_report
        no_report += attempt(lambda: _write_coverage(kept, programs, folder), folder)
        if request.report and not no_report and batch.sweep is None:  # the page contains the same sentences
            reports.tell_findings(kept)  # tables are read on demand, so the results have to be in this folder here
    page = target / reports.page_of(batch) if has_page else target
    command_s = time.time() - psutil.Process().create_time()
    click.echo(f"{len(kept)} run{'s' if len(kept) > 1 else ''} in {command_s:,.1f} s: {page}")
    _tell_first(doubts)
    if early is not None:
        tell_kept(len(kept), len(batch.runs), target)
        raise for_user(target, early)
    if failed + no_report:
        raise CheckError("; ".join(failed + no_report))


def _completed(
    request: RunRequest, batch: Batch, taken: Mapping[int, Result], folder: Path, make: MakeWorld
) -> tuple[dict[int, Result], BaseException | None]:
    """Return the results of `complete`, and show progress meanwhile."""
    runs, how, where = batch.runs, request.how, request.where
    folders = [folder / run.folder_name for run in runs]
    bar = request.prompt is None  # the progress bar would overwrite the prompt
    with RunProgress(len(runs), one_by_one=where is None, bar=bar) as progress:

        def begin(number: int) -> Progress:
            progress.begin(runs[number].title)
            return progress.update

        def made(numbers: Sequence[int]) -> Made:
            if where is None:
                own = ((runs[n].run(), folders[n], partial(begin, n)) for n in numbers)
                results = one_by_one(own, make, how, progress.writing, progress.building)
                yield from zip(numbers, results, strict=True)
                return
            for i, result in at_once([(runs[n].portable, folders[n]) for n in numbers], how, where):
                yield numbers[i], result

        return complete(folders, taken, made, lambda number, ending: progress.end(runs[number].title, ending))


def _workers(request: RunRequest, ranks: Ranks | None) -> Callable[[Run], int | Ranks]:
    """Return the workers or ranks that share a run.

    Raises UserError for an invalid number of workers.
    """
    return workers_of(request.workers, request.how.trace is not None) if ranks is None else lambda run: ranks


@contextmanager
def _watching(wanted: bool) -> Iterator[Watch | None]:
    """Serve the page of the runs during the block, and print its address."""
    if not wanted:
        yield None
        return
    with Watch() as watcher:
        click.echo(f"watch it: {watcher.url}", err=True)
        yield watcher


def _covered_programs(
    runs: Sequence[PlannedRun], taken: Mapping[int, Result], how: How
) -> dict[int, frozenset[str]]:
    """Return the files of the programs of each run that counts coverage, by number of the run.

    Raises UserError for a run that is not possible.
    """
    counted = {number for number, result in taken.items() if os.path.lexists(result.folder / COVERAGE_FILE)}
    return {number: program_files(run.run()) for number, run in enumerate(runs) if how.coverage or number in counted}


def _write_coverage(kept: Mapping[int, Result], programs: Mapping[int, frozenset[str]], folder: Path) -> None:
    """Write one page on the coverage of all runs that counted it, and warn of coverage that is left out.

    The page shows only files of the runs' own programs, because coverage in a reused folder could
    name any file.
    """
    total = Coverage()
    for number, result in kept.items():
        file = result.folder / COVERAGE_FILE
        if not os.path.lexists(file):
            continue
        try:
            total.merge(Coverage.load(file, programs[number]))
        except UserError as error:
            tell(f"warning: coverage left out: {error}", err=True)
    if not total.counts:
        return
    write_coverage(total, folder / "coverage")
    Console().print(table(total))


def _judged(kept: Sequence[Result], request: RunRequest) -> tuple[list[str], list[str]]:
    """Return what is wrong with the runs, and what is doubtful; a strict request takes doubts for mistakes.

    Warn of empty traces.
    """
    failed: list[str] = []
    doubts: list[str] = []
    for result in kept:
        if empty := result.note_on_empty_trace(request.how.trace):
            click.echo(f"warning: {result.folder.name}: {empty}", err=True)
        failed += [f"{result.folder.name}: {text}" for text in result.failed_checks]
        (failed if request.strict else doubts).extend(f"{result.folder.name}: {text}" for text in result.doubts)
    return failed, doubts


def _tell_first(doubts: Sequence[str]) -> None:
    for text in doubts[:_MOST_WARNINGS]:
        click.echo(f"warning: {text}", err=True)
    if len(doubts) > _MOST_WARNINGS:
        click.echo(f"warning: and {len(doubts) - _MOST_WARNINGS} more of this kind", err=True)
