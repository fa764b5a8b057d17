"""`p4cc sweep`: run a scenario with several values of some of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.worlds.native_hosts import use_native_hosts
from p4cc.commands._debugging import debug_option
from p4cc.commands._where import resume_option, where, where_options
from p4cc.execution.request import RunRequest
from p4cc.execution.selection import SweepSelection
from p4switch import processes


@click.command()
@click.argument("sweep_file", metavar="SWEEP")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write; must not exist. Default: runs/SWEEP.")
@where_options("one a core")
@click.option("--dry-run", is_flag=True, help="Show the runs and their predicted cost, and run nothing.")
@click.option(
    "--reuse",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Take runs of the same inputs from this folder.",
)
@resume_option
@click.option("--strict", is_flag=True, help="Exit with status 1 if flows did not finish.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set a key, for example seeds=[1,2].")
@debug_option
def command(
    sweep_file: str,
    out: Path | None,
    dry_run: bool,
    reuse: tuple[Path, ...],
    resume: Path | None,
    strict: bool,
    settings: tuple[str, ...],
    **whose: Any,
) -> None:
    """Run a scenario with several values of its keys.

    SWEEP is a name from `p4cc list sweeps`, or a .toml file. Every combination of the values that
    it lists is run. Each run gets a folder like those of `p4cc run`. runs.csv, fct.csv, sweep.html
    and plots cover all runs.
    """
    chosen = where(**whose)
    request = RunRequest(
        SweepSelection(sweep_file, settings),
        where=processes.processors() if chosen is None else chosen,
        out=out,
        resume=resume,
        reuse=reuse,
        strict=strict,
    )
    if dry_run:
        from p4cc.execution.dry_run import describe

        describe(request)
        return
    use_native_hosts()

    from p4cc.execution.execute import execute

    execute(request)
