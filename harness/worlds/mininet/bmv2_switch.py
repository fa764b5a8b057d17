"""BMv2's `simple_switch_grpc` as a Mininet node.

It does not model links. Its queues count packets and have rates in packets per second, so a port's
rate is correct for full data packets only. It has no PFC. It has no delay either; the kernel adds
it on the port's interface if possible (netem).
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from control_plane import bmv2_process, pipelines
from harness.worlds.mininet.launcher import Process
from harness.worlds.mininet.switches import PlannedSwitch, SwitchPlan

_THRIFT_PORT = 9090  # plus the device id; a run's TCP ports are in its own network namespace
_TICK_WALL_NS = 1000
_NETEM_PACKETS = 1_000_000  # number of packets that a link may hold

_CAVEAT = (
    "BMv2's queues count packets, not bytes, each priority for itself, and it has no PFC: "
    "the run shows what the switch logic does, and nothing about performance"
)


class Bmv2Switch(PlannedSwitch):
    """BMv2 switch, whose clock ticks in wall-clock microseconds, and whose queue depths are packets."""

    # libpcap buffers some 30 packets of a port for BMv2, that is 60 ms of traffic while BMv2 waits
    # for a core.
    packets_per_s_of_link = 500
    architecture = pipelines.BMV2_ARCHITECTURE
    has_registers = False

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **params)
        self._without_delay = ""  # reason why delays could not be set

    @classmethod
    def require(cls) -> None:
        bmv2_process.require()

    def launch(self) -> Process:
        plan = self.plan
        command = bmv2_process.command(
            plan.device_id,
            {number: port.interface for number, port in plan.ports.items()},
            grpc_address=self.address,
            thrift_port=self._thrift_port,
            notifications=plan.folder / f"{self.name}.notifications",
        )
        return self.launcher.run(self.name, command)

    @property
    def _thrift_port(self) -> int:
        return _THRIFT_PORT + self.plan.device_id

    @classmethod
    def tick_ns(cls, dilation: int) -> Fraction:
        return Fraction(_TICK_WALL_NS, dilation)

    @classmethod
    def cell_bytes(cls, plan: SwitchPlan) -> int:
        return plan.packet_bytes

    def configure(self) -> None:
        """Set queues over Thrift, and the links' delays."""
        settings = self.plan.settings
        limits = (settings.queue_bytes, settings.port_bytes, settings.buffer_bytes)
        depth_bytes = min((limit for limit in limits if limit is not None), default=None)
        queues = {
            number: bmv2_process.Queue.of_link(port.rate_bps, depth_bytes, self.plan.packet_bytes)
            for number, port in self.plan.ports.items()
        }
        bmv2_process.set_queues(self._thrift_port, queues)
        for port in self.plan.ports.values():
            self._without_delay = self._without_delay or _delay(port.interface, port.delay_ns)

    def caveats(self) -> list[str]:
        if not self._without_delay:
            return [_CAVEAT]
        return [_CAVEAT, f"links from BMv2 have no delay, which this kernel refuses: {self._without_delay}"]

    def counters(self) -> Mapping[str, Any]:
        """Return the kernel's counters of the ports.

        BMv2 reports neither drops nor copies. `drop_in_switch` is the number of frames that arrived
        minus the number that left. It is negative if BMv2 copied more frames than it dropped.
        """
        counts = _interface_counts()
        ports: list[Mapping[str, Any]] = []
        for number, port in self.plan.ports.items():
            rx_bytes, rx_packets, tx_bytes, tx_packets = counts[port.interface]
            known = {
                "port": number,
                "rx_bytes": rx_bytes,
                "rx_packets": rx_packets,
                "tx_bytes": tx_bytes,
                "tx_packets": tx_packets,
                "pfc": [],
                "max_bytes": -1,
                "max_packets": -1,
            }
            ports.append(defaultdict(int, known))
        lost = sum(port["rx_packets"] - port["tx_packets"] for port in ports)
        return defaultdict(int, ports=ports, drop_in_switch=lost)


def _delay(interface: str, delay_ns: int) -> str:
    """Delay everything that is sent through an interface; return the reason of a failure, or ""."""
    command = ["tc", "qdisc", "replace", "dev", interface, "root", "netem"]
    command += ["delay", f"{delay_ns / 1000}us", "limit", str(_NETEM_PACKETS)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else ""


def _interface_counts() -> dict[str, tuple[int, int, int, int]]:
    """Return the received and the sent bytes and packets of each interface in this thread's namespace."""
    counters = {}
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, text = line.partition(":")
        columns = [int(word) for word in text.split()]
        counters[name.strip()] = columns[0], columns[1], columns[8], columns[9]
    return counters
