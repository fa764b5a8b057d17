"""Compares p4c and BMv2 with the built-in compiler and switch on a folder of programs.

    python tools/compare.py PROGRAMS [--tests N] [--seconds S] [--seed N] [NAME ...]

For each program: which compiler accepts it, in what the two P4Infos differ, and on which of N generated packet tests
(packets, entries and registers drawn and solved by `p4switch.testgen`) the two switches differ from each other or from
what the tests expect. p4c (`p4c-bm2-ss`) and BMv2 are left out where they are not in PATH. Exit status 1: a difference.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from p4info_diff import differences

from p4switch.compiler import Compiled, compile_program
from p4switch.errors import UserError
from p4switch.p4runtime.messages import parse_p4info
from p4switch.stf import run_test
from p4switch.testgen import generate, write

P4C = "p4c-bm2-ss"
_P4C_LIMIT_S = 120


def theirs(program: Path, folder: Path) -> tuple[str | None, Path]:
    """What p4c says against `program`, None if it accepts it; and its P4Info."""
    info = folder / f"{program.stem}.p4info.txtpb"
    command = [P4C, "--arch", "v1model", "-o", str(folder / "out.json"), "--p4runtime-files", str(info), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_P4C_LIMIT_S)
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return (None if done.returncode == 0 else (lines or ["refused"])[0]), info


def ours(program: Path) -> tuple[str | None, Compiled | None]:
    """What the built-in compiler says against `program`, and what it makes of it."""
    try:
        return None, compile_program(program)
    except UserError as error:
        return str(error).splitlines()[0], None


def switches() -> list[str]:
    """Those that tests can be run on here."""
    there = all(shutil.which(tool) for tool in ("simple_switch", "simple_switch_CLI"))
    return ["builtin", *(["bmv2"] if there else [])]


def compare(program: Path, tests: int, seconds: float, seed: int) -> Iterator[str]:
    """The differences, a line each."""
    refused, compiled = ours(program)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if shutil.which(P4C):
            other, info = theirs(program, folder)
            if (refused is None) != (other is None):
                yield f"p4c: {other or 'accepts it'}; p4cc: {refused or 'accepts it'}"
            elif compiled is not None:
                expected = parse_p4info(info.read_text())
                yield from (f"P4Info: {line}" for line in differences(expected, compiled.p4info))
        elif refused is not None:
            yield f"p4cc: {refused}"
        if compiled is None:
            return
        code, result = generate(program, seed=seed, most=tests, seconds=seconds)
        for test in write(folder, program, [], code, result):
            said = {switch: outcome(program, test, switch) for switch in switches()}
            if any(said.values()):
                yield f"{test.name}: " + "; ".join(
                    f"{switch}: {text or 'as expected'}" for switch, text in said.items()
                )


def outcome(program: Path, test: Path, switch: str) -> str:
    """Why `test` does not hold on `switch`; nothing if it does."""
    try:
        run_test(program, test, switch=switch)
    except UserError as error:
        return str(error).splitlines()[0]
    return ""


@click.command()
@click.argument("programs", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("names", nargs=-1)
@click.option("--tests", default=20, show_default=True, help="Of each program, at most.")
@click.option("--seconds", default=20.0, show_default=True, help="For making them.")
@click.option("--seed", default=0, show_default=True)
def main(programs: Path, names: tuple[str, ...], tests: int, seconds: float, seed: int) -> None:
    """Prints a line for each difference."""
    found = 0
    chosen = [p for p in sorted(programs.glob("*.p4")) if not names or p.stem in names]
    for program in chosen:
        for line in compare(program, tests, seconds, seed):
            found += 1
            click.echo(f"{program.name}: {line}")
    click.echo(f"{len(chosen)} programs, {found} differences")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
