"""`p4cc report`: compares runs that were made before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from harness.measure.results import Result


@click.command()
@click.argument("run_dirs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_DIR...")
@click.option("--out", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True)
def command(run_dirs: tuple[Path, ...], out: Path) -> None:
    """Compare runs that were made before.

    Writes one HTML page. A RUN_DIR is a folder written by `p4cc run`, or a single run inside one.
    """
    from harness.measure.results import load_all
    from harness.report import write_report
    from p4switch.errors import UserError
    from p4switch.output_file import check_writable

    check_writable(out, "--out")
    results = [result for folder in run_dirs for result in load_all(folder)]
    for line in dict.fromkeys(line for result in results for line in result.load_extensions()):
        click.echo(f"warning: {line}", err=True)
    try:
        write_report(results, out)
    except UserError:
        raise
    except Exception:
        _name_the_damaged(results)
        raise
    click.echo(f"{len(results)} runs: {out}")


def _name_the_damaged(results: Sequence[Result]) -> None:
    """Raises UserError for the first that cannot be reported even alone: its files are not as a run wrote them."""
    from harness.report import write_report
    from p4switch.errors import UserError

    for result in results:
        try:
            write_report([result], Path(os.devnull))
        except Exception as error:
            reason = next(iter(str(error).splitlines()), "")
            raise UserError(
                f"{str(result.folder)!r}: damaged results: {type(error).__name__}: {reason}; expected a folder as p4cc "
                "writes it"
            ) from None
