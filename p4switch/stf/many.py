"""Running packet tests: one, or folders of them in parallel."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from p4switch.compiler import compile_program
from p4switch.engine import build, load
from p4switch.errors import UserError
from p4switch.stf.language import parse
from p4switch.stf.runner import Runner

TIME_LIMIT_S = 60.0
"""Of one test, compilation included."""


def run_test(
    program: str | Path,
    test: str | Path,
    include_dirs: Sequence[str | Path] = (),
    switch: str = "builtin",
    tell: Callable[[int, str], object] = lambda line, text: None,
) -> None:
    """Runs the test in file `test` on the P4 program in file `program`. Raises UserError where it does not hold.

    `switch` is "builtin" or "bmv2". `tell` gets what the program says on the built-in one, with the line of the packet.
    """
    commands = parse(Path(test).read_text())
    compiled = compile_program(program, include_dirs)
    if switch == "bmv2":
        from p4switch.stf.bmv2_rig import run_on_bmv2

        run_on_bmv2(compiled.json, commands)
        return
    instance = load().Switch(str(build(compiled.json)), tick_ns=1000)
    Runner(compiled.json, instance, tell).run(commands)


@dataclass(frozen=True, slots=True)
class Result:
    """`cause` is None for a test that passed, else one line."""

    test: Path
    cause: str | None
    seconds: float
    said: Sequence[tuple[int, str]] = ()  # by the program, with the line of the packet


def find_tests(paths: Iterable[str | Path]) -> list[Path]:
    """The `.stf` files in `paths`, files or folders. Raises UserError for a path without any."""
    tests: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(path.glob("*.stf"))
            if not found:
                raise UserError(f"{path}: expected a folder with .stf files")
            tests += found
        elif path.is_file():
            tests.append(path)
        else:
            raise UserError(f"{path}: no such file or folder")
    return tests


def _child(test: Path, switch: str, pipe: Connection) -> None:
    cause: str | None = None
    said: list[tuple[int, str]] = []
    try:
        program = test.with_suffix(".p4")
        if not program.is_file():
            raise UserError(f"no program {program.name} beside it")
        run_test(program, test, switch=switch, tell=lambda line, text: said.append((line, text)))
    except UserError as error:
        cause = str(error).splitlines()[0]
    except Exception as error:  # a defect of ours: reported like any other failure, with its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = f"internal error: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        cause = cause.splitlines()[0]
    pipe.send((cause, said))


def run_tests(
    tests: Sequence[Path], jobs: int = 1, time_limit_s: float = TIME_LIMIT_S, switch: str = "builtin"
) -> Iterator[Result]:
    """Runs tests, each in a process of its own, `jobs` at a time; results come as they finish."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tests))
    running: dict[Connection, tuple[Path, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                test = waiting.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(test, switch, sender), daemon=True)
                process.start()
                sender.close()
                running[receiver] = test, process, time.monotonic()
            ready = wait(list(running), timeout=0.2)
            now = time.monotonic()
            for pipe, (test, process, start) in list(running.items()):
                said: list[tuple[int, str]] = []
                if pipe in ready:
                    try:
                        cause, said = pipe.recv()
                        process.join()
                    except EOFError:
                        process.join()
                        cause = f"crashed with exit status {process.exitcode}"
                elif now - start > time_limit_s:
                    process.kill()
                    process.join()
                    cause = f"took more than {time_limit_s:g} s"
                else:
                    continue
                del running[pipe]
                pipe.close()
                yield Result(test, cause, now - start, said)
    finally:
        for _, process, _ in running.values():
            process.kill()


def run_folder(
    paths: Iterable[str | Path], jobs: int = 1, time_limit_s: float = TIME_LIMIT_S, switch: str = "builtin"
) -> bool:
    """Runs the tests in `paths` on `switch` ("builtin" or "bmv2").

    Prints what programs say, a line a failure, then `N passed, M failed`. True if all passed.
    """
    tests = find_tests(paths)
    _prepare(switch)
    failed = 0
    for result in run_tests(tests, jobs, time_limit_s, switch):
        for line, text in result.said:
            print(f"{result.test}:{line}: {text}", flush=True)
        if result.cause is not None:
            failed += 1
            print(f"{result.test}: {result.cause}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed", flush=True)
    return failed == 0


def _prepare(switch: str) -> None:
    """Loads once what every test needs, before the processes are forked."""
    import p4switch.compiler.bmv2
    import p4switch.compiler.frontend
    import p4switch.compiler.p4info  # noqa: F401

    if switch == "bmv2":
        from p4switch.stf.bmv2_rig import require

        require()
    else:
        load()
