"""Reach of the tests of `p4cc testgen` and of P4Testgen in programs, counted in the same way.

    python tools/reach_beside.py PROGRAM.p4|FOLDER ... [-I FOLDER] [--sample N --seed N] [--seconds S]

Both tools get S seconds for each of the v1model programs in the folders, or for N of them drawn at random. The tests of
both run on the built-in switch, which counts the statements that packets pass. A statement does not count if
`p4cc testgen` proves that it is unreachable and no test reaches it. A program without other statements is fully covered
by neither tool. A test whose expectation does not hold counts, and is reported. `p4testgen` has to be in PATH, built
with its target bmv2. It runs with its search for statement coverage, and writes each test that covers more.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from reach import programs

from p4switch.compiler import compile_program
from p4switch.coverage import Coverage, Item
from p4switch.engine import build_traced
from p4switch.errors import UserError
from p4switch.stf import Options, run_tests
from p4switch.testgen import generate, write

_KILLED_AFTER_S = 10  # time from the time limit until the process is killed
_OWN_COUNT = re.compile(r"^# Current node coverage: ([0-9.]+)", re.MULTILINE)

Place = tuple[str, int, int]


@dataclass
class Tool:
    """Result of one tool's tests.

    `own` is the coverage that the tool itself reports; `problem` is the reason if there are no
    tests.
    """

    seconds: float
    tests: int = 0
    failed: list[str] = field(default_factory=list)
    own: float = 0.0
    problem: str = ""
    reached: set[Item] = field(default_factory=set)

    def run(self, tests: Sequence[Path], options: Options) -> None:
        """Run `tests`, and record the statements that they reach."""
        self.tests = len(tests)
        total = Coverage()
        for done in run_tests(tests, options=options):
            total.merge(done.outcome.coverage)
            if done.cause is not None:
                self.failed.append(f"{done.test.name}: {done.cause}")
        self.reached = {item for item, count in total.items(["statement"]) if count}


def statements(program: Path, options: Options) -> set[Item]:
    """Return all statements.

    Raises UserError if the program cannot be compiled.
    """
    points = build_traced(compile_program(program, options.include_dirs).program).program.points
    nothing = Coverage()
    nothing.add(points, [0] * len(points.all))
    return set(nothing.missed(["statement"]))


def ours(program: Path, seconds: float, options: Options, folder: Path) -> tuple[Tool, set[Place]]:
    """Return the tests of `p4cc testgen`, and the places that it proves to be unreachable.

    Raises UserError if the program cannot be compiled or a test fails.
    """
    start = time.monotonic()
    code, result = generate(program, options.include_dirs, seconds=seconds)
    tool = Tool(time.monotonic() - start, own=result.covered / max(1, result.statements - len(result.unreachable)))
    tool.run(write(folder, program, options.include_dirs, code, result), options)
    return tool, {(os.path.normpath(u.place.file), u.place.line, u.place.column) for u in result.unreachable}


def theirs(program: Path, seconds: float, options: Options, folder: Path) -> Tool:
    """Return the tests of P4Testgen."""
    command = ["p4testgen", "--target", "bmv2", "--arch", "v1model", "--test-backend", "STF", "--seed", "1"]
    command += ["--path-selection", "GREEDY_STATEMENT_SEARCH", "--track-coverage", "STATEMENTS", "--max-tests", "0"]
    command += ["--stop-metric", "MAX_NODE_COVERAGE", "--only-covering-tests", "--out-dir", str(folder)]
    command += [*(f"-I{path}" for path in options.include_dirs), str(program)]
    start = time.monotonic()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(_KILLED_AFTER_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            status = 0
        took = time.monotonic() - start
        said.seek(0)
        lines = [line.strip() for line in said if re.search("error|bug|unable to generate", line, re.IGNORECASE)]
    tests = sorted(folder.glob("*.stf"))
    problem = ""
    if status or not tests:
        problem = lines[0] if lines else f"{len(tests)} tests at exit status {status}"
    counts = [float(match[1]) for test in tests if (match := _OWN_COUNT.search(test.read_text()))]
    tool = Tool(took, own=max(counts, default=0.0), problem=problem)
    tool.run(tests, options)
    return tool


def beside(program: Path, seconds: float, options: Options) -> tuple[Tool, Tool, set[Item]]:
    """Return both tools' tests for `program`, and the statements that count.

    Raises UserError if the program cannot be compiled or a tool fails.
    """
    every = statements(program, options)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        mine, out_of_reach = ours(program, seconds, options, Path(first))
        other = theirs(program, seconds, options, Path(second))
    reached = mine.reached | other.reached
    return mine, other, {i for i in every if i in reached or (i.file, i.line, i.column) not in out_of_reach}


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--sample", type=int, help="Number of programs, drawn at random.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draw.")
@click.option("--seconds", default=60.0, show_default=True, help="For each program and tool.")
def main(paths: tuple[Path, ...], include: tuple[Path, ...], sample: int | None, seed: int, seconds: float) -> None:
    """Print a line for each program, and the number of programs that each tool covers completely."""
    if shutil.which("p4testgen") is None:
        raise click.UsageError("'p4testgen' is not in PATH")
    chosen = sorted(programs(paths))
    if sample is not None:
        chosen = sorted(random.Random(seed).sample(chosen, sample))
    whole = [0, 0]
    compiled = empty = 0
    for program in chosen:
        options = Options(program=program, include_dirs=include, coverage=True)
        try:
            mine, other, all_of_it = beside(program, seconds, options)
        except UserError as error:
            click.echo(f"{program.name}: refused: {str(error).splitlines()[0]}")
            continue
        compiled += 1
        empty += not all_of_it
        said = []
        for number, (name, tool) in enumerate((("p4cc", mine), ("p4testgen", other))):
            whole[number] += bool(all_of_it) and tool.reached >= all_of_it
            said.append(
                f"{name} {len(tool.reached)} of {len(all_of_it)} ({tool.own:.0%} by itself), {tool.tests} tests, "
                f"{len(tool.failed)} do not hold, {tool.seconds:.1f} s" + (f", {tool.problem}" if tool.problem else "")
            )
        click.echo(f"{program.name}: " + "; ".join(said))
        for tool in (mine, other):
            for text in [*tool.failed[:2], *(f"not reached: {i}" for i in sorted(all_of_it - tool.reached)[:3])]:
                click.echo(f"    {text}")
    click.echo(f"{compiled} of {len(chosen)} compile, {compiled - empty} of them have statements that can be reached")
    click.echo(f"reached whole: p4cc {whole[0]}, p4testgen {whole[1]}")


if __name__ == "__main__":
    main()
