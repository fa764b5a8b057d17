"""Part of a virtual world in one process: the network, with all or some of its nodes, and the session."""

from __future__ import annotations

import contextlib
import resource
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address
from statistics import fmean
from typing import TypeVar

import numpy as np

from control_plane import program_state
from control_plane.program_ledger import Kind, count
from harness.columns import nics
from harness.measure.links import LinkCounters, ports_of
from harness.measure.recording import Integers
from harness.plan.probes import HostProbe, Probe, QueueProbe, SwitchProbe
from harness.plan.probes.base import Values
from harness.plan.probes.cells import CellProbe
from harness.plan.run import Run
from harness.worlds.host_session import HostReport, RateSample
from harness.worlds.memory import MemoryLimit, resident_bytes
from harness.worlds.network import Network
from harness.worlds.session import FIRST_NUMBER, Connection, Session
from host_agents.timers import NEVER
from p4switch.fabric import joined

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Counts:
    """Counts of one process at the end of a run; nodes that it does not run count 0."""

    samples: tuple[bytes, bytes]
    port_stats: joined.Columns
    queue_stats: joined.Columns
    pfc_stats: joined.Columns
    conservation: dict[str, int]
    by_program: Counter[Kind]
    nic_totals: Counter[str]
    failed_asserts: dict[str, tuple[int, str]]


