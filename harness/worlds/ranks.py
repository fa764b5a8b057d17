"""Processes of an MPI program that carry out one run on one or many machines: docs/many-machines.md.

Each rank builds the network and runs its own nodes. The first one plans, writes and prints. The
others follow its commands until it ends. Their data are exchanged in `Ranks.exchange`, which is the
only use of MPI during a run. Each process that mpiexec starts has a child that does the work, and
reports how the child ended.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import importlib.util
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

from harness.errors import DeadWorkerError, passed_on
from p4switch import processes
from p4switch.errors import UserError

MPI = "mpi"  # value of --workers
_SPINS = 200  # polls before a rank sleeps: some 300 us
_FIRST_SLEEP_S = 20e-6
_LONGEST_SLEEP_S = 1e-3
_LOOK_S = 0.1  # interval of checks whether a rank has failed
# Time from MPI's notice of a missing rank until it is reported, so that a better reason can arrive.
_NOTICE_S = 2.0
_ENDED = 3  # exit status of all ranks that the first one ends; a rank's own error has another one
_SHARED = "/dev/shm/mpich_shm_"  # prefix of MPICH's shared files
_PIECE_BYTES = 1 << 30  # largest part of a message, since its length is a C int
# Variables by which launchers tell ranks their place: rank, size, local rank, local size.
_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),  # MPICH, Intel MPI, Slurm
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)
_EXPECTED = "expected it under mpiexec: mpiexec -n 8 p4cc run SCENARIO --workers mpi"
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class _Launched:
    """Place of a process among the ranks, before MPI is initialised."""

    rank: int
    count: int
    local_rank: int
    local_count: int

    @property
    def on_one_machine(self) -> bool:
        return self.local_count == self.count


def _launched() -> _Launched:
    """Return the place of this process.

    Raises UserError if no mpiexec has started it.
    """
    for names in _LAUNCHERS:
        values = [os.environ.get(name, "") for name in names]
        if all(text.isdecimal() for text in values[:2]):
            unknown = values[:2]  # local values of a machine: assume one machine
            return _Launched(*map(int, values if all(text.isdecimal() for text in values) else values[:2] + unknown))
    raise UserError(f"--workers {MPI}: no other ranks were started; {_EXPECTED}")


class Follower(Protocol):
    """World of ranks other than the first."""

    def follow(self) -> None:
        """Take part in the run."""


class Ranks:
    """All ranks, in the view of one of them.

    It is a context manager; when the first rank leaves it, the others end, too.
    """

    def __init__(self, library: Any) -> None:
        """Join the ranks; `library` is the module mpi4py.MPI."""
        self._mpi = library
        self._all = library.COMM_WORLD.Dup()
        self._failures = library.COMM_WORLD.Dup()  # carries one message to the first rank: why the run cannot continue
        self.rank: int = self._all.Get_rank()
        self.count: int = self._all.Get_size()
        self._watcher = os.getppid()
        self._busy = False  # the others expect further messages of this run, or its result
        self._over = False  # the first rank has announced the end
        here = library.COMM_WORLD.Split_type(library.COMM_TYPE_SHARED)
        self.count_here: int = here.Get_size()  # number of ranks on this machine
        self._spins = _SPINS if self.count_here <= processes.processors() else 0
        here.Barrier()
        if not here.Get_rank():
            _unlink_shared_memory()
        here.Free()

    @property
    def first(self) -> bool:
        return self.rank == 0

    @property
    def name(self) -> str:
        """Name of this rank for users."""
        return f"rank {self.rank} of {self.count} (on {socket.gethostname()})"

    # Exchange of data

    def exchange(self, notice: bytes, parts: Sequence[bytes]) -> tuple[list[bytes], list[bytes | bytearray]]:
        """Exchange data: each rank gets all notices, which have equal lengths, and the parts for it.

        The first rank raises the exception of another one that has failed, and DeadWorkerError if
        MPI misses one that has reported nothing. The others end when their parent ends.
        """
        try:
            return self._exchanged(notice, parts)
        except self._mpi.Exception as error:
            self._miss(error)

    def _exchanged(self, notice: bytes, parts: Sequence[bytes]) -> tuple[list[bytes], list[bytes | bytearray]]:
        own = notice + array.array("Q", map(len, parts)).tobytes()
        desks = bytearray(self.count * len(own))
        self._wait([self._all.Iallgather(own, desks)])
        notices: list[bytes] = []
        came: list[bytes | bytearray] = []
        under_way: list[Any] = []
        for rank in range(self.count):
            desk = memoryview(desks)[rank * len(own) : (rank + 1) * len(own)]
            notices.append(bytes(desk[: len(notice)]))
            lengths = desk[len(notice) :]
            length = int.from_bytes(lengths[8 * self.rank : 8 * self.rank + 8], sys.byteorder)
            came.append(parts[rank] if rank == self.rank else bytearray(length))
            if rank != self.rank:
                under_way += [self._all.Irecv(piece, source=rank) for piece in _pieces(came[rank])]
                under_way += [self._all.Isend(piece, dest=rank) for piece in _pieces(parts[rank])]
        self._wait(under_way)
        return notices, came

    def _wait(self, requests: list[Any]) -> None:
        """Wait until all requests are done, without using the processor, or until that is impossible."""
        spins, sleep_s = self._spins, _FIRST_SLEEP_S
        look_at = time.monotonic() + _LOOK_S
        while not self._mpi.Request.Testall(requests):
            if spins:
                spins -= 1
                continue
            time.sleep(sleep_s)
            sleep_s = min(2 * sleep_s, _LONGEST_SLEEP_S)
            if time.monotonic() > look_at:
                self._look_at_others()
                look_at = time.monotonic() + _LOOK_S

    def _miss(self, error: Exception) -> NoReturn:
        """Report an unreachable rank.

        MPI does not identify it. The failed rank or mpiexec does, by a signal.
        """
        reason = next(iter(str(error).splitlines()), "")
        missed = DeadWorkerError(
            f"MPI has lost another rank before the run was done ({reason}); was there enough memory, and a network?"
        )
        until = time.monotonic() + _NOTICE_S
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            with contextlib.suppress(self._mpi.Exception):
                self._look_at_others()
        if not self.first:
            self._end_by(missed)
        raise missed from error

    def _look_at_others(self) -> None:
        if not self.first:
            self._leave_with_watcher()
        elif self._failures.iprobe():
            raise self._failures.recv()
        elif os.getppid() != self._watcher:  # the parent ended by a SIGTERM, which may be deferred in this process
            raise DeadWorkerError("mpiexec ended the run before it was done")

    def _leave_with_watcher(self) -> None:
        if os.getppid() != self._watcher:
            os._exit(1)

    def ask_all(self, value: Any) -> list[Any]:
        """Return the values of all ranks, by rank, at all ranks."""
        _, answers = self.exchange(b"", [pickle.dumps(value, pickle.HIGHEST_PROTOCOL)] * self.count)
        return [pickle.loads(data) for data in answers]

    # Sequence of runs

    def lead(self, task: Any, build: Callable[[], _Made]) -> _Made:
        """Return the first rank's world of a run, after all ranks have built theirs.

        Raises the exception of any rank.
        """
        self._busy = True
        self.ask_all(task)
        return self._together(build)

    def follow(self, build: Callable[[Any], Follower]) -> None:
        """Take part in all runs at a rank other than the first; `build` gets the first one's tasks."""
        while (task := self.ask_all(None)[0]) is not None:
            with contextlib.suppress(_NotBuiltError):
                self._together(partial(build, task)).follow()
        self._over = True

    def _together(self, build: Callable[[], _Made]) -> _Made:
        world, error = None, None
        try:
            world = build()
        except Exception as raised:
            error = raised
        errors = self.ask_all(error and passed_on(error, "" if self.first else self.name))
        failed = next((other for other in errors if other is not None), None)
        if failed is None:
            assert world is not None
            return world
        self._busy = False
        if not self.first:
            raise _NotBuiltError
        raise error or failed

    @contextlib.contextmanager
    def at_run(self) -> Iterator[None]:
        """Mark the block as a run, in which other ranks expect further messages until it ends."""
        self._busy = True
        try:
            yield
        except BaseException as error:
            if not self.first:
                self._end_by(error)
            raise
        self._busy = False

    # End

    def _end_by(self, error: BaseException) -> NoReturn:
        """Pass an exception on to the first rank, which raises it and ends all others."""
        under_way = None
        while True:
            with contextlib.suppress(self._mpi.Exception):  # if the first rank is gone, all ranks will be ended
                if under_way is None:
                    under_way = self._failures.isend(passed_on(error, self.name), dest=0)
                under_way.test()
            time.sleep(_LOOK_S)
            self._leave_with_watcher()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.first:
            if not self._over:  # the first rank has probably ended in the same way
                self.follow(lambda _: _raise(error or AssertionError("no run is expected")))
        elif os.getppid() != self._watcher:
            sys.stderr.flush()
            os._exit(1)  # the reason is known to whoever ended it
        elif self._busy:
            atexit.register(self._abort, 2 if isinstance(error, UserError) else _ENDED)
        else:
            try:
                self.ask_all(None)
            except DeadWorkerError:
                atexit.register(self._abort, _ENDED)
                raise
            # MPI waits for all ranks at its end, which mpiexec may cut short.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _abort(self, status: int) -> None:
        """Abort the other ranks in the middle of their work."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        _be_silent()  # otherwise MPI would report the abort
        self._all.Abort(status)


class _NotBuiltError(Exception):
    """A rank did not build its world; the first one raises the reason."""


def _raise(error: BaseException) -> NoReturn:
    raise error


def _pieces(data: bytes | bytearray) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[at : at + _PIECE_BYTES] for at in range(0, len(data), _PIECE_BYTES))


def shared_memory() -> list[Path]:
    """Return the files of MPICH's shared memory in this process, while they have names."""
    try:
        files = [line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    except OSError:
        return []  # not on Linux
    return [Path(file) for file in sorted(set(files)) if file.startswith(_SHARED) and not file.endswith(" (deleted)")]


def _unlink_shared_memory() -> None:
    """Unlink the shared memory of all ranks on this machine, which a killed rank would leave behind."""
    for file in shared_memory():
        file.unlink(missing_ok=True)


def differences(own: Mapping[str, str], first: Mapping[str, str]) -> None:
    """Raise UserError if the inputs of this rank's run differ from the first one's."""
    for name, value in first.items():
        if own[name] != value:
            raise UserError(f"{name}: {own[name][:40]!r}, at the first rank {value[:40]!r}; expected the same at all")


# Start


def begin() -> Ranks:
    """Return this rank, in a process of its own, whose end its parent reports.

    Raises UserError if there are no ranks or no MPI.
    """
    launched = _launched()
    if importlib.util.find_spec("mpi4py") is None:
        _refuse(launched, f"--workers {MPI}: mpi4py is not installed; install it with: pip install 'p4cc[mpi]'")
    _be_watched(launched)
    if launched.rank:
        _be_silent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first rank handles it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        import mpi4py.MPI
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        _refuse(launched, f"--workers {MPI}: mpi4py finds no MPI: {reason}; expected one, as of: pip install mpich")
    ranks = Ranks(mpi4py.MPI)
    if (ranks.rank, ranks.count) != (launched.rank, launched.count):
        vendor = mpi4py.MPI.get_vendor()[0]
        _refuse(
            launched,
            f"--workers {MPI}: mpiexec has started {launched.count} ranks, mpi4py's {vendor} knows of {ranks.count}; "
            f"expected the mpiexec of {vendor}",
        )
    return ranks


def _refuse(launched: _Launched, message: str) -> NoReturn:
    """Refuse before ranks can communicate.

    On a single machine all ranks reach this, and the first one prints the message.
    """
    if launched.on_one_machine:
        if launched.rank:
            sys.exit(2)
        raise UserError(message)
    if not launched.local_rank:
        sys.stderr.write(f"p4cc: error: rank {launched.rank} (on {socket.gethostname()}): {message}\n")
        sys.stderr.flush()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)  # an exit status would leave the others waiting for this rank
    sys.exit(2)


