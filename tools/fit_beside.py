"""Stages that p4c's open-source back end for switch chips takes, compared with those of `p4cc fit`.

    python tools/fit_beside.py PROGRAM.p4|FOLDER ... [-I FOLDER] [--target NAME ...] [--every N] [--seconds S]

Every Nth of the v1model programs in the folders, by name, is compiled by `p4c-barefoot` for the
chips of 12 and of 20 stages, or for one of them, and placed by `p4cc fit` for its models of the
same chips. `p4c-barefoot` has to be in PATH, and the folder of its core.p4, v1model.p4 and
tofino*.p4 in P4C_16_INCLUDE_PATH. Ingress and egress share the stages, so the compiler's number of
stages is that of the last stage with a table in either. A Markdown table at the end shows how often
the two agree.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click
from chip_compiler import COMPILER, assemblies, compile_to, require, stages
from reach import programs

from p4switch.errors import UserError
from p4switch.fit import Fit, load, measure, report

CHIPS = {"stages12": "tofino", "stages20": "tofino2"}
"""The compiler's name for each of our targets."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Result of the compiler: `stages` of each pipeline, or None with the reason in `problem`."""

    stages: dict[str, int] | None
    problem: str = ""


def theirs(program: Path, chip: str, include: tuple[Path, ...], seconds: float) -> Compiled:
    """Return the compiler's result for `program`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = compile_to(folder, program, chip, "v1model", include, {}, seconds)
        return Compiled(None, problem) if problem else Compiled(stages(assemblies(folder)[0].read_text()))


def verdict(fit: Fit, compiled: Compiled) -> str:
    """Return the column of the table that counts a program."""
    if compiled.stages is None:
        return "only p4cc says it fits" if fit.fits else "neither"
    if not fit.fits or fit.placement is None:
        return "only p4c compiles it"
    more = max(compiled.stages.values(), default=0) - fit.placement.stages
    if not more:
        return "as many"
    return f"p4c {min(abs(more), 3)}{' or more' if abs(more) > 2 else ''} {'more' if more > 0 else 'fewer'}"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-I", "include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--target", "targets", multiple=True, type=click.Choice(list(CHIPS)), help="Repeatable. Default: all.")
@click.option("--every", default=1, show_default=True, help="The first program by name, and each Nth after it.")
@click.option("--seconds", default=120.0, show_default=True, help="For each program and chip.")
def main(
    paths: tuple[Path, ...], include: tuple[Path, ...], targets: tuple[str, ...], every: int, seconds: float
) -> None:
    """Print a line for each program and chip, and the table."""
    require(COMPILER)
    counts: dict[str, Counter[str]] = {name: Counter() for name in targets or CHIPS}
    for program in list(programs(paths))[::every]:
        try:
            measured = measure(program, include)
        except UserError as error:
            click.echo(f"{program.name}: refused: {str(error).splitlines()[0]}")
            continue
        for name, count in counts.items():
            fit, compiled = measured.fit(load(name)), theirs(program.resolve(), CHIPS[name], include, seconds)
            what = verdict(fit, compiled)
            count[what] += 1
            ours = "not placed" if fit.placement is None else f"{report.stages(fit)} stages"
            lacks = f" ({', '.join(sorted({f.rule for f in fit.findings}))})" if fit.findings else ""
            other = compiled.problem or ", ".join(f"{p} {n}" for p, n in sorted(compiled.stages.items())) or "0"
            click.echo(f"{program.name}: {name}: {what}: p4cc {ours}{lacks}; p4c {other}")
    verdicts = sorted(set().union(*counts.values()))
    rows = ([name, *(str(count[v]) for v in verdicts)] for name, count in counts.items())
    click.echo("\n".join(report.markdown(["target", *verdicts], rows)))


if __name__ == "__main__":
    main()
