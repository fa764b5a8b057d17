"""Mininet runs that are interrupted, killed, or lose a process at random: one line is printed, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from harness.worlds.mininet.state import State, runs
from tests.e2e.runs import MAIN
from tests.mininet.networks import REASON, namespaces, nothing_left
from tools.attack.attack import Attack, Finding

_RUN = ("incast", "--world", "mininet", "--cc", "hpcc", "--set", "topology.k=2", "--set", "workload.senders=1")
_DILATION = ("--dilation", "10000000")  # slow enough that the run would not end by itself
_LATEST_S = 12.0
_APART_S = 0.5  # largest time between two signals
_END_S = 60.0


class MininetRuns(Attack):
    units = "runs"
    short_turns = 4
    memory_bytes = None

    @classmethod
    def missing(cls) -> str | None:
        return REASON

    def __init__(self, folder: Path, corpus: Sequence[Path] = ()) -> None:
        super().__init__(folder, corpus)
        self._process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(_END_S)

    def attempt(self, rng: random.Random) -> int:
        if any(self.folder.iterdir()):  # an attempt that has found something keeps its files
            subprocess.run([*MAIN, "clean"], stdout=subprocess.DEVNULL, timeout=_END_S, check=True)
        process = self._process = subprocess.Popen(
            [*MAIN, "run", *_RUN, *_DILATION, "--out", str(self.folder / "out")],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        )  # fmt: skip
        moment = time.monotonic() + rng.uniform(0, _LATEST_S)
        state: tuple[Path, State] | None = None
        while time.monotonic() < moment:
            state = self._state() or state
            if process.poll() is not None:
                raise Finding(f"it ended by itself: {process.communicate()[1]}")
            time.sleep(0.05)
        spaces = set()
        with contextlib.suppress(OSError):
            spaces = namespaces(state[1]) if state else set()
        what = self._strike(rng, state)
        try:
            _, errors = process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # makes it print where it is
            _, errors = process.communicate()
            raise Finding(f"{what}: it has not ended {_END_S:g} s later: {errors}") from None
        killed = process.returncode == -signal.SIGKILL
        # The process did not handle signals yet: Python was starting, or the command line was being
        # imported.
        importing = process.returncode < 0 and ", in main\n" not in errors
        unready = state is None and (importing or "init_import_site" in errors)
        if not (killed or unready) and ("Traceback" in errors or process.returncode not in (1, 0)):
            raise Finding(f"{what}: exit status {process.returncode}: {errors}")
        if killed:
            subprocess.run([*MAIN, "clean"], stdout=subprocess.DEVNULL, timeout=_END_S, check=True)
        if state is not None:
            self._nothing_left(what, state, spaces)
        left = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]
        if left:
            raise Finding(f"{what}: left {left}; exit status {process.returncode}: {errors}")
        return 1

    def _state(self) -> tuple[Path, State] | None:
        assert self._process is not None
        return next(((p, s) for p, s in runs() if s.owner.pid == self._process.pid and s.processes), None)

    def _strike(self, rng: random.Random, state: tuple[Path, State] | None) -> str:
        """Signal the run itself, as people and sessions do, or one of its processes; return a description."""
        assert self._process is not None
        if state is None or rng.random() < 0.4:
            numbers = rng.choices((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL), k=rng.choice((1, 2)))
            for number in numbers:
                self._process.send_signal(number)
                time.sleep(rng.uniform(0, _APART_S))
            return f"{' and '.join(number.name for number in numbers)} to the run"
        number = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGSTOP))
        victim = rng.choice(state[1].processes).find()
        if victim is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                name = " ".join(victim.cmdline())[-60:]
                if "mininet:" in name:  # the shell that holds a namespace, which a run does not need
                    number = signal.SIGKILL
                os.kill(victim.pid, number)
                return f"{number.name} to {name}"
        self._process.send_signal(signal.SIGTERM)
        return "SIGTERM to the run"

    @staticmethod
    def _nothing_left(what: str, state: tuple[Path, State], spaces: set[str]) -> None:
        end = time.monotonic() + _END_S
        while (left := nothing_left(*state, spaces)) and time.monotonic() < end:
            time.sleep(0.1)
        if left:
            raise Finding(f"{what}: left {left}")
