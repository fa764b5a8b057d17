"""`p4cc compile`: P4-16 to BMv2 JSON and P4Info."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from p4switch.compiler import compile_program
from p4switch.compiler.warnings import NAMES
from p4switch.errors import UserError, suggest
from p4switch.sources import define_option, include_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.p4")
@include_option
@define_option
@click.option(
    "-o", "out", required=True, type=click.Path(path_type=Path), metavar="FILE.json", help="BMv2 JSON to write."
)
@click.option(
    "--p4info", type=click.Path(path_type=Path), metavar="FILE", help="P4Info: text, or binary if it ends in .bin."
)
@click.option("--Wdisable", "disabled", multiple=True, metavar="NAME", help="Silence a kind of warnings, or all.")
@click.option("--Werror", "errors", multiple=True, metavar="NAME", help="Make a kind of warnings errors, or all.")
def command(
    file: Path,
    include: tuple[Path, ...],
    define: dict[str, str],
    out: Path,
    p4info: Path | None,
    disabled: tuple[str, ...],
    errors: tuple[str, ...],
) -> None:
    """Compile a v1model program. Errors read file:line:col: error: text.

    With `-o -` the JSON goes to standard output.
    """
    both = p4info is not None and p4info.resolve() == out.resolve()
    if both and (out.is_file() or not out.exists()):  # what is written to a device is not written over
        raise UserError(f"--p4info {p4info}: expected another file than that of -o")
    for option, names in (("--Wdisable", disabled), ("--Werror", errors)):
        for name in names:
            if name not in ("all", *NAMES):
                raise UserError(f"{option} {name}: {suggest(name, ['all', *NAMES])}")
    compiled = compile_program(file, include, define)
    refused = False
    for name, warning in compiled.named_warnings:
        if not {"all", name} & {*disabled}:
            is_error = bool({"all", name} & {*errors})
            refused |= is_error
            click.echo(warning.replace(": warning: ", ": error: ", 1) if is_error else warning, err=True)
    if refused:
        sys.exit(2)
    if str(out) == "-":
        compiled.write(None, p4info)
        click.echo(compiled.json_bytes, nl=False)
    else:
        compiled.write(out, p4info)
