"""P4 switches as Mininet nodes.

A subclass is an executable; `BuiltinSwitch` is `p4cc switch`.
"""

from __future__ import annotations

import json
import os
import signal
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from control_plane import controller
from harness.plan.scenario import SwitchSettings
from harness.worlds.mininet import package, shells
from harness.worlds.mininet.launcher import Launcher, Process
from harness.worlds.mininet.messages import PortChange
from p4switch.traffic.settings import Trimming, dscp_classes

_LOGS_A_SAMPLE = 8  # log entries of queue depths for each sample, so that samples can be taken from the log

package.require()
from mininet.node import Switch  # noqa: E402


@dataclass(frozen=True)
class PortPlan:
    """Link of a port in wall-clock units: serialization at `rate_bps`, then `delay_ns`."""

    interface: str
    rate_bps: int
    delay_ns: int
    xoff_bytes: int | None  # threshold of a lossless priority; None: a share of the free buffer, or no limit
    headroom_bytes: int  # headroom of a lossless priority; 0 without PFC
    framing_bytes: int
    trimming: Trimming | None = None


@dataclass(frozen=True)
class LoopPlan:
    """Link of a port to itself, as `PortPlan`."""

    rate_bps: int
    delay_ns: int


@dataclass(frozen=True)
class SwitchPlan:
    """Configuration of a switch process.

    `settings` are the scenario's, in model time.
    """

    device_id: int  # id of the first pipe's device; those of the others follow it
    pipes: int
    ports: Mapping[int, PortPlan]
    loops: Mapping[int, LoopPlan]  # ports that lead back to the switch
    settings: SwitchSettings
    framing_bytes: int
    lossless_priorities: tuple[int, ...]
    packet_bytes: int  # most frequent packet length
    seed: int
    dilation: int  # wall-clock ns for one of model time
    origin_ns: int  # CLOCK_MONOTONIC at which all clocks start
    sample_interval_ns: int  # time between queue samples, in model time; 0: no samples
    folder: Path  # folder for the process's files


class PlannedSwitch(Switch):  # type: ignore[misc]  # Mininet has no types
    """Switch process of a run, configured by its `SwitchPlan`, with a P4Runtime server at `address`.

    Its ports are interfaces of the run's own namespace.
    """

    def __init__(self, name: str, *, plan: SwitchPlan, launcher: Launcher, **params: Any) -> None:
        with shells.made_whole(self):
            super().__init__(name, dpid=f"{plan.device_id:x}", **params)
        self.plan = plan
        self.launcher = launcher
        self.process: Process | None = None

    # Methods of each executable

    packets_per_s_of_link: int | None = None
    """Packets a second that limit the speed of a run; None: only lateness limits it."""

    @classmethod
    def require(cls) -> None:
        """Raise UserError if the executable cannot be used."""

    @abstractmethod
    def launch(self) -> Process:
        """Start the process without a program; the interfaces exist already."""

    @classmethod
    def tick_ns(cls, dilation: int) -> Fraction:
        """Return the model time of a tick of the programs' clock."""
        return Fraction(1)

    @classmethod
    def cell_bytes(cls, plan: SwitchPlan) -> int:
        """Return the bytes of a unit of the programs' queue depths."""
        return plan.settings.cell_bytes

    def configure(self) -> None:
        """Set the properties that P4Runtime cannot set, once the program is installed."""

    architecture: str | None = None
    """Name of the only architecture whose programs it runs; None: it runs those of all."""

    has_registers = True
    """True if P4Runtime reads registers."""

    trims = False
    """True if its traffic manager can trim."""

    knows_colors = False
    """True if its traffic manager admits packets by their colour."""

    has_loops = False
    """True if it has ports that lead back to it."""

    changes_links = False
    """True if `schedule` is implemented."""

    def schedule(self, changes: Sequence[PortChange], epoch_ns: int) -> None:
        """Schedule changes of the links at its ports, at model times from `epoch_ns` on (CLOCK_MONOTONIC)."""
        raise NotImplementedError

    counts_meanwhile = False
    """True if `count` and `counted_so_far` are implemented."""

    def count(self) -> None:
        """Make the process write its current counters."""
        raise NotImplementedError

    def counted_so_far(self) -> Mapping[str, Any] | None:
        """Return the statistics that it wrote at the last request; None if there are none yet."""
        raise NotImplementedError

    @abstractmethod
    def counters(self) -> Mapping[str, Any]:
        """Return the counters of the process, once it has ended: `Live.stats`, or the part that it reports."""

    def caveats(self) -> list[str]:
        """Return the caveats of a run with this switch."""
        return []

    # Common methods

    @property
    def address(self) -> str:
        """Address of the P4Runtime server."""
        return f"unix:{self.plan.folder / self.name}.p4rt"

    def pipe_address(self, pipe: int) -> tuple[str, int]:
        """Return the server's address, and the id of a pipe's device."""
        return self.address, self.plan.device_id + pipe

    @property
    def log(self) -> Path:
        return self.plan.folder / f"{self.name}.log"

    def start(self, controllers: object) -> None:
        """Start the process (a hook of Mininet)."""
        self.process = self.launch()


