"""What `p4cc sweep` does; hosts are in place, compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.commands._attempt import REPORTS, attempt, tell_kept, where_to
from harness.commands._doubts import tell_doubts
from harness.commands._progress import RunProgress
from harness.commands._several import Made, complete, known
from harness.errors import CheckError
from harness.measure.inputs import How
from harness.measure.output_folder import for_user, new_folder
from harness.measure.results import Result
from harness.measure.summary import left_behind, unfinished
from harness.plan import sweep
from harness.plan.scenario import override
from harness.report.sweep_page import Entry, write_sweep
from harness.worlds.carrying import at_once
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.workers import Cluster


def carry_out(
    sweep_file: str,
    settings: Sequence[str],
    where: Cluster | int | None,
    out: Path | None,
    strict: bool,
    reuse: Sequence[Path] = (),
    resume: Path | None = None,
) -> None:
    """Every run, and the page. Raises UserError, and CheckError if a check failed.

    Runs that are in `reuse` already, of the same inputs, are copied from there; `resume` names a folder that has some
    of them, and that gets the others. Whatever ends it early, Ctrl-C or the death of who carries a run out, those runs
    are kept that were done; it is raised again.
    """
    found, folder = sweep.load(sweep_file)
    points = sweep.points(found, folder, override({}, settings))
    tell_doubts(point.portable.tables["topology"] for point in points)
    tell_interpreted(*zip(*(point.portable.names for point in points), strict=True))
    target = where_to(out, Path("runs") / Path(sweep_file).stem, resume)
    names = [sweep.folder_name(i, point) for i, point in enumerate(points)]
    taken = known((point.run() for point in points), names, reuse, resume, How())
    scratch = new_folder(target, instead=resume is not None, without=REPORTS)
    shown = RunProgress(len(points), one_by_one=False)
    with scratch as made, shown as progress:
        folders = [made / name for name in names]

        def make(numbers: Sequence[int]) -> Made:
            for i, result in at_once([(points[n].portable, folders[n]) for n in numbers], How(), where):
                yield numbers[i], result

        def tell(number: int, _: Result, ending: str) -> None:
            progress.end(points[number].title, ending)

        kept, early = complete(folders, taken, make, tell)
        entries = [Entry(points[i].values, points[i].variant, result) for i, result in kept.items()]
        title, values = found.title or found.scenario, list(points[0].values)
        failed = attempt(lambda: write_sweep(made, title, values, entries, found.claims), made)
    click.echo(f"{len(entries)} runs: {target / 'sweep.html'}")
    if early is not None:
        tell_kept(len(entries), len(points), target)
        raise for_user(target, early)
    failed += [
        f"{entry.result.folder.name}: {check['name']}: {check['detail']}"
        for entry in entries
        for check in entry.result.summary["checks"]
        if not check["holds"]
    ]
    told = ((entry.result, what(entry.result.summary)) for entry in entries for what in (unfinished, left_behind))
    warnings = [f"{result.folder.name}: {text}" for result, text in told if text]
    if strict:
        failed += warnings
    elif warnings:
        more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
        click.echo(f"warning: {warnings[0]}{more}", err=True)
    if failed:
        raise CheckError("; ".join(failed))
