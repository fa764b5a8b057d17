"""Command that attacks p4cc for a time, one kind after another, and counts the attempts.

    python -m tools.attack [KIND...] [--minutes N | --short] [--seed N] [--jobs N] [--corpus FOLDER] [--keep FOLDER]

Ctrl-C ends the attacks and prints the counts so far. Exit status 1 means that there are findings. A
folder below KEEP has the command and the files that reproduce a finding.
"""

from __future__ import annotations

import secrets
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tools.attack import session

_LONGEST_SHORT_S = 600.0  # time limit of a kind with --short


@click.command(help=__doc__)
@click.argument("kinds", nargs=-1, type=click.Choice(session.names()), metavar="[KIND...]")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True, help="For each.")
@click.option("--short", is_flag=True, help="A fixed number of turns of each: with a seed, the same on every machine.")
@click.option("--seed", type=click.IntRange(0), help="Seed of all random choices. Default: another one each time.")
@click.option("--turn", type=click.IntRange(0), help="Run only this turn, which a finding names.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Kinds at a time.")
@click.option("--corpus", type=click.Path(exists=True, file_okay=False, path_type=Path), help="More P4 programs.")
@click.option("--keep", type=click.Path(path_type=Path), default=Path("attack-findings"), show_default=True)
def main(
    kinds: tuple[str, ...], minutes: float, short: bool, seed: int | None, turn: int | None, jobs: int,
    corpus: Path | None, keep: Path,
) -> None:
    console = Console(soft_wrap=True, highlight=False)
    seed = secrets.randbelow(2**32) if seed is None else seed
    programs = sorted(corpus.glob("**/*.p4")) if corpus else []
    chosen = {}
    for name in kinds or session.names():
        reason = session.kind(name).missing()
        if reason is None:
            chosen[name] = session.kind(name)
        else:
            console.print(f"left out: {name}: {reason}")
    console.print(f"seed {seed}")

    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())

    def one(name: str) -> session.Outcome:
        kind, first, turns, seconds = chosen[name], 0, None, 60 * minutes
        if short:
            turns, seconds = kind.short_turns, _LONGEST_SHORT_S
        if turn is not None:
            first, turns = turn, 1
        return session.run(
            name, seed=seed, seconds=seconds, first=first, turns=turns, corpus=programs, keep=keep, tell=console.print,
            stop=stop,
        )

    with ThreadPoolExecutor(jobs) as pool:
        outcomes = dict(zip(chosen, pool.map(one, chosen), strict=True))
    table = Table("kind", *(("s"), ("turns"), ("count"), ("of"), ("findings")))
    for name, outcome in outcomes.items():
        table.add_row(
            name, f"{outcome.seconds:.0f}", f"{outcome.turns:,}", f"{outcome.count:,}", chosen[name].units,
            str(len(outcome.findings)),
        )
    console.print(table)
    findings = sum(len(outcome.findings) for outcome in outcomes.values())
    if findings:
        console.print(f"{findings} finding{'s' if findings > 1 else ''}: {keep}")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
