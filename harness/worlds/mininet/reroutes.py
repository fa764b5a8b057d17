"""The controller's new routes in this world: written over P4Runtime at their time, while the run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from harness.control.rerouting import Rerouting
from harness.plan.run import Run
from p4switch.errors import UserError
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError


class Rerouter:
    """Writes the routes that a run's events ask for into switches, given by name and address."""

    def __init__(self, run: Run, addresses: Mapping[str, tuple[str, int]], rerouting: Rerouting) -> None:
        """Prepare all updates before time counts; addresses come with device ids."""
        self._changes = [
            (
                change.time_ns,
                {
                    switch.name: updates
                    for switch in run.topology.switches
                    if (updates := rerouting.updates(switch, change.before, change.now))
                },
            )
            for change in run.route_changes()
        ]
        names = dict.fromkeys(name for _, updates in self._changes for name in updates)
        self._clients = {name: GrpcClient(*addresses[name]) for name in names}
        self._ended = threading.Event()
        self._failure: UserError | None = None
        self._thread: threading.Thread | None = None

    def start(self, epoch_ns: int, dilation: int) -> None:
        """Begin with model time 0 at `epoch_ns` of CLOCK_MONOTONIC. Raises UserError."""
        if not self._changes:
            return
        for client in self._clients.values():
            client.open()
        self._thread = threading.Thread(target=self._write_on, args=(epoch_ns, dilation), name="routes")
        self._thread.start()

    def stop(self) -> None:
        """End it: the flows are done. Raises UserError if a switch has refused what was written."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End it, whatever has happened."""
        self._ended.set()
        for client in self._clients.values():
            client.close()  # a switch may not answer any more
        if self._thread is not None:
            self._thread.join()

    def _write_on(self, epoch_ns: int, dilation: int) -> None:
        for time_ns, updates in self._changes:
            wait_ns = epoch_ns + time_ns * dilation - time.monotonic_ns()
            if self._ended.wait(max(wait_ns, 0) * 1e-9):
                return
            for name, some in updates.items():
                try:
                    self._clients[name].write(some)
                except P4RuntimeError as error:
                    if not self._ended.is_set():
                        self._failure = UserError(f"switch {name}: new routes: {error}")
                    return
