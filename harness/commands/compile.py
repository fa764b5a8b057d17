"""`p4cc compile`: P4-16 to BMv2 JSON and P4Info."""

from __future__ import annotations

from pathlib import Path

import click

from p4switch.compiler import compile_program
from p4switch.errors import UserError


def definition(text: str) -> tuple[str, str]:
    """The name and the text of a macro. Raises click.BadParameter."""
    name, _, value = text.partition("=")
    if not name.isidentifier():
        raise click.BadParameter(f"{text!r}: expected NAME or NAME=VALUE")
    return name, value or "1"


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.p4")
@click.option("-I", "include", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Include path.")
@click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="Preprocessor macro.")
@click.option(
    "-o", "out", required=True, type=click.Path(path_type=Path), metavar="FILE.json", help="BMv2 JSON to write."
)
@click.option(
    "--p4info", type=click.Path(path_type=Path), metavar="FILE", help="P4Info: text, or binary if it ends in .bin."
)
def command(file: Path, include: tuple[Path, ...], define: tuple[str, ...], out: Path, p4info: Path | None) -> None:
    """Compile a v1model program. Errors read file:line:col: error: text."""
    if p4info == out:
        raise UserError(f"--p4info {p4info}: expected another file than that of -o")
    compiled = compile_program(file, include, dict(map(definition, define)))
    for warning in compiled.warnings:
        click.echo(warning, err=True)
    compiled.write(out, p4info)
