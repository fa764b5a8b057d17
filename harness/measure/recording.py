"""What a world records of one run, whatever the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.measure.flow_record import FlowRecord

Integers = NDArray[np.int64]
Progress = Callable[[int, int, int], object]  # flows done, flows known, now_ns


@dataclass(frozen=True)
class PortName:
    """A switch's port, and what it leads to."""

    switch: str
    port: int
    leads_to: str


@dataclass
class RateSamples:
    """Each row: one queue pair in one interval that ends at `time_ns`."""

    time_ns: list[int] = field(default_factory=list)
    qp: list[int] = field(default_factory=list)
    delivered_bytes: list[int] = field(default_factory=list)  # on the wire, in the interval
    rate_bps: list[float] = field(default_factory=list)  # the reaction point's, at its end
    window_bytes: list[float] = field(default_factory=list)
    rtt_ns: list[int] = field(default_factory=list)  # the latest of the interval; -1: none


class World(Protocol):
    """Where a run takes place: built for one run, which it carries out once."""

    def run(self, progress: Progress | None = None) -> Recording:
        """Until every flow is acknowledged, or the scenario's limit."""

    def write_more(self, folder: Path) -> None:
        """What was asked for beyond the recording: captures, traces."""


@dataclass
class Recording:
    """All of one run. `ended` says why it ended: "done", "limit", "idle" or "deadlock"."""

    ended: str
    end_ns: int
    events: int
    flows: list[FlowRecord]
    ports: list[PortName]
    queue_times_ns: Integers
    queue_depth_bytes: Integers  # one row a time, one column a port of `ports`
    rates: RateSamples
    rate_interval_ns: int
    port_stats: dict[str, Integers]  # by column; `node` is a name in `node_names`
    queue_stats: dict[str, Integers]
    pfc_stats: dict[str, Integers]
    node_names: list[str]
    conservation: dict[str, int]
    pfc_events: list[dict[str, Any]]
    nic_totals: dict[str, int]
    workload: dict[str, Any]  # what the workload measured
    failed_asserts: dict[str, tuple[int, str]]  # by switch: how many asserts of its program failed, and the first
    cpu_s: float
    set_up_s: float
    peak_memory_bytes: int
    world: str = "virtual"
    switch: str = "builtin"
    compiler: str = "builtin"  # of the programs
    fidelity: dict[str, Any] | None = None  # of a world that runs in real time: how far it can be trusted
