"""One built-in switch with real queues: frames enter at given times, and a sink behind port 2 records them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from control_plane import controller, programs
from control_plane.programs import SwitchView
from p4switch.fabric import Fabric
from p4switch.p4runtime import Device
from p4switch.p4runtime.client import LocalClient
from tests.p4src.conftest import VIEW
from tests.p4src.rigs import build_of, builtin

RATE_BPS = 8_000_000_000  # one byte per nanosecond
NEVER = 1 << 61
OUT = 2

QUEUE_VIEW = replace(VIEW, port_rates_bps=dict.fromkeys(VIEW.port_rates_bps, RATE_BPS))


class Sink:
    """Host that only receives."""

    def __init__(self) -> None:
        self.arrived: list[tuple[int, bytes]] = []

    def receive(self, now_ns: int, frame: bytes) -> None:
        self.arrived.append((now_ns, frame))

    def next_frame(self, now_ns: int) -> bytes | None:
        return None

    def next_wakeup_ns(self) -> int:
        return NEVER


class QueueRig:
    """Rig with the sink at port 2, over a link of 8 Gb/s without delay."""

    def __init__(
        self,
        program: str,
        parameters: Mapping[str, Any],
        view: SwitchView = QUEUE_VIEW,
        load_balancer: str = "ecmp",
        architecture: str | None = None,
        defines: Mapping[str, str] = MappingProxyType({}),
        **queues: Any,
    ) -> None:
        built, self.switch = builtin(build_of(program, load_balancer, architecture, **defines))
        chosen = programs.parameters(program, parameters)
        known = built.program
        entries = chosen.entries(replace(view, architecture=known.architecture, tables=known.tables))
        controller.program_switch(LocalClient(Device(lambda _: self.switch)), built.program, entries)
        self._counters = {c.preamble.alias: c.preamble.name for c in built.program.p4info.counters}
        self.sink = Sink()
        self.fabric = Fabric()
        self.host = self.fabric.add_host(self.sink)
        self.node = self.fabric.add_switch(self.switch, cell_bytes=view.cell_bytes, **queues)
        self.link = self.fabric.connect(self.node, OUT, self.host, 0, rate_bps=RATE_BPS, delay_ns=0)
        if trimming := chosen.trimming_ports(view).get(OUT):
            self.fabric.set_trimming(self.node, OUT, **trimming.model_dump())

    def inject(self, frames: Iterable[tuple[int, bytes]], port: int = 1) -> None:
        """Inject frames, given as (time in ns, frame)."""
        for time_ns, frame in frames:
            self.fabric.at(time_ns, partial(self._arrive, port, frame))

    def _arrive(self, port: int, frame: bytes, _: int) -> None:
        self.fabric.inject(self.node, port, frame)

    def run(self, until_ns: int | None = None) -> Sequence[tuple[int, bytes]]:
        """Run until a time, and return the frames that have arrived: (time of the last bit, frame)."""
        self.fabric.run(until_ns)
        return self.sink.arrived

    def counter(self, name: str, index: int = OUT) -> int:
        return self.switch.counter_read(self._counters[name], index)[0]

    def queues(self) -> dict[int, int]:
        """Return the bytes in the queues of port 2, by priority."""
        table = {name: np.frombuffer(column, np.int64) for name, column in self.fabric.queue_stats().items()}
        rows = zip(table["port"], table["priority"], table["depth_bytes"], strict=True)
        return {int(priority): int(depth) for port, priority, depth in rows if port == OUT}

    def register(self, name: str, index: int) -> int:
        return int.from_bytes(self.switch.register_read(name, index), "big")
