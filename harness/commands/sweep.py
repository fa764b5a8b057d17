"""`p4cc sweep`: runs a scenario over the values of some of its keys."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.errors import CheckError
from p4switch.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.measure.results import Result
    from harness.worlds.workers import Cluster


@click.command()
@click.argument("sweep_file", metavar="SWEEP")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SWEEP.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Local processes. Default: one a core.")
@click.option("--scheduler", metavar="tls://HOST:PORT", help="Of a Dask cluster, instead of local processes.")
@click.option("--tls-ca", type=click.Path(path_type=Path), metavar="FILE", help="Who signs the cluster's keys.")
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate to show the cluster.")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key.")
@click.option("--strict", is_flag=True, help="Fail where flows are not done at the end.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key, for example seeds=[1,2].")
def command(
    sweep_file: str,
    out: Path | None,
    jobs: int | None,
    scheduler: str | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    strict: bool,
    settings: tuple[str, ...],
) -> None:
    """Run a scenario over values of its keys.

    SWEEP is a name from `p4cc list sweeps`, or a .toml file; every combination of the values that it lists is run. Each
    run gets a folder as `p4cc run` writes it; runs.csv, fct.csv, sweep.html and plots are about all of them.
    """
    from harness.worlds import workers
    from harness.worlds.native_hosts import tell_interpreted, use_native_hosts

    where = _where(jobs, scheduler, {"--tls-ca": tls_ca, "--tls-cert": tls_cert, "--tls-key": tls_key})
    use_native_hosts()

    from harness.commands._attempt import attempt
    from harness.measure import results
    from harness.measure.output_folder import new_folder, unused
    from harness.measure.summary import unfinished
    from harness.plan import sweep
    from harness.plan.scenario import override
    from harness.report.sweep_page import Entry, write_sweep

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


def _where(jobs: int | None, scheduler: str | None, tls: Mapping[str, Path | None]) -> Cluster | int | None:
    """Raises UserError for options that do not go together."""
    from harness.worlds.workers import Cluster

    if scheduler is not None:
        if jobs is not None:
            raise UserError("--jobs: a cluster has workers of its own; expected it without --scheduler")
        cluster = Cluster(scheduler, *tls.values())
        cluster.security()
        return cluster
    for option in (option for option, file in tls.items() if file is not None):
        raise UserError(f"{option}: expected --scheduler with it")
    return jobs


def _ending(result: Result) -> str:
    summary, cost = result.summary, result.performance
    return (
        f"{summary['flows_delivered']}/{summary['flows']} flows in {summary['end_ns'] / 1e3:,.0f} µs of model time, "
        f"{cost['set_up_cpu_s'] + cost['run_cpu_s']:.1f} s of CPU"
    )