class BuiltinSwitch(PlannedSwitch):
    """`p4cc switch`, forked from the run's zygote. Its clock ticks in nanoseconds of model time."""

    def launch(self) -> Process:
        plan = self.plan
        traffic = plan.folder / f"{self.name}.traffic.json"
        traffic.write_text(json.dumps(self._traffic()))
        ports = [text for n, port in plan.ports.items() for text in ("--interface", f"{n}@{port.interface}")]
        arguments = ["--no-p4", *ports, "--device-id", str(plan.device_id), "--traffic", str(traffic)]
        arguments += ["--seed", str(plan.seed), "--stats", str(self._stats), "--log-console", "--log-level", "warn"]
        arguments += ["--grpc-server-addr", self.address, "--changes", str(self._changes)]
        if plan.pipes > 1:
            arguments += ["--pipes", str(plan.pipes)]
        return self.launcher.fork(self.name, "switch", arguments)

    trims = True
    knows_colors = True
    changes_links = True
    has_loops = True

    def schedule(self, changes: Sequence[PortChange], epoch_ns: int) -> None:
        after_ns, dilation = epoch_ns - self.plan.origin_ns, self.plan.dilation
        rows = [
            {
                "time_ns": after_ns + change.time_ns * dilation,
                "port": change.port,
                "up": change.up,
                "rate_bps": max(1, round(change.rate_bps / dilation)),
                "delay_ns": change.delay_ns * dilation,
                "loss": change.loss,
                "seed": change.seed,
            }
            for change in changes
        ]
        self._changes.write_text(json.dumps({"changes": rows}))
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGHUP)

    counts_meanwhile = True

    def count(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGUSR1)

    def counted_so_far(self) -> dict[str, Any] | None:
        return self.counters() if self._stats.exists() else None

    def counters(self) -> dict[str, Any]:
        counts: dict[str, Any] = json.loads(self._stats.read_text())
        return counts

    @property
    def _changes(self) -> Path:
        return self.plan.folder / f"{self.name}.changes.json"

    @property
    def _stats(self) -> Path:
        return self.plan.folder / f"{self.name}.stats.json"

    def _traffic(self) -> dict[str, Any]:
        """Return the contents of the file that p4switch.daemon.config reads."""
        plan, settings = self.plan, self.plan.settings
        pfc = settings.pfc
        fixed_bytes = pfc.xoff_bytes if settings.ingress_bytes is None else settings.ingress_bytes
        traffic: dict[str, Any] = {
            "tick_ns": plan.dilation,
            "model_tick_ns": 1,
            "framing_bytes": plan.framing_bytes,
            "ports": {
                str(number): {
                    "rate_bps": port.rate_bps,
                    "delay_ns": port.delay_ns,
                    "xoff_bytes": port.xoff_bytes,
                    "headroom_bytes": port.headroom_bytes,
                    "framing_bytes": port.framing_bytes,
                    "trimming": None if port.trimming is None else port.trimming.model_dump(),
                }
                for number, port in plan.ports.items()
            }
            | {str(number): {**asdict(loop), "loops": True} for number, loop in plan.loops.items()},
            **settings.traffic(),
            "queue_packets": None,
            "dscp_classes": dscp_classes(controller.Settings().priority_of_dscp),
            "origin_ns": plan.origin_ns,
            "log_depths_ns": plan.sample_interval_ns * plan.dilation // _LOGS_A_SAMPLE,
        }
        if pfc.enabled or settings.ingress_bytes is not None:
            traffic["pfc"] = {
                "priorities": plan.lossless_priorities,
                "alpha": pfc.alpha if fixed_bytes is None else None,
                "xoff_bytes": fixed_bytes,
                "xon_gap_bytes": pfc.xon_gap_bytes,
            }
        return traffic
