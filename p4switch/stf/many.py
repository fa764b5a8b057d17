"""Running packet tests: one, or folders of them in parallel."""

from __future__ import annotations

import gc
import multiprocessing
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from p4switch import ir
from p4switch.bmv2 import read
from p4switch.bmv2.writer import to_json
from p4switch.compiler import compile_program
from p4switch.coverage import Coverage
from p4switch.engine import build, build_traced, load
from p4switch.errors import UserError
from p4switch.foreign_files import read_text
from p4switch.processes import AwakeClock
from p4switch.stf.draws import draws, with_draws
from p4switch.stf.language import Command, StfError, parse
from p4switch.stf.runner import Runner
from p4switch.trace import Decoder, Trace

TIME_LIMIT_S = 60.0
"""Time limit of one test, compilation included; see `AwakeClock`."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of tests.

    `program` replaces the .p4 file next to each test. `switch` is "builtin" or "bmv2". With `trace`, the events of all
    packets are kept, not only those of failed tests. With `coverage`, the coverage of the packets is kept. Both require
    the built-in switch.
    """

    switch: str = "builtin"
    program: Path | None = None
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    trace: bool = False
    coverage: bool = False
    arch: str | None = None
    pipeline: int | None = None


_DEFAULT = Options()


@dataclass(slots=True)
class Outcome:
    """Outcome of a test, except its error, by the lines of the packets in the test."""

    said: list[tuple[int, str]] = field(default_factory=list)  # messages of the program
    traces: dict[int, Trace] = field(default_factory=dict)
    coverage: Coverage = field(default_factory=Coverage)


def run_test(
    program: str | Path,
    test: str | Path,
    include_dirs: Sequence[str | Path] = (),
    switch: str = "builtin",
    tell: Callable[[int, str], object] = lambda line, text: None,
    defines: Mapping[str, str] | None = None,
    arch: str | None = None,
    pipeline: int | None = None,
) -> None:
    """Run the test in file `test` on the P4 program in file `program`, or on one `pipeline` of it.

    On the built-in switch, `tell` is called with the program's messages and the line of the packet.

    Raises UserError if the test fails.
    """
    outcome = Outcome()
    try:
        macros = tuple((defines or {}).items())
        options = Options(switch, Path(program), tuple(map(Path, include_dirs)), macros, arch=arch, pipeline=pipeline)
        _run(Path(test), options, outcome)
    finally:
        for line, text in outcome.said:
            tell(line, text)


def _run(test: Path, options: Options, outcome: Outcome) -> None:
    program = options.program or test.with_suffix(".p4")
    if not program.is_file():
        raise UserError(f"no program {program.name} beside it" if options.program is None else f"no file {program}")
    commands = parse(read_text(test))
    compiled = compile_program(program, options.include_dirs, dict(options.defines), options.arch, options.pipeline)
    own = with_draws(read(compiled.json), commands) if draws(commands) else compiled.program
    if options.switch == "bmv2":
        from p4switch.stf.bmv2_rig import run_on_bmv2

        run_on_bmv2(to_json(own), commands)
        return
    if options.trace or options.coverage:
        _run_traced(own, commands, options, outcome)
    else:
        try:
            instance = load().Switch(str(build(own)), tick_ns=1000)
            Runner(own, instance, lambda *said: outcome.said.append(said)).run(commands)
        except StfError:
            # Packet tests are deterministic, so the test is repeated with tracing to find the cause.
            outcome.said.clear()
            _run_traced(own, commands, options, outcome)
            raise


