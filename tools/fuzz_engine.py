"""Fuzzes the engine: arbitrary packets and table entries through pipelines built with sanitizers.

    python tools/fuzz_engine.py PROGRAM... [--seconds N] [--packets N] [--seed N]

PROGRAM is a .p4 file or a folder of them. They take turns, each time with another seed; those that do not compile for
v1model are passed over. The first finding ends it, with the report and what reproduces it.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.engine import fuzz


def _pipelines(paths: Sequence[Path], order: random.Random) -> list[tuple[Path, dict[str, Any]]]:
    programs = sorted({file for path in paths for file in (path.glob("*.p4") if path.is_dir() else [path])})
    found = []
    for program in programs:
        try:
            found.append((program, compile_program(program, [program.parent]).json))
        except CompileError:
            continue
    order.shuffle(found)
    return found


@click.command(help=__doc__)
@click.argument("paths", metavar="PROGRAM...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--seconds", type=click.IntRange(1), default=600, show_default=True)
@click.option("--packets", type=click.IntRange(1), default=200_000, show_default=True, help="At a time.")
@click.option("--seed", type=int, default=1, show_default=True)
def main(paths: tuple[Path, ...], seconds: int, packets: int, seed: int) -> None:
    pipelines = _pipelines(paths, random.Random(seed))
    if not pipelines:
        raise click.UsageError("none of these programs compiles for v1model")
    end = time.monotonic() + seconds
    turns = 0
    for turns, (program, document) in enumerate(itertools.cycle(pipelines)):
        if time.monotonic() > end:
            break
        try:
            fuzz.run(document, seed=seed + turns, packets=packets)
        except fuzz.FuzzError as finding:
            click.echo(f"{program}, {packets} packets: {finding}")
            sys.exit(1)
    click.echo(
        f"{turns} runs of {packets} packets, {min(turns, len(pipelines))} of {len(pipelines)} programs: no finding"
    )


if __name__ == "__main__":
    main()
