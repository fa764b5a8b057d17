"""What `p4cc sweep` does; hosts are in place, compiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from harness.commands._attempt import attempt
from harness.errors import CheckError
from harness.measure import results
from harness.measure.output_folder import new_folder, unused
from harness.measure.results import Result
from harness.measure.summary import delivered, unfinished
from harness.plan import sweep
from harness.plan.scenario import override
from harness.report.sweep_page import Entry, write_sweep
from harness.worlds import workers
from harness.worlds.interpreted import tell_interpreted
from harness.worlds.workers import Cluster


def carry_out(
    sweep_file: str, settings: Sequence[str], where: Cluster | int | None, out: Path | None, strict: bool
) -> None:
    """Every run, and the page. Raises UserError, and CheckError if a check failed."""
    found, folder = sweep.load(sweep_file)
    points = sweep.points(found, folder, override({}, settings))
    tell_interpreted(*([point.tables[key][0] for point in points] for key in ("cc", "lb")))
    target = out or unused(Path("runs") / Path(sweep_file).stem)
    entries: dict[int, Entry] = {}
    with new_folder(target) as made, closing(workers.carry_out(sweep.carry_out, points, where)) as done:
        for i, files in done:
            point = points[i]
            result = results.write(made / f"{i:03d}-{point.label}", files)
            entries[i] = Entry(point.values, point.variant, result)
            click.echo(f"[{len(entries)}/{len(points)}] {point.title}: {_ending(result)}", err=True)
        in_order = [entries[i] for i in sorted(entries)]
        title, values = found.title or found.scenario, list(points[0].values)
        failed = attempt(lambda: write_sweep(made, title, values, in_order), made)
    click.echo(f"{len(points)} runs: {target / 'sweep.html'}")
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


def _ending(result: Result) -> str:
    summary, cost = result.summary, result.performance
    return (
        f"{delivered(summary)} in {summary['end_ns'] / 1e3:,.0f} µs of model time, "
        f"{cost['set_up_cpu_s'] + cost['run_cpu_s']:.1f} s of CPU"
    )
