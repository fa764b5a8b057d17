"""`p4cc sweep`: runs a scenario over the values of some of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from harness.worlds.native_hosts import use_native_hosts
from harness.worlds.workers import Cluster
from p4switch.errors import UserError


@click.command()
@click.argument("sweep_file", metavar="SWEEP")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SWEEP.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Local processes. Default: one a core.")
@click.option("--scheduler", metavar="tls://HOST:PORT", help="Of a Dask cluster, instead of local processes.")
@click.option("--tls-ca", type=click.Path(path_type=Path), metavar="FILE", help="Who signs the cluster's keys.")
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate to show the cluster.")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key.")
@click.option(
    "--reuse",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Take runs of the same inputs from there; also: go on after Ctrl-C.",
)
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
    reuse: tuple[Path, ...],
    strict: bool,
    settings: tuple[str, ...],
) -> None:
    """Run a scenario over values of its keys.

    SWEEP is a name from `p4cc list sweeps`, or a .toml file; every combination of the values that it lists is run. Each
    run gets a folder as `p4cc run` writes it; runs.csv, fct.csv, sweep.html and plots are about all of them.
    """
    where = _where(jobs, scheduler, {"--tls-ca": tls_ca, "--tls-cert": tls_cert, "--tls-key": tls_key})
    use_native_hosts()

    from harness.commands import _sweep

    _sweep.carry_out(sweep_file, settings, where, out, strict, reuse)


def _where(jobs: int | None, scheduler: str | None, tls: Mapping[str, Path | None]) -> Cluster | int | None:
    """Raises UserError for options that do not go together."""
    if scheduler is not None:
        if jobs is not None:
            raise UserError("--jobs: a cluster has workers of its own; expected it without --scheduler")
        cluster = Cluster(scheduler, *tls.values())
        cluster.security()
        return cluster
    for option in (option for option, file in tls.items() if file is not None):
        raise UserError(f"{option}: expected --scheduler with it")
    return jobs
