"""Comparison of p4c and BMv2 with the built-in compiler and switch on programs.

    python tools/compare.py PROGRAM.p4|FOLDER ... [-I FOLDER] [-D NAME[=TEXT]] [--tests N] [--seconds S] [--seed N]

For each program, and each .p4 file of a folder, it reports which compiler accepts the program, the
differences of the two P4Infos, and those of N generated packet tests (`p4switch.testgen`) on which
the two switches differ from each other or from the expectation. p4c (`p4c-bm2-ss`) and BMv2 are
left out if they are not in PATH. The exit status is 1 if there is a difference.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
from p4info_diff import differences

from p4switch.compiler import Compiled, compile_program
from p4switch.errors import UserError
from p4switch.p4runtime.messages import parse_p4info
from p4switch.sources import definition
from p4switch.stf import Options, run_tests
from p4switch.testgen import generate, write

P4C = "p4c-bm2-ss"
_P4C_LIMIT_S = 120


def theirs(program: Path, folder: Path, how: Options) -> tuple[str | None, Path]:
    """Return p4c's objection to `program`, None if there is none, and its P4Info."""
    info = folder / f"{program.stem}.p4info.txtpb"
    given = [f"-I{path}" for path in how.include_dirs] + [f"-D{name}={text}" for name, text in how.defines]
    command = [P4C, "--arch", "v1model", *given, "-o", str(folder / "out.json"), "--p4runtime-files", str(info)]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, timeout=_P4C_LIMIT_S)
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return (None if done.returncode == 0 else (lines or ["refused"])[0]), info


def ours(program: Path, how: Options) -> tuple[str | None, Compiled | None]:
    """Return the built-in compiler's objection to `program`, and its result."""
    try:
        return None, compile_program(program, how.include_dirs, dict(how.defines))
    except UserError as error:
        return str(error).splitlines()[0], None


def switches() -> list[str]:
    """Return the switches on which tests can be run on this machine."""
    there = all(shutil.which(tool) for tool in ("simple_switch", "simple_switch_CLI"))
    return ["builtin", *(["bmv2"] if there else [])]


def compare(program: Path, tests: int, seconds: float, seed: int, how: Options) -> Iterator[str]:
    """Yield the differences, a line each."""
    refused, compiled = ours(program, how)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if shutil.which(P4C):
            other, info = theirs(program, folder, how)
            if (refused is None) != (other is None):
                yield f"p4c: {other or 'accepts it'}; p4cc: {refused or 'accepts it'}"
            elif compiled is not None:
                expected = parse_p4info(info.read_text())
                yield from (f"P4Info: {line}" for line in differences(expected, compiled.p4info))
        elif refused is not None:
            yield f"p4cc: {refused}"
        if compiled is None or not tests:
            return
        code, result = generate(
            program, how.include_dirs, dict(how.defines), seed=seed, most=tests, seconds=seconds
        )
        for test in write(folder, program, [], code, result):
            said = {switch: outcome(test, replace(how, program=program, switch=switch)) for switch in switches()}
            if any(said.values()):
                yield f"{test.name}: " + "; ".join(
                    f"{switch}: {text or 'as expected'}" for switch, text in said.items()
                )


def outcome(test: Path, how: Options) -> str:
    """Return why `test` does not hold; "" if it does."""
    (result,) = run_tests([test], options=how)
    return result.cause or ""


def _programs(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.glob("*.p4")) if path.is_dir() else [path]


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-D", "define", multiple=True, metavar="NAME[=TEXT]")
@click.option("--tests", default=20, show_default=True, help="Largest number of tests for each program.")
@click.option("--seconds", default=20.0, show_default=True, help="Time limit for generating them.")
@click.option("--seed", default=0, show_default=True)
def main(
    paths: tuple[Path, ...], include: tuple[Path, ...], define: tuple[str, ...], tests: int, seconds: float, seed: int
) -> None:
    """Print a line for each difference."""
    macros = tuple(map(definition, define))
    count = 0
    chosen = list(_programs(paths))
    for program in chosen:
        for line in compare(program, tests, seconds, seed, Options(include_dirs=include, defines=macros)):
            count += 1
            click.echo(f"{program.name}: {line}")
    click.echo(f"{len(chosen)} programs, {count} differences")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
