"""Processes that carry out one virtual run together: docs/decisions/0005-workers.md.

The network is built once. Then the process forks, and each worker runs its own nodes. All of them
execute the same code of the world. They synchronize in calls of `gather`, `agree` or `either`, and
at the end of each of the fabric's windows. The first worker is the original process, and the only
one that returns from the run.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol, TypeVar

from harness.errors import DeadWorkerError, passed_on
from harness.plan.run import Run
from harness.worlds.expected import Expected, best_workers, expected
from harness.worlds.ranks import Ranks
from p4switch import processes
from p4switch.errors import UserError
from p4switch.fabric import Fabric

MOST_WORKERS = 64
AUTO = "auto"
# Number of polls before a worker sleeps: some 200 us. The windows of two workers mostly differ by
# less, and waking up takes some 50 us in a virtual machine.
_SPINS = 20_000
_LOOK_S = 0.1  # interval of checks for ended workers
_Value = TypeVar("_Value")


class Crew(Protocol):
    """Workers of one run."""

    count: int
    own_memory: bool
    """True if the workers share no memory."""

    @property
    def first(self) -> bool:
        """True in the process that writes and prints."""

    def has(self, node: int) -> bool:
        """Return whether this worker runs a node of the fabric."""

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which all workers exist."""

    def gather(self, value: _Value) -> list[_Value]:
        """Return the values of all workers, by rank, at the first worker; nothing at the others."""

    def agree(self, value: _Value) -> _Value:
        """Return the first worker's value at all workers."""

    def either(self, value: bool) -> bool:
        """Return at all workers whether any worker's value is true."""

    def tell(self, data: bytes, others: bool = False) -> None:
        """Send a message to all workers, including this one, or to the others only.

        It is delivered at the next synchronization.
        """


@dataclass(frozen=True)
class _Process:
    """Forked worker.

    `errors` is the end of a pipe for the exception with which it may end.
    """

    rank: int
    pid: int
    errors: int


