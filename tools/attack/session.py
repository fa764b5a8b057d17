"""Attacks of one kind in a process of their own, turn by turn, until the time is over."""

from __future__ import annotations

import importlib
import inspect
import multiprocessing
import os
import pkgutil
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tools.attack import kinds
from tools.attack.attack import Attack, Finding

_START_S = 1800.0  # a kind may first have to compile its requirements
_END_S = 20.0
_LOOK_S = 0.5  # interval of checks for the stop request
_FINDINGS = 20  # number of findings of one kind after which the session ends


@dataclass
class Outcome:
    """Outcome of one kind."""

    turns: int = 0
    count: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(kinds.__path__))


def kind(name: str) -> type[Attack]:
    """Return the kind in the file of that name."""
    module = importlib.import_module(f"{kinds.__name__}.{name}")
    (chosen,) = (
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Attack) and value.__module__ == module.__name__
    )
    return chosen


def _work(
    name: str, seed: int, first: int, deadline: float, turns: int | None, corpus: Sequence[Path], pipe: Connection
) -> None:
    """Attack until `deadline` (time.monotonic) or for `turns`.

    Each attempt is reported as (turn, count, finding, files).
    """
    os.setsid()  # so that its child processes can be ended with it
    # A shell or nohup may have set these signals to be ignored, also for all children.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    attack_class = kind(name)
    if attack_class.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (attack_class.memory_bytes, attack_class.memory_bytes))
    with tempfile.TemporaryDirectory(prefix=f"p4cc-attack-{name}-") as folder:
        attack = attack_class(Path(folder), corpus)
        turn = first
        try:
            while time.monotonic() < deadline and (turns is None or turn < first + turns):
                pipe.send((turn, None, "", {}))
                try:
                    pipe.send((turn, attack.attempt(random.Random(f"{name}:{seed}:{turn}")), "", {}))
                except Finding as finding:
                    pipe.send((turn, 1, str(finding), finding.files))
                except Exception:  # an error of the attack itself, or one that the attack did not expect
                    pipe.send((turn, 1, traceback.format_exc(), {}))
                turn += 1
        finally:
            attack.close()


def run(
    name: str,
    *,
    seed: int,
    seconds: float,
    turns: int | None = None,
    first: int = 0,
    corpus: Sequence[Path] = (),
    keep: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Attack by the kind `name` for a time or a number of turns, or until `stop` is set.

    Files that reproduce a finding are left in `keep`.
    """
    stop = stop or threading.Event()
    context = multiprocessing.get_context("spawn")
    outcome = Outcome()
    begin = time.monotonic()
    deadline = begin + seconds
    turn = first
    while time.monotonic() < deadline and len(outcome.findings) < _FINDINGS and not stop.is_set():
        left = None if turns is None else first + turns - turn
        if left == 0:
            break
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(name, seed, turn, deadline, left, corpus, sender))
        process.start()
        sender.close()
        try:
            turn = _watch(name, seed, process, receiver, turn, outcome, keep, tell, stop)
        finally:
            _end(process)
            receiver.close()
    outcome.seconds = time.monotonic() - begin
    return outcome


def _watch(
    name: str, seed: int, process: multiprocessing.process.BaseProcess, pipe: Connection, turn: int, outcome: Outcome,
    keep: Path | None, tell: Callable[[str], None], stop: threading.Event,
) -> int:
    """Watch the process until it has ended, and return the turn to continue with."""
    patience_s, going_on = _START_S, False

    def found(what: str, files: dict[str, bytes]) -> None:
        again = f"python -m tools.attack {name} --seed {seed} --turn {turn}"
        first_line = next(iter(reversed(what.strip().splitlines())), what)
        if first_line not in outcome.findings:
            outcome.findings.append(first_line)
            tell(f"{name}: {first_line} ({again})")
            if keep is not None:
                _keep(keep / f"{name}-{seed}-{turn}", f"{again}\n\n{what}\n", files)

    while True:
        try:
            late = time.monotonic() + patience_s
            while not pipe.poll(_LOOK_S):
                if stop.is_set():
                    return turn
                if time.monotonic() > late:
                    found(f"an attempt takes more than {patience_s:g} s", {})
                    return turn + 1
            if stop.is_set():
                return turn
            turn, count, what, files = pipe.recv()
        except EOFError:
            process.join(_END_S)
            if going_on or process.exitcode:
                status = process.exitcode or 0
                how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                found(f"the process of an attempt ended: {how}", {})
                return turn + 1
            return turn + 1
        going_on = count is None
        patience_s = kind(name).patience_s
        if count is not None:
            outcome.turns += 1
            outcome.count += count
        if what:
            found(what, files)


def _keep(folder: Path, text: str, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "finding.txt").write_text(text)
    for file, data in files.items():
        (folder / file).write_bytes(data)


def _end(process: multiprocessing.process.BaseProcess) -> None:
    """End a process and all processes that it has started."""
    assert process.pid is not None
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        process.join(_END_S if number == signal.SIGTERM and process.is_alive() else 0.2)
    process.join(_END_S)
    if process.is_alive():
        print(f"process {process.pid} of an attack does not end", file=sys.stderr)
