"""Options that say where several runs are made: in processes of this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from p4cc.execution.pool import Cluster
from p4switch.errors import UserError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_TLS = {
    "--tls-ca": "Who signs the cluster's keys.",
    "--tls-cert": "Certificate to show the cluster.",
    "--tls-key": "Its key.",
}


resume_option = click.option(
    "--resume",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Continue an interrupted command: make the runs that are missing in its folder.",
)


def where_options(usual: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options for `where`: `jobs`, `scheduler` and those of TLS.

    `usual` is the default number of local processes.
    """

    def add(command: _Command) -> _Command:
        file = click.Path(path_type=Path)
        for option, text in reversed(_TLS.items()):
            command = click.option(option, type=file, metavar="FILE", help=text)(command)
        help_text = "Of a Dask cluster, instead of local processes."
        command = click.option("--scheduler", metavar="tls://HOST:PORT", help=help_text)(command)
        jobs = f"Local processes, for a run each. Default: {usual}."
        return click.option("--jobs", type=click.IntRange(1), metavar="N", help=jobs)(command)

    return add


def where(
    jobs: int | None, scheduler: str | None, tls_ca: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> Cluster | int | None:
    """Return where runs are executed.

    Raises UserError for options that conflict.
    """
    if scheduler is not None:
        if jobs is not None:
            raise UserError("--jobs: a cluster has workers of its own; expected it without --scheduler")
        cluster = Cluster(scheduler, tls_ca, tls_cert, tls_key)
        cluster.security()
        return cluster
    for option, file in zip(_TLS, (tls_ca, tls_cert, tls_key), strict=True):
        if file is not None:
            raise UserError(f"{option}: expected --scheduler with it")
    return jobs
