"""Report on how far the compiler gets with the programs for switch chips in fetched sources.

    python -m tools.chip_programs FOLDER ... [-I DIR] [--only NAME] [--tests 2] [-D NAME[=VALUE]]
        [--arch tna]

A program is a .p4 file in one of the folders that instantiates a package as `main`, and is not for
v1model. Its folder and all above it, up to FOLDER, are searched for includes. Each program has a
row with the last step that succeeded and the first error. The step is `parsed` if the file was
read, `checked` if there is no type error, and `compiled` if JSON was generated. Without --arch each
program is tried for TNA and, if it does not compile, for T2NA.

With --tests that number of generated tests runs on the built-in switch for each pipeline, or fewer
if these execute all of the program. The step is `tested` if all pass.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

import click

from p4switch.compiler import compile_pipelines
from p4switch.compiler.frontend import parse_and_check
from p4switch.errors import UserError
from p4switch.sources import arch_option, define_option, include_option
from p4switch.stf import Options, run_tests
from p4switch.testgen import generate, write

_CHIPS = ("tna", "t2na")
_MAIN = re.compile(r"\)\s*main\s*;")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def programs(folder: Path) -> list[Path]:
    """Return the files that instantiate a package of another architecture than v1model."""
    files = []
    for path in sorted(folder.rglob("*.p4")):
        text = _COMMENT.sub("", path.read_text(errors="replace"))
        if _MAIN.search(text) and "V1Switch" not in text:
            files.append(path)
    return files


def includes(program: Path, folder: Path) -> list[Path]:
    """Return the folder of the program and all folders above it, up to `folder`."""
    parents = [program.parent, *program.parent.parents]
    return parents[: parents.index(folder) + 1]


def outcome(program: Path, dirs: list[Path], defines: dict[str, str], arch: str) -> tuple[str, str, int]:
    """Return how far the compiler gets, the first error, and the number of pipelines."""
    how_far = "parsed"
    try:
        parse_and_check(program, dirs, defines, arch)
        how_far = "checked"
        return "compiled", "", len(compile_pipelines(program, dirs, defines, arch))
    except UserError as error:
        return how_far, str(error).splitlines()[0], 0


def tested(
    program: Path, dirs: list[Path], defines: dict[str, str], arch: str, pipeline: int, count: int, limit_s: float
) -> str:
    """Return why a pipeline of a compiled program is not tested; "" if `count` generated tests pass."""
    code, result = generate(program, dirs, defines, most=count, seconds=limit_s, arch=arch, pipeline=pipeline)
    whole = result.covered == result.statements - len(result.unreachable)
    if not result.tests or (len(result.tests) < count and not whole):
        return f"{len(result.tests)} tests in {limit_s:g} s"
    options = Options("builtin", program, tuple(dirs), tuple(defines.items()), arch=arch, pipeline=pipeline)
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), program, dirs, code, result, defines, arch, pipeline)
        causes = [str(done.cause) for done in run_tests(files, 1, limit_s, options) if done.cause is not None]
    return causes[0] if causes else ""


@click.command(help=__doc__)
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", multiple=True, help="Name of a program without the suffix; repeatable.")
@click.option("--tests", "count", default=0, help="How many tests of each program are generated and run.")
@click.option("--seconds", default=60.0, show_default=True, help="Limit for the tests of a program, and for each one.")
@include_option
@define_option
@arch_option
def main(
    folders: tuple[Path, ...],
    include: tuple[Path, ...],
    only: tuple[str, ...],
    count: int,
    seconds: float,
    define: dict[str, str],
    arch: str | None,
) -> None:
    reached: Counter[str] = Counter()
    for folder in map(Path.resolve, folders):
        for program in programs(folder):
            if only and program.stem not in only:
                continue
            dirs = [*includes(program, folder), *include]
            for chip in [arch] if arch else _CHIPS:
                how_far, error, pipelines = outcome(program, dirs, define, chip)
                if how_far == "compiled":
                    break
            if how_far == "compiled" and count:
                errors = (tested(program, dirs, define, chip, n, count, seconds) for n in range(pipelines))
                error = next(filter(None, errors), "")
                how_far = how_far if error else "tested"
            reached[how_far] += 1
            shown = error.replace(f"{folder}/", "")
            click.echo(f"| `{program.relative_to(folder)}` | {chip} | {how_far} | {shown} |")
    click.echo(f"{sum(reached.values())} programs: {', '.join(f'{n} {what}' for what, n in sorted(reached.items()))}")


if __name__ == "__main__":
    main()
