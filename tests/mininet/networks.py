"""Runs on Mininet networks, one at a time on this machine, because each needs its processors."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psutil
import pytest

from control_plane import bmv2_process
from harness.measure.results import Result, load_all
from harness.worlds.mininet import package
from harness.worlds.mininet.state import State, runs
from tests.e2e.runs import MAIN, forked

REASON = package.missing()
needs_mininet = pytest.mark.skipif(REASON is not None, reason=REASON or "")
needs_bmv2 = pytest.mark.skipif(
    shutil.which(bmv2_process.EXECUTABLE) is None, reason=f"{bmv2_process.EXECUTABLE} is not in PATH"
)
_LOCK = Path(tempfile.gettempdir()) / "p4cc-mininet-tests.lock"
_PATIENCE_S = 120.0


@contextmanager
def alone() -> Iterator[None]:
    """Keep other tests on this machine from having a network meanwhile."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def p4cc(*arguments: str) -> str:
    """Run `p4cc ARGUMENTS`, which must succeed, and return its stderr."""
    done = forked(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def run_on(switch: str, *arguments: str, out: Path) -> Result:
    """Return the run `p4cc run ARGUMENTS` on one kind of switch. Its checks must hold; its times may vary."""
    with alone():
        p4cc("run", *arguments, "--world", "mininet", "--switch", switch, "--no-report", "--out", str(out))
    (result,) = load_all(out)
    assert result.summary["ended"] == "done"
    assert [check["name"] for check in result.summary["checks"] if not check["holds"]] == []
    return result


@cache
def _make_hosts() -> None:
    """Compile the hosts before a test starts, because that takes a minute and prints a line that the test would see."""
    code = "from harness.worlds.native_hosts import use_native_hosts; use_native_hosts()"
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=500, check=True)


class Running:
    """A long `p4cc run` in the background, on a k-ary fat-tree."""

    def __init__(self, folder: Path, k: int) -> None:
        _make_hosts()
        command = ["run", "incast", "--world", "mininet", "--cc", "hpcc", "--dilation", "100000"]
        for setting in (f"topology.k={k}", "workload.senders=1", "workload.size_bytes=100_000_000"):
            command += ["--set", setting]
        command += ["--out", str(folder / "out")]
        self.process = subprocess.Popen([*MAIN, *command], stderr=subprocess.PIPE, text=True, start_new_session=True)

    def wait_for(self, condition: Callable[[], bool], every_s: float = 0.05) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end, "it did not happen"
            time.sleep(every_s)

    def state(self) -> tuple[Path, State]:
        """Return the state once all processes are there."""
        found: list[tuple[Path, State]] = []

        def there() -> bool:
            found[:] = [(p, s) for p, s in runs() if s.owner.pid == self.process.pid and s.processes]
            return bool(found)

        self.wait_for(there)
        return found[0]

    def end(self, number: int | None = None) -> tuple[int, str]:
        """Return (exit status, stderr), after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=_PATIENCE_S)
        return self.process.returncode, errors


@contextmanager
def running(folder: Path, k: int = 2) -> Iterator[Running]:
    """Yield a run that is killed at the end of the block, if it still exists."""
    with alone():
        run = Running(folder, k)
        try:
            yield run
        finally:
            if run.process.poll() is None:
                run.process.send_signal(signal.SIGTERM)
                run.process.communicate(timeout=_PATIENCE_S)


def namespaces(state: State) -> dict[str, int]:
    """Return open descriptors of the network namespaces of a run's processes, by name.

    As long as they are open, no later namespace gets one of the names, which are numbers.
    """
    files = {os.readlink(file): file for file in (f"/proc/{process.pid}/ns/net" for process in state.processes)}
    return {name: os.open(file, os.O_RDONLY | os.O_CLOEXEC) for name, file in files.items()}


def nothing_left(path: Path, state: State, spaces: dict[str, int]) -> list[str]:
    """Return the remains of a finished run: processes, folder, and namespaces, which contain all interfaces.

    The descriptors of the namespaces are closed if nothing is left.
    """
    left = [f"process {process.pid}" for process in state.processes if process.find() is not None]
    left += [str(path)] if path.exists() else []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if (space := os.readlink(f"/proc/{pid}/ns/net")) in spaces:
                left.append(f"{space} of process {pid}")
    for number in () if left else spaces.values():
        os.close(number)
    return left
