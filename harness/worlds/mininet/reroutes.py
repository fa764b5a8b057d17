"""The controller's new routes in the Mininet world, written over P4Runtime during the run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from control_plane.rerouting import Rerouting
from harness.plan.run import Run
from harness.worlds.mininet.switch_thread import SwitchThread
from p4switch.errors import UserError
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError


class Rerouter:
    """Writer of new routes after a run's events into switches, given by the name and address of each pipe."""

    def __init__(self, run: Run, addresses: Mapping[str, tuple[str, int]], rerouting: Rerouting) -> None:
        """Prepare all updates before the run; addresses come with device ids."""
        switches = run.topology.switch_by_name
        self._changes = [
            (
                change.time_ns,
                {
                    name: updates
                    for name, pipe in run.pipes.items()
                    if (updates := rerouting.updates(name, switches[pipe.switch], change.before, change.now))
                },
            )
            for change in run.route_changes()
        ]
        names = dict.fromkeys(name for _, updates in self._changes for name in updates)
        self._clients = {name: GrpcClient(*addresses[name]) for name in names}
        self._thread = SwitchThread(self._clients)
        self.stop, self.close = self._thread.stop, self._thread.close

    def start(self, epoch_ns: int, dilation: int) -> None:
        """Start with model time 0 at `epoch_ns` of CLOCK_MONOTONIC.

        Raises UserError if a switch cannot be reached.
        """
        if not self._changes:
            return
        for client in self._clients.values():
            client.open()
        self._thread.start("routes", partial(self._write_on, epoch_ns, dilation))

    def _write_on(self, epoch_ns: int, dilation: int) -> UserError | None:
        for time_ns, updates in self._changes:
            if self._thread.wait_until(epoch_ns + time_ns * dilation):
                return None
            for name, some in updates.items():
                try:
                    self._clients[name].write(some)
                except P4RuntimeError as error:
                    return None if self._thread.ended else UserError(f"switch {name}: new routes: {error}")
        return None
