"""Pools for the runs of a sweep: processes of this machine, or a Dask cluster.

Both take functions and values as pickles, so anyone who can connect to a worker can run code as its
owner (docs/security.md). Local processes are reached through private pipes, a cluster through TLS.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, MutableSequence, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import DeadWorkerError
from p4switch import processes
from p4switch.errors import UserError

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
_CONNECT_S = 10


@dataclass(frozen=True)
class Cluster:
    """Dask cluster that speaks TLS.

    A field that is None is taken from Dask's configuration (`distributed.comm.tls`).
    """

    address: str  # address of the scheduler: tls://HOST:PORT
    ca_file: Path | None = None
    certificate: Path | None = None  # the client's
    key: Path | None = None

    def security(self) -> Any:
        """Return Dask's security settings.

        Raises UserError if something that TLS needs is missing.
        """
        try:
            from distributed.security import Security
        except ModuleNotFoundError:
            raise UserError("--scheduler: Dask is not installed; expected it: pip install 'p4cc[cluster]'") from None
        if not self.address.startswith("tls://"):
            raise UserError(
                f"--scheduler {self.address}: expected tls://HOST:PORT; without TLS anyone who reaches a "
                "cluster can run code on it"
            )
        given = {"tls_ca_file": self.ca_file, "tls_client_cert": self.certificate, "tls_client_key": self.key}
        make: Any = Security  # distributed has no annotations
        security = make(require_encryption=True, **{name: str(path) for name, path in given.items() if path})
        options = {"tls_ca_file": "--tls-ca", "tls_client_cert": "--tls-cert", "tls_client_key": "--tls-key"}
        for name, option in options.items():
            file = getattr(security, name)
            if not file:
                raise UserError(f"{option}: missing; expected a file in PEM format, or Dask's configuration to name it")
            if not Path(file).is_file():
                raise UserError(f"{option}: no file {file!r}")
        return security


def distribute(
    work: Callable[[_Item], _Made],
    items: Sequence[_Item],
    where: Cluster | int | None = None,
    names: Sequence[str] = (),
) -> Generator[tuple[int, _Made], None, None]:
    """Yield (index, work(item)) as items are completed, by `where` processes (None: one a core) or a cluster.

    `names` are names of the items for messages. Closing the iterator early ends the processes.
    Raises UserError for a cluster that cannot be reached, DeadWorkerError if a process ends before
    its work is done, and what `work` raises.
    """
    names = names or [f"item {i}" for i in range(len(items))]
    if isinstance(where, Cluster):
        return _on_cluster(work, items, where, names)
    return _in_processes(work, items, where, names)


def _in_processes(
    work: Callable[[_Item], _Made], items: Sequence[_Item], jobs: int | None, names: Sequence[str]
) -> Generator[tuple[int, _Made], None, None]:
    # Processes are spawned, because a fork would inherit the threads of loaded libraries in an
    # inconsistent state.
    of_pool = _pool(max(min(jobs or processes.processors(), len(items)), 1), len(items))
    with processes.isolated_spawning(), of_pool as (pool, started, takers):
        waiting: dict[futures.Future[_Made], int] = {}
        try:
            for i, item in enumerate(items):
                waiting[pool.submit(_take, work, i, item)] = i
            while waiting:
                done, _ = futures.wait(waiting, return_when=futures.FIRST_COMPLETED)
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    result = future.result()
                    yield waiting.pop(future), result
        except BrokenProcessPool:
            # The pool's own thread waits for the processes; a second waiter could miss their exit
            # status.
            pool.shutdown()
            raise DeadWorkerError(_death(started, {takers[i]: names[i] for i in sorted(waiting.values())})) from None


def _death(started: Collection[BaseProcess], taken: Mapping[int, str]) -> str:
    """Return how the process ended whose death broke the pool; the pool ends the others by SIGTERM.

    `taken` has the unfinished work of each process, by its id.
    """
    codes = {process.pid: process.exitcode for process in started}
    pid, code = next(((pid, code) for pid, code in codes.items() if code != -signal.SIGTERM), (None, None))
    if pid is None or code is None:
        begun = ", ".join(name for taker, name in taken.items() if taker) or "no run"
        return f"a process was ended before its work was done; {begun} had begun"
    who = f"process {pid} {processes.how_ended(code)}"
    if pid not in taken:
        return f"{who} while it had no run; was there enough memory?"
    return f"{taken[pid]}: {who} before it was done; was there enough memory?"


class _Context(SpawnContext):
    """Context that records the processes that are started with it."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[BaseProcess] = []

    def Process(self, *arguments: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        process = SpawnProcess(*arguments, **named)
        self.started.append(process)
        return process


@contextlib.contextmanager
def _pool(jobs: int, items: int) -> Iterator[tuple[futures.ProcessPoolExecutor, list[BaseProcess], Sequence[int]]]:
    """Yield a pool, its processes, and the process id for each item (0: none yet).

    The processes end with the block, at once if it fails.
    """
    context = _Context()
    takers = context.RawArray("i", items)
    pool = futures.ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(), takers))
    try:
        yield pool, context.started, takers
    except BaseException:
        for process in context.started:
            if process.pid is not None:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_takers: MutableSequence[int] = []  # set in a process of the pool, and shared with the others


def _begin(parent: int, takers: MutableSequence[int]) -> None:
    """Initialise a new process, which ignores Ctrl-C and ends with its parent."""
    global _takers
    _takers = takers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    processes.end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _take(work: Callable[[_Item], _Made], index: int, item: _Item) -> _Made:
    """Record the process that works on an item, for the report of its death, and do the work."""
    _takers[index] = os.getpid()
    return work(item)


def _on_cluster(
    work: Callable[[_Item], _Made], items: Sequence[_Item], cluster: Cluster, names: Sequence[str]
) -> Generator[tuple[int, _Made], None, None]:
    security = cluster.security()
    import distributed

    client_of: Any = distributed.Client  # these two have no annotations
    as_completed: Any = distributed.as_completed
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(client_of(cluster.address, security=security, timeout=_CONNECT_S))
        except (OSError, ValueError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UserError(f"--scheduler {cluster.address}: {reason}") from None
        waiting = {client.submit(work, item, pure=False): i for i, item in enumerate(items)}
        for future in as_completed(waiting):
            try:
                result = future.result()
            except distributed.KilledWorker as error:
                raise DeadWorkerError(
                    f"{names[waiting[future]]}: the cluster's worker {error.last_worker.address} has ended before it "
                    "was done; was there enough memory?"
                ) from None
            yield waiting[future], result
            future.release()
