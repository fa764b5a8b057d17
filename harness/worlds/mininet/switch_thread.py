"""Thread beside a run that communicates with switches at given model times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from p4switch.errors import UserError
from p4switch.p4runtime.client import GrpcClient


class SwitchThread:
    """Thread that uses these clients of switches until it is stopped.

    An exception in the thread is raised at that time.
    """

    def __init__(self, clients: Mapping[str, GrpcClient]) -> None:
        self._clients = clients
        self._ended = threading.Event()
        self._failure: UserError | None = None
        self._thread: threading.Thread | None = None

    @property
    def ended(self) -> bool:
        """True if the thread has been asked to end."""
        return self._ended.is_set()

    def start(self, name: str, work: Callable[[], UserError | None]) -> None:
        """Start the work, which returns the reason of a failure."""

        def carry_out() -> None:
            self._failure = work()

        self._thread = threading.Thread(target=carry_out, name=name)
        self._thread.start()

    def wait_until(self, wall_ns: int) -> bool:
        """Wait until a time of CLOCK_MONOTONIC; return whether the thread has to end."""
        return self._ended.wait(max(wall_ns - time.monotonic_ns(), 0) * 1e-9)

    def stop(self) -> None:
        """End the thread after the flows. Raises UserError if a switch has refused a request."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the thread and its clients, even after an error."""
        self._ended.set()
        for client in self._clients.values():
            client.close()  # a switch may no longer answer
        if self._thread is not None:
            self._thread.join()