def _be_silent() -> None:
    number = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(number, stream)
    os.close(number)


_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _be_watched(launched: _Launched) -> None:
    """Fork, and return only in the child, which has a session of its own.

    mpiexec's kill ends only the parent. The child then gets SIGTERM, so it can clean up.
    """
    came: list[int] = []
    child = 0

    def pass_on(number: int, _: FrameType | None) -> None:
        came.append(number)
        os.kill(child, number)

    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    watcher = os.getpid()
    child = os.fork()
    if child:
        for number in _PASSED_ON:
            signal.signal(number, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        _, status = os.waitpid(child, 0)
        _leave(launched, child, os.waitstatus_to_exitcode(status), bool(came))
    os.setsid()
    processes.end_with_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    if os.getppid() != watcher:
        os._exit(1)


def _leave(launched: _Launched, child: int, code: int, was_asked_to: bool) -> NoReturn:
    """Exit with the child's status, and report a child that was killed."""
    expected = code in (0, 2, _ENDED) if launched.rank else code >= 0
    if not expected and not was_asked_to:
        where = f"(process {child} on {socket.gethostname()})"
        line = (
            f"p4cc: error: rank {launched.rank} of {launched.count} {where} {processes.how_ended(code)} "
            "before the run was done; was there enough memory?\n"
        )
        with contextlib.suppress(OSError):
            os.write(2, line.encode())
    os._exit(code if code >= 0 else 1)
