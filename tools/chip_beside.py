"""Comparison of p4c's open-source back end for TNA and T2NA with `p4cc fit` and our `bf-rt.json`.

    python tools/chip_beside.py PROGRAM.p4|FOLDER ... [-I DIR] [-D NAME[=VALUE]] [--arch NAME] [--seconds S] [--details]

The programs of a folder are those that `chip_programs` finds. Each is compiled and assembled for its chip; it is
accepted if both succeed. Its row has the stages of ingress and egress by the assembler's report, those of `p4cc fit`,
and the number of differences between the two `bf-rt.json`: in tables, keys, actions, data, ids, and in all the rest.
--details lists them. `chip_compiler` says what has to be installed. Without --arch a program is for the architecture
whose file it includes.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from bf_rt_diff import compared, differences
from chip_compiler import ASSEMBLER, COMPILER, assembled, assemblies, compile_to, require
from chip_programs import includes, programs

from p4switch.compiler import compile_program
from p4switch.errors import UserError
from p4switch.fit import load, measure, report
from p4switch.sources import arch_option, define_option, include_option


@dataclass(frozen=True, slots=True)
class Chip:
    """Chip.

    `name` and `generation` are those of the back end, and `model` is that of `p4cc fit`.
    """

    name: str
    generation: str
    model: str


CHIPS = {"tna": Chip("tofino", "1", "stages12"), "t2na": Chip("tofino2", "2", "stages20")}
KINDS = ("tables", "keys", "actions", "data", "ids", "other")
_PARTS = {"key": "keys", "action_specs": "actions", "data": "data"}


def kind(difference: str) -> str:
    """Return the one of KINDS to which a line of `differences` belongs."""
    path = difference[: difference.index(": ")].split("/")
    if path[-1] == "id":
        return "ids"
    return _PARTS.get(path[3], "other") if len(path) > 3 else "tables"


@dataclass(frozen=True, slots=True)
class Theirs:
    """Result of the back end: stages of each pipeline's threads and its `bf-rt.json`, or the reason in `problem`."""

    stages: Mapping[str, int]
    problem: str
    bf_rt: Any


@dataclass(frozen=True, slots=True)
class Ours:
    """Result of `p4cc fit` and our `bf-rt.json`, or the compiler's error."""

    stages: str
    lacks: str
    bf_rt: Any


def theirs(program: Path, include: Sequence[Path], defines: Mapping[str, str], arch: str, seconds: float) -> Theirs:
    """Compile and assemble `program` with the back end."""
    chip, last = CHIPS[arch].name, Counter[str]()
    given = {"__TARGET_TOFINO__": CHIPS[arch].generation, **defines}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = compile_to(folder, program, chip, arch, include, given, seconds)
        for assembly in () if problem else assemblies(folder):
            used, refused = assembled(assembly, chip, assembly.parent, seconds)
            last |= Counter(used)
            problem = problem or refused
        schema = folder / "bf-rt.json"
        return Theirs(last, problem, json.loads(schema.read_text()) if schema.exists() else None)


def ours(program: Path, include: Sequence[Path], defines: Mapping[str, str], arch: str) -> Ours:
    """Compile `program`, and place it."""
    try:
        fit = measure(program, include, defines, arch).fit(load(CHIPS[arch].model))
        bf_rt = compile_program(program, include, defines, arch).bf_rt
    except UserError as error:
        return Ours("", str(error).splitlines()[0], None)
    return Ours(report.stages(fit), ", ".join(sorted({finding.rule for finding in fit.findings})), bf_rt)


def architecture(program: Path, include: Sequence[Path], defines: Mapping[str, str]) -> str:
    """Return the first architecture for which `program` compiles, or TNA if there is none."""
    for arch in CHIPS:
        try:
            compile_program(program, include, defines, arch)
        except UserError:
            continue
        return arch
    return "tna"


@click.command(help=__doc__)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--seconds", default=600.0, show_default=True, help="For each program and each step.")
@click.option("--details", is_flag=True, help="List the differences of the `bf-rt.json`.")
@include_option
@define_option
@arch_option
def main(
    paths: tuple[Path, ...],
    seconds: float,
    details: bool,
    include: tuple[Path, ...],
    define: dict[str, str],
    arch: str | None,
) -> None:
    require(COMPILER, ASSEMBLER)
    head = ["program", "architecture", "accepted", "ingress", "egress", "p4cc fit", "p4cc fit lacks", *KINDS]
    click.echo("\n".join(report.markdown(head, [])))
    for path in map(Path.resolve, paths):
        for program in programs(path) if path.is_dir() else [path]:
            dirs = [*(includes(program, path) if path.is_dir() else []), *include]
            chosen = arch or architecture(program, dirs, define)
            mine, other = ours(program, dirs, define, chosen), theirs(program, dirs, define, chosen, seconds)
            both = mine.bf_rt is not None and other.bf_rt is not None
            lines = list(differences(compared(other.bf_rt), compared(mine.bf_rt))) if both else []
            counts = Counter(map(kind, lines))
            cells = [program.stem, chosen, other.problem or "yes"]
            cells += [str(other.stages.get(thread, 0)) if not other.problem else "" for thread in ("ingress", "egress")]
            cells += [mine.stages, mine.lacks, *(str(counts[k]) if both else "" for k in KINDS)]
            click.echo("| " + " | ".join(cells) + " |")
            if details:
                click.echo("".join(f"    {line}\n" for line in lines), nl=False)


if __name__ == "__main__":
    main()
