"""Launcher that starts the processes of a run, watches them, and ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Literal

import psutil

from harness.errors import CheckError
from harness.worlds.mininet import isolation
from p4switch import processes

_START_S = 60.0
_LOOK_S = 1.0  # interval of checks whether processes are alive
_LOG_LINES = 6
_STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


def _as_child() -> None:
    """Prepare a process that is about to become a command of the run."""
    processes.end_with_parent(signal.SIGKILL)
    isolation.above_others()


class ProcessDiedError(CheckError):
    """A switch or a host of a run ended early or was stopped."""


@dataclass
class Process:
    """Process of a run.

    `kind` is "switch" or "host". `status` is its exit status, the negated number of the signal that
    ended it, or None while it lives.
    """

    kind: str
    name: str
    log: Path
    pid: int = -1
    status: int | None = None
    popen: subprocess.Popen[bytes] | None = None  # None: the zygote has forked the process

    def signal(self, number: int) -> None:
        if self.status is None and self.pid > 0:
            os.kill(self.pid, number)

    def stopped(self) -> bool:
        """Return whether a signal has stopped the process."""
        try:
            return self.pid > 0 and psutil.Process(self.pid).status() in _STOPPED
        except psutil.NoSuchProcess:
            return False

    def obituary(self) -> str:
        """Return the message to the user about its death."""
        assert self.status is not None
        how = f"killed by {signal.Signals(-self.status).name}" if self.status < 0 else f"exit status {self.status}"
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        except OSError:
            lines = []
        output = "".join(f"\n    {line}" for line in lines) or " (empty)"
        return f"{self.kind} {self.name} (process {self.pid}) died: {how}; the end of its log:{output}"


class Launcher:
    """Runs processes: built-in switches and hosts, forked from a zygote, and other switches.

    It is a context manager, and no process outlives it. `folder` gets the logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes: dict[str, Process] = {}
        self._connection, theirs = Pipe()
        command = processes.python("-m", "harness.worlds.mininet.zygote", str(theirs.fileno()))
        self._log = folder / "zygote.log"
        with theirs, self._log.open("wb") as log:
            self._zygote = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._ready = False
        self._looked_s = 0.0
        self._watched: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_ready(self) -> None:
        """Wait until the zygote has imported everything.

        Raises ProcessDiedError if it has died or does not answer in time.
        """
        while not self._ready:
            self._receive(_START_S)

    def fork(
        self, name: str, kind: Literal["switch", "host"], arguments: Sequence[str], *, namespace_pid: int | None = None
    ) -> Process:
        """Start a built-in switch or a host, in the network namespace of another process if one is given."""
        process = self._new(kind, name)
        self._connection.send((name, kind, list(arguments), str(process.log), namespace_pid))
        return process

    def run(self, name: str, command: Sequence[str]) -> Process:
        """Start a switch that is a program of its own."""
        process = self._new("switch", name)
        with process.log.open("ab") as log:
            process.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=_as_child
            )
        process.pid = process.popen.pid
        return process

    def watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Watch a process that others start and end; the run's checks report its death, too."""
        self._watched[name] = process

    def _new(self, kind: str, name: str) -> Process:
        assert name not in self.processes, name
        process = self.processes[name] = Process(kind, name, self._folder / f"{name}.log")
        return process

    def check(self) -> None:
        """Raise ProcessDiedError if a process has ended, or was stopped by SIGSTOP."""
        while self._connection.poll():
            self._receive(0)
        for process in self.processes.values():
            self._poll(process)
            if process.status is not None:
                raise ProcessDiedError(process.obituary())
        for name, other in self._watched.items():
            if (status := other.poll()) is not None:
                raise ProcessDiedError(f"{name} (process {other.pid}) {processes.how_ended(status)}")
        if time.monotonic() > self._looked_s + _LOOK_S:
            self._looked_s = time.monotonic()
            for process in (*self.processes.values(), Process("process", "zygote", self._log, self._zygote.pid)):
                if process.stopped():
                    what = f"{process.kind} {process.name} (process {process.pid})"
                    raise ProcessDiedError(f"{what} was stopped (SIGSTOP)")

    def pids(self) -> list[int]:
        """Return the ids of all processes, once the zygote has reported those that it forked.

        Raises ProcessDiedError if a process has died or does not start in time.
        """
        end = time.monotonic() + _START_S
        while unknown := [process.name for process in self.processes.values() if process.pid < 0]:
            if time.monotonic() > end:
                raise ProcessDiedError(f"{', '.join(unknown)} did not start within {_START_S:.0f} s")
            self._receive(_LOOK_S)
        return [process.pid for process in self.processes.values()]

    @property
    def pid(self) -> int:
        """Process id of the zygote."""
        return self._zygote.pid

    @property
    def connection(self) -> Connection:
        """Connection that is readable when a process has ended: call `check` then."""
        return self._connection

    @staticmethod
    def _poll(process: Process) -> None:
        if process.popen is not None and process.status is None:
            process.status = process.popen.poll()

    def _receive(self, timeout_s: float) -> None:
        """Process one message of the zygote."""
        try:
            if not self._connection.poll(timeout_s):
                return
            kind, *rest = self._connection.recv()
        except (EOFError, OSError):
            zygote = Process("process", "zygote", self._log, self._zygote.pid, self._zygote.wait())
            raise ProcessDiedError(zygote.obituary()) from None
        if kind == "ready":
            self._ready = True
        elif kind == "started":
            self.processes[rest[0]].pid = rest[1]
        else:
            self.processes[rest[0]].status = rest[1]

    def stop(self, names: Iterable[str], patience_s: float = 10.0) -> None:
        """Stop processes by SIGTERM and wait for them.

        Raises ProcessDiedError if one ends badly or not at all.
        """
        stopping = [self.processes[name] for name in names]
        for process in stopping:
            self._poll(process)
            process.signal(signal.SIGTERM)
        end = time.monotonic() + patience_s
        while any(process.status is None for process in stopping) and time.monotonic() < end:
            self._receive(0.02)
            for process in stopping:
                self._poll(process)
        for process in stopping:
            if process.status is None:
                raise ProcessDiedError(
                    f"{process.kind} {process.name} (process {process.pid}) does not end within {patience_s:g} s"
                )
            if process.status not in (0, -signal.SIGTERM):
                raise ProcessDiedError(process.obituary())
            del self.processes[process.name]

    def close(self) -> None:
        """End everything, at once."""
        self._connection.close()  # the zygote ends its children, then itself
        others = [process.popen for process in self.processes.values() if process.popen is not None]
        for popen in (*others, self._zygote):
            popen.terminate()
        for popen in (*others, self._zygote):
            try:
                popen.wait(8)
            except subprocess.TimeoutExpired:
                popen.kill()
                popen.wait()
        self.processes.clear()
