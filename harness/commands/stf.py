"""`p4cc stf`: packet tests in the format of p4c's corpus."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--switch", type=click.Choice(["builtin", "bmv2"]), default="builtin", show_default=True)
@click.option(
    "-j",
    "jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    help="Tests at a time.",
)
def command(paths: tuple[Path, ...], switch: str, jobs: int) -> None:
    """Run packet tests in p4c's STF format.

    A PATH is a .stf file, with its .p4 beside it, or a folder of them. The last line says: N passed, M failed.
    """
    from p4switch.stf import run_folder

    sys.exit(0 if run_folder(paths, jobs, switch=switch) else 1)
