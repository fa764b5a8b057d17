"""`p4cc sweep`: runs a scenario over the values of some of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import CheckError

if TYPE_CHECKING:
    from harness.measure.results import Result


@click.command()
@click.argument("sweep_file", metavar="SWEEP")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SWEEP.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Local processes. Default: one a core.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler of a cluster, instead of local processes.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key, for example seeds=[1,2].")
def command(
    sweep_file: str, out: Path | None, jobs: int | None, scheduler: str | None, settings: tuple[str, ...]
) -> None:
    """Run a scenario over values of its keys.

    SWEEP is a name from `p4cc list sweeps`, or a .toml file; every combination of the values that it lists is run. Each
    run gets a folder as `p4cc run` writes it; runs.csv, fct.csv, sweep.html and plots are about all of them.
    """
    from harness.worlds.native_hosts import tell_interpreted, use_native_hosts

    use_native_hosts()

    from harness.commands.run import unused
    from harness.measure import results
    from harness.measure.output_folder import new_folder
    from harness.plan import sweep
    from harness.plan.scenario import override
    from harness.report.sweep_page import Entry, write_sweep

    found, folder = sweep.load(sweep_file)
    points = sweep.points(found, folder, override({}, settings))
    tell_interpreted(*([point.tables[key][0] for point in points] for key in ("cc", "lb")))
    target = out or unused(Path("runs") / Path(sweep_file).stem)
    entries: dict[int, Entry] = {}
    with new_folder(target) as made:
        for i, files in sweep.carry_out_all(points, jobs=jobs, scheduler=scheduler):
            point = points[i]
            result = results.write(made / f"{i:03d}-{point.label}", files)
            entries[i] = Entry(point.values, point.variant, result)
            click.echo(f"[{len(entries)}/{len(points)}] {point.title}: {_ending(result)}", err=True)
        in_order = [entries[i] for i in sorted(entries)]
        write_sweep(made, found.title or found.scenario, list(points[0].values), in_order)
    click.echo(f"{len(points)} runs: {target / 'sweep.html'}")
    failed = [
        f"{entry.result.folder.name}: {check['name']}: {check['detail']}"
        for entry in in_order
        for check in entry.result.summary["checks"]
        if not check["holds"]
    ]
    if failed:
        raise CheckError("; ".join(failed))


def _ending(result: Result) -> str:
    summary, cost = result.summary, result.performance
    return (
        f"{summary['flows_delivered']}/{summary['flows']} flows in {summary['end_ns'] / 1e3:,.0f} µs of model time, "
        f"{cost['set_up_cpu_s'] + cost['run_cpu_s']:.1f} s of CPU"
    )