class Joined:
    """Workers that have joined their fabrics, whatever their communication."""

    def __init__(
        self,
        fabric: Fabric,
        owners: Sequence[int],
        rank: int,
        count: int,
        hear: Callable[[list[bytes]], object],
        on_start: Callable[[int], object] | None,
    ) -> None:
        """Join the workers.

        `owners` is by node of the fabric. `hear` gets the messages of workers, by rank, each in
        order of sending. `on_start` is for tests: it is called with the rank when a worker starts.
        """
        self.rank = rank
        self.count = count
        self._fabric = fabric
        self._owners = owners
        self._hear = hear
        self._on_start = on_start

    @property
    def first(self) -> bool:
        return self.rank == 0

    def has(self, node: int) -> bool:
        return self._owners[node] == self.rank

    def gather(self, value: _Value) -> list[_Value]:
        parts = self._fabric.gather(b"" if self.first else pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        return [value, *map(pickle.loads, parts[1:])] if self.first else []

    def agree(self, value: _Value) -> _Value:
        values = self._fabric.gather(pickle.dumps(value) if self.first else b"", to_all=True)
        return value if self.first else pickle.loads(values[0])

    def either(self, value: bool) -> bool:
        return any(data == b"1" for data in self._fabric.gather(b"1" if value else b"0", to_all=True))

    def tell(self, data: bytes, others: bool = False) -> None:
        self._fabric.broadcast(data, others)

    def _begin(self) -> None:
        if self._on_start is not None:
            self._on_start(self.rank)


class Workers(Joined):
    """Several workers, each of which is a forked process.

    Only the first one returns from `at_work`.
    """

    own_memory = False

    def __init__(
        self,
        fabric: Fabric,
        owners: Sequence[int],
        count: int,
        hear: Callable[[list[bytes]], object],
        on_start: Callable[[int], object] | None = None,
    ) -> None:
        super().__init__(fabric, owners, 0, count, hear, on_start)
        self._parent = os.getpid()
        self._processes: list[_Process] = []

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the workers during the block.

        Raises the exception of a worker that fails, and DeadWorkerError if one ends before its work
        is done.
        """
        memory = mmap.mmap(-1, Fabric.shared_bytes(self.count))
        gc.freeze()  # objects that the garbage collector does not traverse are not copied
        try:
            with _no_interrupts():  # no interrupt may come between a fork and the recording of its process id
                for rank in range(1, self.count):
                    if not self._fork(rank):
                        break
            if self.rank:
                self._be_worker()
            self._begin()
            self._join(memory)
            yield
        except BaseException as error:
            if self.rank:
                self._end_by(error)
            raise
        finally:
            if self.rank:
                self._wait_to_be_ended()
            self._end_others()
            gc.unfreeze()

    def _fork(self, rank: int) -> bool:
        """Fork a worker; return whether this is still the original process."""
        try:
            pid, errors, own_end = _forked()
        except OSError as error:
            raise UserError(
                f"--workers {self.count}: cannot start a worker: {error.strerror}; expected fewer"
            ) from error
        if pid:
            os.close(own_end)
            self._processes.append(_Process(rank, pid, errors))
            return True
        os.close(errors)
        for process in self._processes:
            os.close(process.errors)
        self._processes = []
        self.rank, self._errors = rank, own_end
        return False

    def _join(self, memory: mmap.mmap) -> None:
        self._fabric.join(
            self.rank,
            self.count,
            self._owners,
            deliver=self._hear,
            memory=memory,
            waiting=self._look_at_others,
            spins=_SPINS if self.count <= processes.processors() else 0,
        )

    # Lifetime

    def _be_worker(self) -> None:
        """Prepare a new worker, which ignores Ctrl-C and ends with the first one."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        processes.end_with_parent(signal.SIGKILL)
        if os.getppid() != self._parent:
            os._exit(1)

    def _end_by(self, error: BaseException) -> NoReturn:
        """Pass an exception on to the first worker: a user error unchanged, any other with its traceback."""
        passed = passed_on(error)
        if isinstance(passed, RuntimeError):
            passed = RuntimeError(f"worker {self.rank + 1} of {self.count}:\n{passed}")
        with contextlib.suppress(OSError):
            os.write(self._errors, pickle.dumps(passed))
        os._exit(1)

    def _wait_to_be_ended(self) -> NoReturn:
        """Wait until the first worker ends this process.

        The first worker may not yet have seen that all workers reached the last synchronization.
        """
        while os.getppid() == self._parent:
            time.sleep(_LOOK_S)
        os._exit(1)

    def _look_at_others(self) -> None:
        """Check that the other workers still exist, while waiting for them."""
        if self.rank:
            if os.getppid() != self._parent:
                os._exit(1)
            return
        for process in self._processes:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if pid:
                self._processes.remove(process)
                self._raise_for(process, status)

    def _raise_for(self, process: _Process, status: int) -> NoReturn:
        with os.fdopen(process.errors, "rb") as pipe:
            pickled = pipe.read()
        if pickled:
            raise pickle.loads(pickled)
        code = os.waitstatus_to_exitcode(status)
        raise DeadWorkerError(
            f"worker {process.rank + 1} of {self.count} (process {process.pid}) {processes.how_ended(code)} "
            "before the run was done; was there enough memory?"
        )

    def _end_others(self) -> None:
        """End the other workers, which have nothing more to do."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            os.waitpid(process.pid, 0)
            os.close(process.errors)
        self._processes = []


class RankCrew(Joined):
    """Ranks of an MPI program as the workers of one run."""

    own_memory = True

    def __init__(
        self,
        fabric: Fabric,
        owners: Sequence[int],
        ranks: Ranks,
        hear: Callable[[list[bytes]], object],
        on_start: Callable[[int], object] | None = None,
    ) -> None:
        super().__init__(fabric, owners, ranks.rank, ranks.count, hear, on_start)
        self._ranks = ranks

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the ranks during the block; if another rank fails, the first one raises its exception."""
        with self._ranks.at_run():
            self._begin()
            self._fabric.join(self.rank, self.count, self._owners, deliver=self._hear, exchange=self._ranks.exchange)
            yield


def _forked() -> tuple[int, int, int]:
    """Return the child's id, or 0 in the child, and a pipe's ends, for reading and writing.

    Raises OSError if there are too many processes or open files.
    """
    errors, own_end = os.pipe()
    try:
        return os.fork(), errors, own_end
    except OSError:
        os.close(errors)
        os.close(own_end)
        raise


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Defer Ctrl-C during the block.

    A signal mask would not suffice: it applies to one thread, but the main thread is notified of
    signals to others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # it does not return here
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        signal.raise_signal(signal.SIGINT)


class Staff(Protocol):
    """Rule for the number of workers of a run."""

    def __call__(self, run: Run, foreseen: Expected | None = None) -> int:
        """Return the number of workers; `foreseen` is the run's forecast, if it is known.

        Raises UserError if the run cannot be forecast.
        """


def workers_of(wanted: str | None, traced: bool = False) -> Staff:
    """Return the rule for a requested number of workers.

    "auto" or None stands for the scenario's number, or as many as are worthwhile. `traced` means
    that a flow is traced. Raises UserError for an invalid number.
    """
    if wanted is None:
        return lambda run, foreseen=None: workers_of(str(run.scenario.workers or AUTO), traced)(run, foreseen)
    if wanted == AUTO:
        return partial(_workers_for, traced=traced)
    if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted) <= MOST_WORKERS:
        raise UserError(f"--workers {wanted}: expected {AUTO}, or a number from 1 to {MOST_WORKERS}")
    return lambda run, foreseen=None: int(wanted)


def _workers_for(run: Run, foreseen: Expected | None = None, *, traced: bool) -> int:
    return 1 if processes.processors() < 2 else paying_workers(run, foreseen or expected(run), traced)


def paying_workers(run: Run, foreseen: Expected, traced: bool) -> int:
    """Return the worthwhile number of workers on this machine, from a run's forecast.

    `traced` means that a flow is traced.
    """
    if traced and not foreseen.independent:
        return 1
    return best_workers(run, foreseen, min(processes.processors(), MOST_WORKERS))
