"""What `p4cc sweep` does; hosts are in place, compiled or not."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from harness.commands._attempt import attempt, tell_kept
from harness.errors import CheckError, DeadWorkerError
from harness.measure import results
from harness.measure.inputs import How, inputs
from harness.measure.output_folder import new_folder, unused
from harness.measure.results import Result
from harness.measure.summary import delivered, unfinished
from harness.plan import sweep
from harness.plan.scenario import override
from harness.plan.sweep import Point
from harness.report.sweep_page import Entry, write_sweep
from harness.worlds import workers
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.workers import Cluster


def carry_out(
    sweep_file: str,
    settings: Sequence[str],
    where: Cluster | int | None,
    out: Path | None,
    strict: bool,
    reuse: Sequence[Path] = (),
) -> None:
    """Every run, and the page. Raises UserError, and CheckError if a check failed.

    Runs that are in `reuse` already, of the same inputs, are copied from there. After Ctrl-C, or the death of
    who carries a run out, those runs are kept that were done; KeyboardInterrupt or DeadWorkerError is raised again.
    """
    found, folder = sweep.load(sweep_file)
    points = sweep.points(found, folder, override({}, settings))
    tell_interpreted(*([point.tables[key][0] for point in points] for key in ("cc", "lb")))
    known = _known(points, [result for earlier in reuse for result in results.load_all(earlier)])
    target = out or unused(Path("runs") / Path(sweep_file).stem)
    entries: dict[int, Entry] = {}
    left = [i for i in range(len(points)) if i not in known]
    early: KeyboardInterrupt | DeadWorkerError | None = None
    with new_folder(target) as made:

        def add(i: int, result: Result, ending: str) -> None:
            entries[i] = Entry(points[i].values, points[i].variant, result)
            click.echo(f"[{len(entries)}/{len(points)}] {points[i].title}: {ending}", err=True)

        try:
            for i, earlier in known.items():
                add(
                    i,
                    results.load(shutil.copytree(earlier.folder, _place(made, points, i))),
                    f"taken from {earlier.folder}",
                )
            with closing(workers.carry_out(sweep.carry_out, [points[i] for i in left], where)) as done:
                for number, files in done:
                    result = results.write(_place(made, points, left[number]), files)
                    add(left[number], result, _ending(result))
        except (KeyboardInterrupt, DeadWorkerError) as error:
            if not entries:
                raise
            early = error
            for i in set(range(len(points))) - set(entries):
                shutil.rmtree(_place(made, points, i), ignore_errors=True)
        in_order = [entries[i] for i in sorted(entries)]
        title, values = found.title or found.scenario, list(points[0].values)
        failed = attempt(lambda: write_sweep(made, title, values, in_order), made)
    click.echo(f"{len(entries)} runs: {target / 'sweep.html'}")
    if early is not None:
        tell_kept(len(entries), len(points), target)
        raise early
    failed += [
        f"{entry.result.folder.name}: {check['name']}: {check['detail']}"
        for entry in in_order
        for check in entry.result.summary["checks"]
        if not check["holds"]
    ]
    told = ((entry.result.folder.name, unfinished(entry.result.summary)) for entry in in_order)
    warnings = [f"{name}: {text}" for name, text in told if text]
    if strict:
        failed += warnings
    elif warnings:
        more = f" (and {len(warnings) - 1} other runs)" if len(warnings) > 1 else ""
        click.echo(f"warning: {warnings[0]}{more}", err=True)
    if failed:
        raise CheckError("; ".join(failed))


def _place(made: Path, points: Sequence[Point], i: int) -> Path:
    """The folder of a run."""
    return made / sweep.folder_name(i, points[i])


def _known(points: Sequence[Point], kept: Sequence[Result]) -> dict[int, Result]:
    """By number of the run: what is kept of the same inputs."""
    if not kept:
        return {}
    found = {}
    for i, point in enumerate(points):
        earlier = results.one_that_serves(kept, inputs(point.run()), How())
        if earlier is not None:
            found[i] = earlier
    return found


def _ending(result: Result) -> str:
    summary, cost = result.summary, result.performance
    return (
        f"{delivered(summary)} in {summary['end_ns'] / 1e3:,.0f} µs of model time, "
        f"{cost['set_up_cpu_s'] + cost['run_cpu_s']:.1f} s of CPU"
    )
