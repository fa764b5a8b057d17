"""`p4cc compile`: P4-16 to BMv2 JSON and P4Info."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from p4switch.compiler import compile_program
from p4switch.compiler.warnings import NAMES
from p4switch.errors import UserError, suggest
from p4switch.sources import arch_option, define_option, include_option, pipeline_option


def _list_passes(context: click.Context, _: click.Parameter, value: bool) -> None:
    """Print a line for each pass, and end the command."""
    if value and not context.resilient_parsing:
        from p4switch.compiler import frontend, passes

        lines = [*frontend.listed(), *passes.listed()]
        width = max(len(name) for name, _ in lines)
        for name, text in lines:
            click.echo(f"{name:{width}}  {text}")
        context.exit()


def _inspected(
    file: Path, include: tuple[Path, ...], define: dict[str, str], arch: str | None, dump: str | None, check: bool
) -> str:
    """Return the text of the program after pass `dump`; nothing if `dump` is None.

    Raises UserError for an unknown pass.
    """
    from p4switch.compiler import passes
    from p4switch.compiler.frontend import parse_and_check

    names = [name for name, _ in passes.listed()]
    if dump and dump not in names:
        raise UserError(f"--dump-ir={dump}: {suggest(dump, names)}")
    text = passes.inspect(parse_and_check(file, include, define, arch), dump or names[-1], check)
    return "" if dump is None else text


@click.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.p4")
@include_option
@define_option
@arch_option
@click.option("-o", "out", type=click.Path(path_type=Path), metavar="FILE.json", help="BMv2 JSON to write.")
@click.option(
    "--p4info", type=click.Path(path_type=Path), metavar="FILE", help="P4Info: text, or binary if it ends in .bin."
)
@click.option("--bf-rt", type=click.Path(path_type=Path), metavar="FILE", help="bf-rt.json of a TNA or T2NA program.")
@pipeline_option
@click.option("--Wdisable", "disabled", multiple=True, metavar="NAME", help="Silence a kind of warnings, or all.")
@click.option("--Werror", "errors", multiple=True, metavar="NAME", help="Make a kind of warnings errors, or all.")
@click.option(
    "--dump-ir",
    "dump",
    is_flag=False,
    flag_value="",
    metavar="[=PASS]",
    help="Print the intermediate representation after PASS, or after the last pass; -o may be left out.",
)
@click.option("--check-ir", "check", is_flag=True, help="Check the intermediate representation after each pass.")
@click.option(
    "--list-passes", is_flag=True, is_eager=True, expose_value=False, callback=_list_passes, help="List the passes."
)
def command(
    file: Path,
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
    out: Path | None,
    p4info: Path | None,
    bf_rt: Path | None,
    pipeline: int | None,
    disabled: tuple[str, ...],
    errors: tuple[str, ...],
    dump: str | None,
    check: bool,
) -> None:
    """Compile a P4 program. Errors have the form file:line:col: error: text.

    With `-o -` the JSON goes to standard output.
    """
    if dump is not None or check:
        text = _inspected(file, include, define, arch, dump, check)
        click.echo(text, nl=False)
        if out is None:
            return
    if out is None:
        raise click.UsageError("Missing option '-o'.")
    taken = {out.resolve(): "-o"}
    for option, path in (("--p4info", p4info), ("--bf-rt", bf_rt)):
        if path is not None:
            other = taken.setdefault(path.resolve(), option)
            # A device such as /dev/null cannot be replaced by a file.
            if other != option and (path.is_file() or not path.exists()):
                raise UserError(f"{option} {path}: expected another file than that of {other}")
    for option, names in (("--Wdisable", disabled), ("--Werror", errors)):
        for name in names:
            if name not in ("all", *NAMES):
                raise UserError(f"{option} {name}: {suggest(name, ['all', *NAMES])}")
    compiled = compile_program(file, include, define, arch, pipeline)
    refused = False
    for name, warning in compiled.named_warnings:
        if not {"all", name} & {*disabled}:
            is_error = bool({"all", name} & {*errors})
            refused |= is_error
            click.echo(warning.replace(": warning: ", ": error: ", 1) if is_error else warning, err=True)
    if refused:
        sys.exit(2)
    if str(out) == "-":
        compiled.write(None, p4info, bf_rt)
        click.echo(compiled.json_bytes, nl=False)
    else:
        compiled.write(out, p4info, bf_rt)
