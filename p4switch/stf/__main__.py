"""Command `python -m p4switch.stf PATH...`."""

from __future__ import annotations

import sys

import click

from p4switch.errors import UserError
from p4switch.stf.many import TIME_LIMIT_S, Options, run_folder


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("-j", "--jobs", default=1, show_default=True, help="Tests at a time.")
@click.option("--switch", type=click.Choice(["builtin", "bmv2"]), default="builtin", show_default=True)
@click.option("--time-limit", default=TIME_LIMIT_S, show_default=True, help="Seconds a test may take.")
def main(paths: tuple[str, ...], jobs: int, switch: str, time_limit: float) -> None:
    """Run packet tests: .stf files, each next to its .p4 file, or folders of them."""
    try:
        passed = run_folder(paths, jobs, time_limit, Options(switch))
    except UserError as error:
        click.echo(error, err=True)
        sys.exit(2)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
