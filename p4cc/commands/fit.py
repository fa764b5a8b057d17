"""Command `p4cc fit`: whether a P4 program fits a chip."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from p4switch.errors import UserError
from p4switch.output_file import check_writable, write_files
from p4switch.sources import arch_option, define_option, include_option

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("programs", nargs=-1, required=True, type=_FILE, metavar="FILE.p4...")
@include_option
@define_option
@arch_option
@click.option(
    "--target", "names", multiple=True, metavar="NAME", help="A target, or its .toml file; repeatable. Default: all."
)
@click.option("--svg", type=_FILE, metavar="FILE", help="Draw the dependency graph (one program, one target).")
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@click.option("--docs", "page", type=_FILE, metavar="FILE", help="Bring the table of a Markdown page up to date.")
def command(
    programs: tuple[Path, ...],
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
    names: tuple[str, ...],
    svg: Path | None,
    as_json: bool,
    page: Path | None,
) -> None:
    """Place programs into the stages of chips, and name the resources that a chip lacks.

    Exit status 1 if a program does not fit one of the targets. docs/fit.md lists the limits of the
    model.
    """
    from p4switch.fit import built_in, load, measure, report

    if svg is not None and (len(programs), len(names)) != (1, 1):
        raise UserError("--svg: expected one program and one --target")
    for option, path in (("--svg", svg), ("--docs", page)):
        if path is not None:
            check_writable(path, option)
    targets = [load(name) for name in names or built_in()]
    rows = [[measured.fit(t) for t in targets] for measured in (measure(p, include, define, arch) for p in programs)]
    files: dict[Path, bytes] = {}
    if svg is not None:
        files[svg] = report.svg(rows[0][0])
    if page is not None:
        try:
            text = page.read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot read {str(page)!r}: {error.strerror}") from None
        files[page] = report.updated(text, report.table(rows, [p.stem for p in programs])).encode()
    write_files(files)
    if as_json:
        click.echo(json.dumps([report.as_json(fit) for row in rows for fit in row], indent=1))
    elif page is None:
        for row in rows:
            for fit in row:
                click.echo("\n".join(report.lines(fit)))
    if page is None and not all(fit.fits for row in rows for fit in row):
        sys.exit(1)
