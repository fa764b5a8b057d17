"""The processes that carry out one virtual run together: docs/decisions/0005-workers.md.

The network is built once; then the process forks, and each worker runs its own nodes of it. All execute the same code
of the world, and meet where they call `gather`, `agree` or `either`, and at the end of each of the fabric's windows.
The first one is the process that was there before, and the only one that leaves the run.
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
# Looks for the others before a worker sleeps: some 200 us. The windows of two workers mostly differ by less, and waking
# up takes some 50 us in a virtual machine.
_SPINS = 20_000
_LOOK_S = 0.1  # of one that is done, at its parent
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
        """Return whether a node of the fabric is this worker's."""

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which all workers exist."""

    def gather(self, value: _Value) -> list[_Value]:
        """Return the values of all workers, by rank, at the first worker; nothing at the others."""

    def agree(self, value: _Value) -> _Value:
        """Return the first worker's value, at all."""

    def either(self, value: bool) -> bool:
        """Return whether any worker's value is true, at all."""

    def tell(self, data: bytes, others: bool = False) -> None:
        """Tell all, this one included, or the others; they get it when they meet next."""


@dataclass(frozen=True)
class _Process:
    """A worker that was forked. `errors` is the end of a pipe that has its exception, if it ends by one."""

    rank: int
    pid: int
    errors: int


class Joined:
    """Workers that have joined their fabrics, however they reach each other."""

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

        `owners`: by node of the fabric. `hear` gets what workers `tell`, by rank, each in its order.

        `on_start` is for tests: called with the rank when a worker begins.
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
        return [pickle.loads(data) for data in self._fabric.gather(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))]

    def agree(self, value: _Value) -> _Value:
        values = self._fabric.gather(pickle.dumps(value if self.first else None), to_all=True)
        agreed: _Value = pickle.loads(values[0])
        return agreed

    def either(self, value: bool) -> bool:
        return any(data == b"1" for data in self._fabric.gather(b"1" if value else b"0", to_all=True))

    def tell(self, data: bytes, others: bool = False) -> None:
        self._fabric.tell(data, others)

    def _begin(self) -> None:
        if self._on_start is not None:
            self._on_start(self.rank)


class Workers(Joined):
    """Several workers, each a process that was forked. Only the first one comes out of `at_work`."""

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

        Raises what a worker fails by, and DeadWorkerError if one ends before its work is done.
        """
        memory = mmap.mmap(-1, Fabric.shared_bytes(self.count))
        gc.freeze()  # what is not walked is not copied
        try:
            with _no_interrupts():  # between a fork and its number's being known
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
            told=self._hear,
            memory=memory,
            waiting=self._look_at_others,
            spins=_SPINS if self.count <= processes.processors() else 0,
        )

    # Life and death

    def _be_worker(self) -> None:
        """Prepare a new worker, which ignores Ctrl-C and ends with the first one."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        processes.end_with_parent(signal.SIGKILL)
        if os.getppid() != self._parent:
            os._exit(1)

    def _end_by(self, error: BaseException) -> NoReturn:
        """Pass an error on to the first worker: a user error unchanged, any other with its traceback."""
        passed = passed_on(error)
        if isinstance(passed, RuntimeError):
            passed = RuntimeError(f"worker {self.rank + 1} of {self.count}:\n{passed}")
        with contextlib.suppress(OSError):
            os.write(self._errors, pickle.dumps(passed))
        os._exit(1)

    def _wait_to_be_ended(self) -> NoReturn:
        """Wait for the first worker, which may not have seen yet that all came to the last meeting."""
        while os.getppid() == self._parent:
            time.sleep(_LOOK_S)
        os._exit(1)

    def _look_at_others(self) -> None:
        """Check, while waiting for others, that they still exist."""
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
    """The ranks as the workers of one run."""

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
        """Run the ranks during the block; the first one raises what another one fails by."""
        with self._ranks.at_run():
            self._begin()
            self._fabric.join(self.rank, self.count, self._owners, told=self._hear, exchange=self._ranks.exchange)
            yield


def _forked() -> tuple[int, int, int]:
    """Return the child's id, or 0 in the child, and a pipe's ends, to read and to write.

    Raises OSError.
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

    A mask would not do: it is one thread's, and the main one hears of what the others get.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # it does not come here
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
        """Return the number of workers; `foreseen` is the run's forecast, if known.

        Raises UserError.
        """


def workers_of(wanted: str | None, traced: bool = False) -> Staff:
    """Return the rule for a requested number, "auto", or None: the scenario's number, or as many as pay.

    `traced`: one of its flows is. Raises UserError.
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
    """Return how many workers pay here, by a run's forecast.

    `traced`: one of its flows is.
    """
    if traced and not foreseen.independent:
        return 1
    return best_workers(run, foreseen, min(processes.processors(), MOST_WORKERS))
