"""State of running networks on disk, for other commands: a folder for each run in /run/p4cc.

    /run/p4cc/<id>/state.json      the processes of the run, and the switches' P4Runtime addresses
    /run/p4cc/<id>/*               logs, sockets, settings of its processes

A folder is created as `.<id>` and renamed when its state is complete. <id> begins with the id of
the process that makes the run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from p4switch.descriptors import Reserve
from p4switch.errors import UserError
from p4switch.memory import free_reserve

_STATE = "state.json"
_NAME = re.compile(r"\.?(\d+)-[a-z0-9_]{8}")


def root() -> Path:
    """Return the folder that contains the runs' folders."""
    return Path(os.environ.get("P4CC_RUN") or "/run/p4cc")


@dataclass(frozen=True)
class ProcessId:
    """Identity of a process: its number and start time, since numbers are reused."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Return the identity of a process.

        Raises psutil.NoSuchProcess.
        """
        return cls(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """Return the process; None if it has ended, even if its parent has not noticed."""
        try:
            process = psutil.Process(self.pid)
            living = process.create_time() == self.started and process.status() != psutil.STATUS_ZOMBIE
            return process if living else None
        except psutil.NoSuchProcess:
            return None


@dataclass
class State:
    """State of one run.

    `owner` is the process that makes the run; the others normally end with it.
    """

    scenario: str
    owner: ProcessId
    processes: list[ProcessId] = field(default_factory=list)
    switches: dict[str, tuple[str, int]] = field(default_factory=dict)  # name: (address, device id)


class RunFolder:
    """Folder of a run of this process, as a context manager that removes it at the end."""

    def __init__(self, scenario: str) -> None:
        try:
            root().mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix=f".{os.getpid()}-", dir=root()))
            self.state = State(scenario, ProcessId.of(os.getpid()))
            self._write()
            self.path = self.path.rename(self.path.with_name(self.path.name.removeprefix(".")))
            self._reserve = Reserve()
        except OSError as error:
            raise UserError(f"the Mininet world keeps its state in {root()}: {error.strerror}") from None

    def record(self, pids: Iterable[int], switches: dict[str, tuple[str, int]]) -> None:
        """Add processes and switches."""
        for pid in pids:
            try:
                self.state.processes.append(ProcessId.of(pid))
            except psutil.NoSuchProcess:
                continue
        self.state.switches.update(switches)
        self._write()

    def _write(self) -> None:
        scratch = self.path / f".{_STATE}"
        scratch.write_text(json.dumps(asdict(self.state)), encoding="utf-8")
        scratch.rename(self.path / _STATE)

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # otherwise the next run of this process needs the reserve
            free_reserve()
        self._reserve.free()
        shutil.rmtree(self.path, ignore_errors=True)


def runs() -> Iterator[tuple[Path, State]]:
    """Yield all runs of this user that have left a folder, whether their owner is alive or not."""
    for path in sorted(root().glob(f"*/{_STATE}")):
        if not _NAME.fullmatch(path.parent.name) or not _own(path.parent):
            continue
        try:
            tables = json.loads(path.read_text(encoding="utf-8"))
            state = State(
                tables["scenario"],
                ProcessId(**tables["owner"]),
                [ProcessId(**process) for process in tables["processes"]],
                {name: (address, number) for name, (address, number) in tables["switches"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
        yield path.parent, state


def find_switch(name: str) -> tuple[str, int]:
    """Return (address, device id) of a switch of a running network.

    Raises UserError if there is none, or if there are several.
    """
    living = [(path, state) for path, state in runs() if state.owner.find() is not None]
    matches = [(path, state.switches[name]) for path, state in living if name in state.switches]
    if len(matches) == 1:
        return matches[0][1]
    if matches:
        addresses = ", ".join(address for _, (address, _) in matches)
        raise UserError(f"several running networks have a switch {name!r}; name its address: {addresses}")
    known = sorted({switch for _, state in living for switch in state.switches})
    there = f"the running networks have {', '.join(known)}" if known else "no network is running"
    raise UserError(f"no switch {name!r}: {there}; expected a switch's name, or HOST:PORT")


def clean() -> list[str]:
    """End the remaining processes of runs without an owner, remove their folders, and return a description."""
    done = []
    for path, state in runs():
        if state.owner.find() is not None:
            continue
        left = [process for process in (identity.find() for identity in state.processes) if process is not None]
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=5)
        shutil.rmtree(path, ignore_errors=True)
        done.append(f"run {path.name} ({state.scenario}): ended {len(left)} processes, removed {path}")
    known = {path for path, _ in runs()}
    for path in sorted(root().glob("*")):
        named = _NAME.fullmatch(path.name)
        if named and path not in known and _own(path) and not psutil.pid_exists(int(named[1])):
            shutil.rmtree(path, ignore_errors=True)
            done.append(f"removed {path}")
    return done


def _own(path: Path) -> bool:
    """Return whether a path is a folder that this user has made."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
