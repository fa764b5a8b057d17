"""`p4cc testgen`: packet tests generated from a P4 program."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from p4switch.errors import UserError
from p4switch.sources import arch_option, define_option, include_option, pipeline_option

_PATH = click.Path(path_type=Path)
_DEFAULT_S = 60.0


def _until(text: str) -> tuple[int | None, float]:
    """Return the number of tests, if any, and the time in seconds given by `--until`."""
    try:
        if text == "coverage":
            return None, _DEFAULT_S
        if text.endswith("s"):
            seconds = float(text[:-1])
            if 0 < seconds < float("inf"):
                return None, seconds
        elif int(text) > 0:
            return int(text), _DEFAULT_S
    except ValueError:
        pass
    raise UserError(f"--until {text!r}: expected 'coverage', a number of tests as in 20, or seconds as in 30s")


@click.command()
@click.argument("program", type=_PATH, metavar="FILE.p4")
@include_option
@define_option
@arch_option
@pipeline_option
@click.option("-o", "out", required=True, type=_PATH, metavar="FOLDER", help="Folder for the tests.")
@click.option(
    "--until",
    default="coverage",
    show_default=True,
    metavar="coverage|N|SECONDSs",
    help="All statements covered, or N tests (both 60 s at most); or so many seconds for coverage.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the search.")
@click.option("--assume", multiple=True, metavar="CONDITION", help="On packets: 'ipv4.protocol == 6'; repeatable.")
def command(
    program: Path,
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
    pipeline: int | None,
    out: Path,
    until: str,
    seed: int,
    assume: tuple[str, ...],
) -> None:
    """Write packet tests that together execute every statement of a program.

    Each test is an STF file with a packet, the table entries and registers it needs, and the
    expected packets. A pytest module runs them. Exit status 1 if an assertion of the program can be
    violated.
    """
    from p4switch.testgen import generate, write

    most, seconds = _until(until)
    code, result = generate(program, include, define, seed, assume, most, seconds, arch, pipeline)
    write(out, program, include, code, result, define, arch, pipeline)
    reachable = result.statements - len(result.unreachable)
    click.echo(f"{len(result.tests)} tests, {result.covered} of {reachable} reachable statements, {result.runs} runs")
    for dead in result.unreachable:
        click.echo(f"{dead.place.file}:{dead.place.line}:{dead.place.column}: cannot be reached: {dead.reason}")
    for place in result.missing:
        why = "not reached" if result.exhausted else "not reached when the time or the tests were over"
        click.echo(f"{place.file}:{place.line}:{place.column}: {why}")
    for place in result.only_unstable:
        click.echo(f"{place.file}:{place.line}:{place.column}: reached, but no test of it is the same on every switch")
    if result.given_up:
        click.echo(f"{result.given_up} other paths were given up: z3 found no answer within the limits of a query")
    for problem, count in result.problems.most_common():
        click.echo(f"{count} runs do not make tests: {problem}")
    for place, _ in result.violations:
        click.echo(f"{place.file}:{place.line}:{place.column}: this assertion can be broken")
    if result.violations:
        sys.exit(1)
