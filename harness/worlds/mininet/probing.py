"""Probes in the Mininet world: switches are read over gRPC during the run, hosts read themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

from control_plane import controller, program_ledger, program_state
from harness.columns.traffic_manager import in_mininet
from harness.plan.probes import Probe, QueueProbe, SwitchProbe
from harness.plan.probes.readings import Readings
from harness.plan.run import Run
from harness.worlds.mininet.switch_thread import SwitchThread
from p4switch.errors import UserError
from p4switch.p4runtime.client import GrpcClient


def require(probes: Sequence[Probe]) -> None:
    """Raise UserError for a probe that only the virtual world supports."""
    for probe in probes:
        if not isinstance(probe, QueueProbe):
            continue
        known = ("depth_bytes",) if probe.interval_ns else in_mininet()
        if probe.priority is not None or probe.reads not in known:
            when = "over time" if probe.interval_ns else "at the end"
            raise UserError(
                f"record.probes: {probe.name!r}: the Mininet world measures whole ports, {when}: {', '.join(known)}"
            )


class SwitchReader:
    """Reader of the run's probes at switches and of their programs' counts.

    They are given by the name and address of each pipe.
    """

    def __init__(
        self,
        run: Run,
        addresses: Mapping[str, tuple[str, int]],
        readings: Readings,
        setups: Mapping[str, controller.SwitchSetup],
        has_registers: bool,
    ) -> None:
        """Prepare the reader; addresses come with device ids, and setups are by pipe.

        `has_registers` means that these switches support registers in P4Runtime.
        """
        self._run = run
        self._readings = readings
        self._setups = setups
        self._residual: dict[str, Sequence[str]] = {}  # registers that are 0 when flows have ended, by pipe
        if has_registers:
            registers = {name: setup.parameters.zero_when_done for name, setup in setups.items()}
            self._residual = {name: some for name, some in registers.items() if some}
        probes = [probe for probe in run.probes if isinstance(probe, SwitchProbe)]
        self._at_end = [probe for probe in probes if not probe.interval_ns]
        self._over_time = [probe for probe in probes if probe.interval_ns]
        wanted = [
            name
            for name in addresses
            if setups[name].program.accounts
            or name in self._residual
            or any(probe.covers(run.pipes[name].switch) for probe in probes)
        ]
        # Reading does not require to be the primary controller.
        self._clients = {name: GrpcClient(*addresses[name]) for name in wanted}
        self._thread = SwitchThread(self._clients)
        self.stop, self.close = self._thread.stop, self._thread.close

    def start(self, epoch_ns: int, dilation: int) -> None:
        """Start reading at the intended model times, or as soon as possible after them.

        The actual times are noted.
        """
        if self._over_time:
            self._thread.start("probes", partial(self._read_on, epoch_ns, dilation))

    def read_last(self, end_ns: int) -> None:
        """Read the probes that are read at the end of the run, when the network is empty.

        Raises UserError if a switch refuses.
        """
        for probe in self._at_end:
            self._read(probe, end_ns)

    def count(self) -> Mapping[program_ledger.Kind, int]:
        """Return the programs' counts by name, at the end of the run.

        Raises UserError if a switch refuses.
        """
        return program_ledger.count(
            (program_state.ByP4Runtime(client), self._setups[name].program.accounts)
            for name, client in self._clients.items()
        )

    def residue(self, wait_s: float, patience_s: float) -> dict[str, int] | None:
        """Return the flow state left in registers, read every `wait_s` until it is gone or `patience_s` have passed.

        None if that cannot be known. Raises UserError if a switch refuses.
        """
        if not self._residual:
            return None
        end = time.monotonic() + patience_s
        while True:
            left: dict[str, int] = {}
            for name, registers in self._residual.items():
                reader, p4info = program_state.ByP4Runtime(self._clients[name]), self._setups[name].program.p4info
                left |= program_state.left_in({name: reader}, registers, p4info, self._run.pipes[name].program.name)
            if not left or time.monotonic() > end:
                return left
            time.sleep(wait_s)

    def _read_on(self, epoch_ns: int, dilation: int) -> UserError | None:
        due = dict.fromkeys(range(len(self._over_time)), 0)  # model time of the next reading, by probe
        while True:
            place = min(due, key=lambda number: due[number])
            probe = self._over_time[place]
            if self._thread.wait_until(epoch_ns + due[place] * dilation):
                return None
            now_ns = max(0, (time.monotonic_ns() - epoch_ns) // dilation)
            try:
                self._read(probe, now_ns)
            except UserError as error:
                return error
            due[place] = max(due[place], now_ns) // probe.interval_ns * probe.interval_ns + probe.interval_ns

    def _read(self, probe: SwitchProbe, time_ns: int) -> None:
        for name, client in self._clients.items():
            pipe = self._run.pipes[name]
            if probe.covers(pipe.switch):
                self._readings.add(probe, time_ns, name, probe.read(self._run, pipe, client))