class LocalWorld:
    """World in one process.

    All values about the network are for the nodes that this process runs.
    """

    leads = True
    """True in the process that writes and prints."""

    def __init__(self, run: Run, network: Network, session: Session) -> None:
        self.run_plan = run
        self.network = network
        self.session = session
        places = ports_of(run.topology)
        self._link_counters = LinkCounters(places, network.nodes, columns(network.fabric.link_counters()))
        # Source and destination address of the frames of each connection that was queried.
        self._ends: array[int] = array("q")

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the world runs."""
        return contextlib.nullcontext()

    def decided(self, value: _Value) -> _Value:
        """Return the decision of the leading process."""
        return value

    # State of flows

    def finished(self) -> bool:
        """Return whether all flows and collectives are done."""
        return self.session.finished

    def progress(self) -> tuple[int, int]:
        """Return the progress of the run, as `Session.progress` does."""
        return self.session.progress

    def failures(self) -> int:
        """Return the number of flows that hosts have given up."""
        return self.session.failures

    def all_started(self, now_ns: int) -> bool:
        """Return whether every known flow has started."""
        return self.session.all_started(now_ns)

    def next_start_ns(self) -> int:
        """Return the start of the next flow; NEVER if there is none."""
        return self.session.next_start_ns

    def under_way(self) -> bool:
        """Return whether a host has a flow to send or to receive, or a collective to continue."""
        return self.session.under_way

    # Activity of hosts

    def is_busy(self) -> bool:
        """Return whether an event that may cause progress is pending or in progress."""
        held = self.network.fabric.conservation()
        return bool(held["queued"] or held["on_wire"]) or any(nic.next_wakeup_ns() < NEVER for nic in self.network.nics)

    def moved(self) -> int:
        """Return the sum of `HostSession.moved` over the hosts of this process."""
        return sum(host.moved() for _, host in self.network.own_hosts())

    def advanced_bytes(self) -> int:
        """Return the sum of `HostSession.advanced_bytes` over the hosts of this process."""
        return sum(host.advanced_bytes() for _, host in self.network.own_hosts())

    def rate_samples(self, now_ns: int) -> list[RateSample]:
        """Return the samples of all connections that had something to send since the last call, in order."""
        return sorted(sample for _, host in self.network.own_hosts() for sample in host.sample(now_ns))

    def host_reports(self) -> dict[int, HostReport]:
        """Return the hosts' reports at the end, by host, without the bytes on their links."""
        return {index: host.report({}) for index, host in self.network.own_hosts()}

    def collect_details(self) -> None:
        """Pass all details of flows to the session."""

    # Counters

    def readings(self, probe: Probe) -> dict[str, list[Values]]:
        """Return a probe's rows, by host or by pipe of a switch."""
        network, run = self.network, self.run_plan
        if isinstance(probe, CellProbe):
            readers = {name: program_state.ByEngine(pipe) for name, pipe in network.own(network.pipes).items()}
            return {
                name: list(probe.read_by(reader, run, run.pipes[name]))
                for name, reader in readers.items()
                if probe.covers(run.pipes[name].switch)
            }
        if isinstance(probe, SwitchProbe):
            clients = network.own(network.clients)
            return {
                name: list(probe.read(run, run.pipes[name], client))
                for name, client in clients.items()
                if probe.covers(run.pipes[name].switch)
            }
        if isinstance(probe, HostProbe):
            names = network.names
            return {names[i]: list(probe.read(host)) for i, host in network.own_hosts() if probe.covers(names[i])}
        assert isinstance(probe, QueueProbe)
        return by_switch(probe.ports(run), self.queue_values(probe))

    def queue_values(self, probe: QueueProbe) -> list[int]:
        """Return the values of the probe's ports.

        A frame that is lost on a failing link counts at its sender's port, in the process of its
        receiver.
        """
        values = self._at_ports(probe.reads, probe.priority)
        nodes = self.network.nodes
        return [values.get((nodes[switch], port), 0) for switch, port, _ in probe.ports(self.run_plan)]

    def _at_ports(self, quantity: str, priority: int | None) -> dict[tuple[int, int], int]:
        """Return a quantity by node and port, without unused ports."""
        fabric = self.network.fabric
        stats = columns(fabric.port_stats() if priority is None else fabric.queue_stats())
        rows = zip(stats["node"].tolist(), stats["port"].tolist(), stats[quantity].tolist(), strict=True)
        if priority is None:
            return {(node, port): value for node, port, value in rows}
        is_asked = stats["priority"] == priority
        return {(node, port): value for (node, port, value), asked in zip(rows, is_asked, strict=True) if asked}

    def link_counters(self) -> dict[str, Integers]:
        """Return the counters of all directions of links, in the order of `ports_of`."""
        return self._link_counters.in_order(columns(self.network.fabric.link_counters()))

    def delivered_bytes(self, numbers: Sequence[int]) -> list[int]:
        """Return these connections' bytes on the receivers' links, framing included."""
        connections = self.session.connections
        for connection in connections[len(self._ends) // 2 :]:
            self._ends.extend(ends_of(self.run_plan, connection))
        ends = np.array(self._ends, np.int64).reshape(-1, 2)
        stats = columns(self.network.fabric.flow_stats())
        place = stats["qp"] - FIRST_NUMBER
        rows = np.flatnonzero((place >= 0) & (place < len(connections)))
        # Answers of receivers have the same connection number in the opposite direction.
        rows = rows[(stats["dst_ip"][rows] == ends[place[rows], 1]) & (stats["src_ip"][rows] == ends[place[rows], 0])]
        delivered = np.zeros(len(connections), np.int64)
        framing_bytes = self._framing_bytes(stats["dst_ip"][rows])
        delivered[place[rows]] = stats["delivered_bytes"][rows] + framing_bytes * stats["delivered_packets"][rows]
        # If the first worker has all hosts, the sessions of the others have no connections.
        return [int(delivered[number - FIRST_NUMBER]) if connections else 0 for number in numbers]

    def _framing_bytes(self, addresses: Integers) -> Integers:
        """Return the bytes that links charge for framing to destinations; for a group, the members' mean."""
        run = self.run_plan
        extra_bytes = [run.topology.uplink(host).extra_bytes for host in run.topology.hosts]
        own = {int(host.address): extra_bytes[host.index] for host in run.topology.hosts if extra_bytes[host.index]}
        if own:
            own |= {int(group.address): round(fmean(extra_bytes[m] for m in group.members)) for group in run.groups}
        return np.array([run.scenario.framing_bytes + own.get(address, 0) for address in addresses.tolist()], np.int64)

    # End of the run

    def counts(self) -> list[Counts]:
        """Return the counts of each process; `sampled_by` assigns queue samples to them."""
        fabric, network = self.network.fabric, self.network
        pipes = network.own(network.pipes)
        return [
            Counts(
                samples=fabric.samples(),
                port_stats=fabric.port_stats(),
                queue_stats=fabric.queue_stats(),
                pfc_stats=fabric.pfc_stats(),
                conservation=fabric.conservation(),
                by_program=count(
                    (program_state.ByEngine(pipe), network.pipelines[name].program.accounts)
                    for name, pipe in pipes.items()
                ),
                nic_totals=nics.counts(network.nics[index].stats for index, _ in network.own_hosts()),
                failed_asserts={
                    name: (pipe.failed_asserts, pipe.failed_assert)
                    for name, pipe in pipes.items()
                    if pipe.failed_assert is not None
                },
            )
        ]

    def sampled_by(self, switches: Sequence[str]) -> Integers:
        """Return the index in `counts` of the process that sampled each of these switches."""
        return np.zeros(len(switches), np.int64)

    def flow_state(self) -> dict[str, dict[str, int]]:
        """Return the state of flows that is left in registers of switches and at hosts, by node."""
        network = self.network
        left: dict[str, dict[str, int]] = {}
        for name, pipe in network.own(network.pipes).items():
            program = self.run_plan.pipes[name].program
            p4info = network.pipelines[name].program.p4info
            registers = program.parameters.zero_when_done
            left[name] = program_state.left_in({name: program_state.ByEngine(pipe)}, registers, p4info, program.name)
        for index, host in network.own_hosts():
            name = network.names[index]
            left[name] = {f"{what} of {name}": n for what, n in host.nic.host.residue().items()}
        return left

    def passed_points(self) -> dict[str, Sequence[int]]:
        """Return how often packets have passed each point of the program, by pipe."""
        return {name: pipe.passed() for name, pipe in self.network.own(self.network.pipes).items()}

    def collect_trace(self) -> None:
        """Collect all traced hops and captured frames in the fabric."""

    # Cost

    def look_at_memory(self, limit: MemoryLimit, now_ns: int, queue_samples: int) -> None:
        """Raise UserError if memory is insufficient for the current state and the tables of the samples."""
        limit.look(now_ns, queue_samples, resident_bytes())

    def cost(self, cpu_s: float) -> tuple[float, int]:
        """Return CPU time and memory."""
        return cpu_s, most_resident_bytes()


def by_switch(ports: Sequence[tuple[str, int, str]], values: Sequence[int]) -> dict[str, list[Values]]:
    """Return the rows of a probe of queues, by switch."""
    rows: dict[str, list[Values]] = {}
    for (switch, port, leads_to), value in zip(ports, values, strict=True):
        rows.setdefault(switch, []).append((port, leads_to, value))
    return rows


def most_resident_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def ends_of(run: Run, connection: Connection) -> tuple[int, int]:
    """Return the source and destination address of a connection's frames as numbers."""
    source, destination = run.addresses(connection.sources, connection.destinations)
    return _number_of(source), _number_of(destination)


@lru_cache(maxsize=1 << 17)
def _number_of(address: str) -> int:
    """Return an address as a number.

    It is cached because each flow needs it.
    """
    return int(IPv4Address(address))


def columns(table: dict[str, bytes]) -> dict[str, Integers]:
    """Return one of the fabric's tables as arrays."""
    return {name: np.frombuffer(column, np.int64) for name, column in table.items()}
