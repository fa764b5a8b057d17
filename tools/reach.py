"""Reach of `p4cc testgen` in programs, and whether its tests hold.

    python tools/reach.py PROGRAM.p4|FOLDER ... [--every N] [--seconds S] [--switch builtin|bmv2 ...]

For every Nth of the v1model programs in the folders, by name, it prints the number of covered
statements, the number of statements that are not proven to be unreachable, the number of tests, and
the time in seconds. With --switch the tests also run on that switch. The exit status is 1 if a
statement was not reached or a test failed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from p4switch.errors import UserError
from p4switch.stf import Options, run_tests
from p4switch.testgen import generate, write


def programs(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files that are named, and the v1model programs of folders."""
    for path in paths:
        if path.is_dir():
            yield from (p for p in sorted(path.glob("*.p4")) if "v1model.p4" in p.read_text(errors="replace"))
        else:
            yield path


def reach(program: Path, seconds: float, switches: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether every statement was reached and every test holds, and a line about the program.

    Raises UserError if the program does not compile.
    """
    start = time.monotonic()
    code, result = generate(program, seconds=seconds)
    took = time.monotonic() - start
    reachable = result.statements - len(result.unreachable)
    said = f"{result.covered} of {reachable}, {len(result.tests)} tests, {took:.1f} s"
    fine = result.covered == reachable
    for place in [*result.missing, *result.only_unstable]:
        said += f"; not line {place.line}"
    with tempfile.TemporaryDirectory() as name:
        tests = write(Path(name), program, [], code, result)
        for switch in switches:
            for done in run_tests(tests, options=Options(switch, program)):
                if done.cause is not None:
                    fine, said = False, f"{said}; {switch}, {done.test.name}: {done.cause}"
    return fine, said


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--every", default=1, show_default=True, help="The first program by name, and each Nth after it.")
@click.option("--seconds", default=60.0, show_default=True, help="For each program.")
@click.option("--switch", "switches", multiple=True, type=click.Choice(["builtin", "bmv2"]))
def main(paths: tuple[Path, ...], every: int, seconds: float, switches: tuple[str, ...]) -> None:
    """Print a line for each program, and the number of programs without problems."""
    fine = refused = 0
    chosen = list(programs(paths))[::every]
    for program in chosen:
        try:
            good, said = reach(program, seconds, switches)
        except UserError as error:
            good, said = False, f"refused: {str(error).splitlines()[0]}"
            refused += 1
        fine += good
        click.echo(f"{program.name}: {said}")
    click.echo(f"{fine} of {len(chosen) - refused} that compile are reached whole, {refused} are refused")
    sys.exit(0 if fine == len(chosen) - refused else 1)


if __name__ == "__main__":
    main()
