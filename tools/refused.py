"""Check of the compiler on programs that it must refuse with an error at the right line, without crash or hang.

    python tools/refused.py PROGRAMS [--expected FOLDER] [-j N] [NAME ...]

PROGRAMS is a folder of .p4 files, such as p4c's testdata/p4_16_errors; p4c's messages about `x.p4` are in
`x.p4-stderr` in FOLDER (by default PROGRAMS with `_outputs` appended). A line is right if p4c has an error there.
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import click

import p4switch.compiler.bmv2
import p4switch.compiler.frontend
import p4switch.compiler.p4info  # noqa: F401  (loaded once, before the processes are forked)
from p4switch.compiler import compile_program
from p4switch.compiler.diagnostics import CompileError
from p4switch.errors import UserError

TIME_LIMIT_S = 5
"""Limit of CPU time; a process that only waits is ended after ten times as long."""
_ERROR = re.compile(r"^(\S+)\((\d+)\): .*error", re.MULTILINE)
_OURS = re.compile(r"^(\S+?):(\d+):(\d+): error: (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """Outcome for one program.

    `verdict` is one of: right line, other line, no line, accepted, missing include, crash, hang.
    """

    program: Path
    verdict: str
    detail: str = ""


def _expected_lines(program: Path, folder: Path) -> set[int]:
    stored = folder / f"{program.name}-stderr"
    if not stored.is_file():
        return set()
    text = stored.read_text(errors="replace")
    return {int(line) for file, line in _ERROR.findall(text) if Path(file).name == program.name}


def _child(program: Path, expected: Path, pipe: Connection) -> None:
    lines = _expected_lines(program, expected)
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT_S, TIME_LIMIT_S))
    try:
        compile_program(program, [program.parent])
    except CompileError as error:
        errors = _OURS.findall(str(error))
        ours = {int(line) for file, line, _, _ in errors if Path(file).name == program.name}
        detail = f"line {sorted(ours)}, expected {sorted(lines)}: {errors[0][3] if errors else str(error)}"
        if errors and re.search(r"cannot find|not found", errors[0][3]):
            pipe.send(("missing include", detail))
        elif not lines:
            pipe.send(("no line", detail))
        else:
            pipe.send(("right line" if ours & lines else "other line", detail))
    except UserError as error:
        pipe.send(("no line", str(error)))
    except Exception as error:
        pipe.send(("crash", f"{type(error).__name__}: {error}"))
    else:
        pipe.send(("accepted", f"expected an error at {sorted(lines)}"))


def outcomes(programs: list[Path], expected: Path, jobs: int) -> Iterator[Outcome]:
    """Yield the outcome of each program, in a process of its own that is killed after TIME_LIMIT_S."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(programs))
    running: dict[Connection, tuple[Path, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            program = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(program, expected, sender), daemon=True)
            process.start()
            sender.close()
            running[receiver] = program, process, time.monotonic()
        ready = wait(list(running), timeout=0.2)
        for pipe, (program, process, start) in list(running.items()):
            if pipe in ready:
                try:
                    verdict, detail = pipe.recv()
                except EOFError:
                    process.join()
                    timed_out = -(process.exitcode or 0) in (signal.SIGXCPU, signal.SIGKILL)
                    verdict, detail = ("hang", f"more than {TIME_LIMIT_S} s") if timed_out else ("crash", "it died")
            elif time.monotonic() - start > 10 * TIME_LIMIT_S:
                process.kill()
                verdict, detail = "hang", f"more than {10 * TIME_LIMIT_S} s"
            else:
                continue
            process.join()
            del running[pipe]
            yield Outcome(program, verdict, detail)


@click.command(help=__doc__)
@click.argument("programs", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--expected", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-j", "--jobs", default=1, show_default=True)
def main(programs: Path, names: tuple[str, ...], expected: Path | None, jobs: int) -> None:
    folder = expected or programs.with_name(programs.name + "_outputs")
    files = [p for p in sorted(programs.glob("*.p4")) if not names or any(n in p.name for n in names)]
    counts: Counter[str] = Counter()
    for outcome in outcomes(files, folder, jobs):
        counts[outcome.verdict] += 1
        if outcome.verdict not in ("right line", "no line"):
            print(f"{outcome.program.name}: {outcome.verdict}: {outcome.detail}", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    sys.exit(1 if counts["accepted"] or counts["crash"] or counts["hang"] else 0)


if __name__ == "__main__":
    main()