def _run_traced(program: ir.Program, commands: Sequence[Command], options: Options, outcome: Outcome) -> None:
    traced = build_traced(program)
    instance = load().Switch(str(traced.library), tick_ns=1000)
    instance.set_tracing(True)
    runner = Runner(program, instance, lambda *said: outcome.said.append(said), Decoder(traced))
    try:
        runner.run(commands)
    except StfError as error:
        if not options.trace:
            outcome.traces = {k: v for k, v in runner.traces.items() if k == error.packet_line}
        raise
    finally:
        if options.trace:
            outcome.traces = runner.traces
        if options.coverage:
            outcome.coverage.add(traced.program.points, instance.passed())


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a test. `cause` is None for a test that passed, else one line. `details` are further lines."""

    test: Path
    cause: str | None
    seconds: float
    details: Sequence[str] = ()
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def said(self) -> Sequence[tuple[int, str]]:
        """Messages of the program, with the line of the packet."""
        return self.outcome.said


def find_tests(paths: Iterable[str | Path]) -> list[Path]:
    """Return the `.stf` files in `paths`, which are files or folders.

    Raises UserError for a folder without `.stf` files, and for a file of another type.
    """
    tests: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            tests_here = sorted(path.glob("*.stf"))
            if not tests_here:
                raise UserError(f"{path}: expected a folder with .stf files")
            tests += tests_here
        elif not path.is_file():
            raise UserError(f"{path}: no such file or folder")
        elif path.suffix != ".stf":
            raise UserError(
                f"{path}: expected a .stf file; its program is the .p4 file of the same name beside it "
                "(p4cc stf X.stf), or the one that --p4 names (p4cc stf --p4 Y.p4 X.stf)"
            )
        else:
            tests.append(path)
    return tests


def _child(test: Path, options: Options, pipe: Connection) -> None:
    # The parent's garbage must not be collected in this process: the finalizer of a gRPC server would wait for
    # threads that do not exist here.
    gc.freeze()
    lines: list[str] = []
    outcome = Outcome()
    try:
        _run(test, options, outcome)
    except UserError as error:
        lines = str(error).splitlines()
    except Exception as error:  # an internal error is also reported as a failure, with its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        cause = f"internal error: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        lines = cause.splitlines()[:1]
    pipe.send((lines, outcome))


def run_tests(
    tests: Sequence[Path], jobs: int = 1, time_limit_s: float = TIME_LIMIT_S, options: Options = _DEFAULT
) -> Iterator[Result]:
    """Run each test in its own process, `jobs` of them at a time, and yield the results as they finish."""
    context = multiprocessing.get_context("fork")
    clock = AwakeClock()
    waiting = list(reversed(tests))
    running: dict[Connection, tuple[Path, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                test = waiting.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(test, options, sender), daemon=True)
                process.start()
                sender.close()
                running[receiver] = test, process, clock.seconds()
            ready = wait(list(running), timeout=0.2)
            now = clock.seconds()
            for pipe, (test, process, start) in list(running.items()):
                lines: list[str] = []
                outcome = Outcome()
                if pipe in ready:
                    try:
                        lines, outcome = pipe.recv()
                        process.join()
                    except EOFError:
                        process.join()
                        lines = [f"crashed with exit status {process.exitcode}"]
                elif now - start > time_limit_s:
                    process.kill()
                    process.join()
                    lines = [f"took more than {time_limit_s:g} s"]
                else:
                    continue
                del running[pipe]
                pipe.close()
                yield Result(test, lines[0] if lines else None, now - start, lines[1:], outcome)
    finally:
        for _, process, _ in running.values():
            process.kill()


def run_folder(
    paths: Iterable[str | Path],
    jobs: int = 1,
    time_limit_s: float = TIME_LIMIT_S,
    options: Options = _DEFAULT,
    each: Callable[[Result], object] = lambda result: None,
) -> bool:
    """Run the tests in `paths`; return whether all passed.

    Prints the messages of programs, a line for each failure with the differences of its packet, and
    `N passed, M failed`. `each` is called with every result after the result is printed.
    """
    tests = find_tests(paths)
    _prepare(options.switch)
    failed = 0
    for result in run_tests(tests, jobs, time_limit_s, options):
        for line, text in result.said:
            print(f"{result.test}:{line}: {text}", flush=True)
        if result.cause is not None:
            failed += 1
            print("\n".join([f"{result.test}: {result.cause}", *result.details]), flush=True)
        each(result)
    print(f"{len(tests) - failed} passed, {failed} failed", flush=True)
    return failed == 0


def junit(results: Sequence[Result]) -> bytes:
    """Return the results as JUnit XML for test runners and CI."""
    suite = Element(
        "testsuite", name="p4cc stf", tests=str(len(results)), failures=str(sum(r.cause is not None for r in results)),
        time=f"{sum(r.seconds for r in results):.3f}",
    )  # fmt: skip
    for result in sorted(results, key=lambda r: r.test):
        case = SubElement(
            suite, "testcase", classname=str(result.test.parent), name=result.test.stem, file=str(result.test),
            time=f"{result.seconds:.3f}",
        )  # fmt: skip
        if result.cause is not None:
            failure = SubElement(case, "failure", message=result.cause)
            traces = [line for trace in result.outcome.traces.values() for line in trace.text().splitlines()]
            failure.text = "\n".join([result.cause, *result.details, *traces])
        if result.said:
            SubElement(case, "system-out").text = "\n".join(f"{line}: {text}" for line, text in result.said)
    document: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return document


def _prepare(switch: str) -> None:
    """Load the modules and libraries that all tests need, before processes are forked."""
    import p4switch.compiler.bmv2
    import p4switch.compiler.frontend
    import p4switch.compiler.p4info  # noqa: F401

    if switch == "bmv2":
        from p4switch.stf.bmv2_rig import require

        require()
    else:
        load()
