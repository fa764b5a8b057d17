"""Processes: commands that p4cc runs and waits for, and settings common to all that it starts."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import multiprocessing.util
import os
import resource
import shutil
import signal
import site
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal

_PR_SET_PDEATHSIG = 1
# Program for an interpreter without -P. Its argument has further folders of modules, and the
# module or the program to run.
_ISOLATED = """
import json, runpy, site, sys
before, added, how, what = json.loads(sys.argv.pop(1))
sys.path[:0] = before
for folder in added:
    site.addsitedir(folder)
if how == "-m":
    runpy.run_module(what, run_name="__main__", alter_sys=True)
else:
    exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
"""
_LOOK_S = 0.5  # interval between two readings of the clock during a wait


class SignalsWait:
    """Context manager that defers the handlers of signals that end a command.

    The handlers are called at `come()` or at the end of the block, so that work is not interrupted
    halfway. Python calls signal handlers in the main thread only, so this has no effect in other
    threads.
    """

    def __init__(self) -> None:
        self._came: list[tuple[int, FrameType | None]] = []
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> SignalsWait:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, lambda *came: self._came.append(came))
        return self

    def come(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        handlers, self._handlers = self._handlers, {}
        came, self._came = self._came, []
        for number, frame in came:
            handlers[number](number, frame)

    def __exit__(self, *_: object) -> None:
        self.come()


class AwakeClock:
    """Clock that does not run while this process is stopped (SIGSTOP, Ctrl-Z).

    The processes that this process waits for are usually stopped at the same time, and limits on
    their time should not count that time. The clock has to be read at least once a second, because
    it adds at most one second between two readings.
    """

    def __init__(self) -> None:
        self._looked_s = time.monotonic()
        self._seconds = 0.0

    def seconds(self) -> float:
        now_s = time.monotonic()
        self._seconds += min(now_s - self._looked_s, 2 * _LOOK_S)
        self._looked_s = now_s
        return self._seconds


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def python(how: Literal["-c", "-m"], what: str, *arguments: str) -> list[str]:
    """Return the command of a new Python process that runs a program (-c) or a module (-m).

    All Python processes are started by this command, which does not search the working folder for
    modules. The working folder may belong to another user: a `harness.py` there would otherwise run
    instead of p4cc's, and in the Mininet world as root.
    """
    if hasattr(sys.flags, "safe_path"):  # 3.11 and later
        return [sys.executable, "-P", how, what, *arguments]
    return isolated(how, what, *arguments)


def isolated(how: Literal["-c", "-m"], what: str, *arguments: str) -> list[str]:
    """Return such a command for a Python without -P, with PYTHONPATH and the user's packages."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    before = [folder for folder in named if os.path.isabs(folder)]
    added = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [sys.executable, "-I", "-c", _ISOLATED, json.dumps([before, added, how, what]), *arguments]


@contextlib.contextmanager
def isolated_spawning() -> Iterator[None]:
    """Keep processes that multiprocessing spawns in the block from importing from the working folder.

    They receive this process's `sys.path` before they import anything else.
    """
    flags = multiprocessing.util._args_from_interpreter_flags  # type: ignore[attr-defined]
    multiprocessing.util._args_from_interpreter_flags = lambda: [*flags(), "-I"]  # type: ignore[attr-defined]
    try:
        yield
    finally:
        multiprocessing.util._args_from_interpreter_flags = flags  # type: ignore[attr-defined]


def end_with_parent(number: int) -> None:
    """Send the calling process signal `number` when its parent ends, however that happens, on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def how_ended(code: int) -> str:
    """Return an exit code in words: "was ended by SIGKILL", "ended with status 1"."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def run(
    command: Sequence[str],
    *,
    timeout_s: float,
    cpu_s: int | None = None,
    stderr: int = subprocess.PIPE,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command without input and keep its output.

    `folder` and `environment` replace those of this process.

    The command has a process group of its own. After a signal, or after `timeout_s` (see
    `AwakeClock`), all processes of the group are ended. Each process of the group is also ended, by
    SIGXCPU, after `cpu_s` of CPU time. Raises OSError or subprocess.TimeoutExpired.
    """
    if cpu_s is not None:
        command = _limited(command, cpu_s)
    # If a signal handler raised an exception within `Popen`, the process would be left behind.
    with SignalsWait() as signals, subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace",
        start_new_session=True, cwd=folder, env=environment,
    ) as process:  # fmt: skip
        try:
            signals.come()
            out, err = _communicate(process, timeout_s)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):  # a signal arrived after the end of the process
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _communicate(process: subprocess.Popen[str], timeout_s: float) -> tuple[str, str]:
    clock = AwakeClock()
    while True:
        try:
            return process.communicate(timeout=_LOOK_S)
        except subprocess.TimeoutExpired as over:
            if clock.seconds() >= timeout_s:
                raise subprocess.TimeoutExpired(over.cmd, timeout_s) from None


def _limited(command: Sequence[str], cpu_s: int) -> Sequence[str]:
    """Return a command that sets the limit of CPU time in a shell and then executes `command`.

    A limit that is set from outside would miss processes that the command has already started.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    _, most_s = resource.getrlimit(resource.RLIMIT_CPU)
    soft_s = cpu_s if most_s == resource.RLIM_INFINITY else min(cpu_s, most_s)
    return ["/bin/sh", "-c", 'ulimit -S -t "$0" && exec "$@"', str(soft_s), *command]
