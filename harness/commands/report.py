"""`p4cc report`: compares runs that were made before."""

from __future__ import annotations

from pathlib import Path

import click

from p4switch.errors import UserError
from p4switch.output_file import check_writable


@click.command()
@click.argument("run_dirs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_DIR...")
@click.option("--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True)
def command(run_dirs: tuple[Path, ...], out: Path) -> None:
    """Compare runs that were made before.

    Writes one HTML page. A RUN_DIR is a folder written by `p4cc run`, or a single run inside one.
    """
    check_writable(out, "--out")

    from harness.report import load_all, name_the_damaged, write_report

    results = [result for folder in run_dirs for result in load_all(folder)]
    try:
        for line in dict.fromkeys(line for result in results for line in result.load_extensions()):
            click.echo(f"warning: {line}", err=True)
        write_report(results, out)
    except UserError:
        raise
    except Exception:
        name_the_damaged(results)
        raise
    click.echo(f"{len(results)} runs: {out}")
