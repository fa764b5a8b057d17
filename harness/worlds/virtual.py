"""The virtual world: hosts, P4 switches and links in one process, on one discrete-event clock."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from harness.control import controller
from harness.control.pipelines import pipeline
from harness.measure.flow_record import FlowRecord, Sent
from harness.measure.pcap import write_pcap
from harness.measure.recording import Integers, PortName, Progress, RateSamples, Recording
from harness.measure.tracing import TraceRecord, explain
from harness.plan.experiment import LinkChange, Run
from harness.workloads import Flow, Traffic
from harness.worlds.memory import MemoryLimit
from host_agents import wire
from host_agents.messages import Delivery, Message
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.timers import NEVER
from p4switch.errors import UserError
from p4switch.fabric import Fabric
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.traffic.settings import dscp_classes

if TYPE_CHECKING:
    from p4switch.engine import Switch as Pipe


_FIRST_QPN = 2  # 0 and 1 are InfiniBand's own, for management
# Every moment for which the whole network has to stop shortens the windows in which it runs quickly. So where hosts are
# independent, flows are not started one by one but handed to their hosts so much ahead.
_HAND_OVER_NS = 20_000
_SAMPLES_A_LOOK = 1000  # of the queues, between two looks at the memory
_COLLECT_AFTER = 1_000_000  # objects made and not freed
_NIC_COUNTS = ("malformed", "misdelivered", "unknown_qp", "pauses_received")


@dataclass
class _Connection:
    """A pair of queue pairs and the messages that were posted on it, in order, each with its flow's record."""

    number: int
    sender: QueuePair
    receiver: QueuePair
    tag: int
    flows: list[tuple[FlowRecord, Message]] = field(default_factory=list)
    delivered_bytes: int = 0
    shared: bool = False
    unfinished: int = 0


class VirtualWorld:
    """One run. Build it, then `run` it once."""

    def __init__(
        self, run: Run, *, trace: int | None = None, capture: bool = False, compiler: str = "builtin"
    ) -> None:
        """`trace`: index of a flow whose packets are traced. `capture`: record the frames on all hosts' links."""
        started = time.process_time()
        self.run_plan = run
        self._traffic: Traffic = run.traffic()
        # With a fixed list of flows, hosts meet in frames only.
        independent = type(self._traffic) is Traffic
        self._ahead_ns = _HAND_OVER_NS if independent else 0
        if independent and trace is not None and trace >= (known := len(self._traffic.flows)):
            raise UserError(f"--trace {trace}: the run has {known} flows; expected a number from 0 to {known - 1}")
        self.fabric = Fabric(framing_bytes=run.scenario.framing_bytes, independent_hosts=independent)
        self.names: list[str] = []  # by fabric node
        self.links: list[tuple[str, str]] = []
        self._trace = trace
        self._capture = capture
        self._compiler = compiler
        self.trace_tag: int | None = None
        self._nodes: dict[str, int] = {}
        self._pipes: dict[str, Pipe] = {}  # by switch
        self.nics: list[Nic] = []
        self._add_hosts()
        self._add_switches()
        self._add_links(capture)
        self._limit_ingress()
        for change in run.link_changes():
            self.fabric.at(change.time_ns, partial(self._change_link, change))
        self._ports = self._add_probes()
        self._records: list[FlowRecord] = []
        self._connections: list[_Connection] = []
        self._shared: dict[tuple[int, int, str], _Connection] = {}
        self._active: dict[int, _Connection] = {}
        self._pending: list[tuple[int, int, Flow]] = []
        self._known = 0
        self._done = 0
        self._next_start_ns = -1
        self._rates = RateSamples()
        self._memory = MemoryLimit(run.label, run.scenario.memory_bytes)
        self._looked_ns = 0  # at the memory
        self._set_up_s = time.process_time() - started

    # Building

    def _add_hosts(self) -> None:
        run = self.run_plan
        for host, config in zip(run.topology.hosts, run.nic_configs(), strict=True):
            nic = Nic(config, run.protocol, run.load_balancing)
            nic.on_delivered = self._on_delivered
            nic.on_complete = self._on_completed
            self.nics.append(nic)
            self._name(host.name, self.fabric.add_host(nic, name=host.name))

    def _add_switches(self) -> None:
        run = self.run_plan
        built = pipeline(run.program, self._trace is not None, self._compiler)
        settings = run.scenario.switch
        common = controller.Settings(settings.cell_bytes, Fraction(1), run.scenario.framing_bytes, run.seed)
        for switch in run.topology.switches:
            pipe = self._pipes[switch.name] = built.switch(switch.device_id, run.seed)
            client = LocalClient(_device(pipe, switch.device_id))
            view = controller.switch_view(run.topology, switch, common)
            controller.program_switch(client, built.program, run.program_parameters.entries(view))
            node = self.fabric.add_switch(
                pipe,
                name=switch.name,
                latency_ns=settings.latency_ns,
                dscp_classes=dscp_classes(common.priority_of_dscp),
                **settings.traffic(),
            )
            self._name(switch.name, node)

    def _limit_ingress(self) -> None:
        """PFC, and what an ingress port may hold. A limit without PFC is a threshold without headroom: nothing gets
        beyond it, so nothing is ever paused.
        """
        settings = self.run_plan.scenario.switch
        pfc, limit_bytes = settings.pfc, settings.ingress_bytes
        if not pfc.enabled and limit_bytes is None:
            return
        for switch in self.run_plan.topology.switches:
            for port, there in self.run_plan.topology.ports[switch.name].items():
                headroom_bytes = self.run_plan.headroom_bytes(there) if pfc.enabled else 0
                self.fabric.set_pfc(
                    self._nodes[switch.name],
                    priorities=self.run_plan.lossless_priorities,
                    port=port,
                    xoff_bytes=None if limit_bytes is None else limit_bytes - headroom_bytes,
                    alpha=pfc.alpha if limit_bytes is None else None,
                    xon_gap_bytes=pfc.xon_gap_bytes,
                    headroom_bytes=headroom_bytes,
                    reaction_ns=pfc.reaction_ns,
                )

    def _name(self, name: str, node: int) -> None:
        assert node == len(self.names)
        self.names.append(name)
        self._nodes[name] = node

    def _add_links(self, capture: bool) -> None:
        hosts = self.run_plan.topology.host_by_name
        for link in self.run_plan.topology.links:
            number = self.fabric.connect(
                self._nodes[link.a],
                0 if link.a in hosts else link.a_port,
                self._nodes[link.b],
                0 if link.b in hosts else link.b_port,
                rate_bps=link.rate_bps,
                delay_ns=link.delay_ns,
            )
            assert number == len(self.links)
            self.links.append((link.a, link.b))
            if capture and (link.a in hosts or link.b in hosts):
                self.fabric.capture(number)

    def _change_link(self, change: LinkChange, now_ns: int) -> None:
        if change.up is not None:
            self.fabric.set_link_up(change.link, change.up)
        if change.rate_bps is not None:
            self.fabric.set_link_rate(change.link, change.rate_bps)

    def _add_probes(self) -> list[PortName]:
        record = self.run_plan.scenario.record
        if not record.queue_interval_ns:
            return []
        topology = self.run_plan.topology
        ports = [
            PortName(switch.name, port, there.node)
            for switch in topology.switches
            for port, there in topology.ports[switch.name].items()
            if record.queues == "all" or there.node in topology.host_by_name
        ]
        for port in ports:
            self.fabric.probe("depth_bytes", self._nodes[port.switch], port.port)
        self.fabric.sample(record.queue_interval_ns)
        return ports

    # Flows

    def _add(self, flows: Iterable[Flow]) -> None:
        for flow in flows:
            flow.index = self._known
            self._known += 1
            heappush(self._pending, (flow.start_ns, flow.index, flow))
        self._schedule_start()

    def _schedule_start(self) -> None:
        """One event is enough: that of the earliest flow to come."""
        if self._pending and self._pending[0][0] != self._next_start_ns:
            self._next_start_ns = self._pending[0][0]
            self.fabric.at(max(self._next_start_ns, self.fabric.now_ns), self._start_due)

    def _start_due(self, now_ns: int) -> None:
        while self._pending and self._pending[0][0] <= now_ns + self._ahead_ns:
            _, _, flow = heappop(self._pending)
            connection = self._connection(flow)
            if flow.start_ns <= now_ns:
                self._start(flow, connection, now_ns)
            else:
                self.fabric.at(flow.start_ns, partial(self._start, flow, connection), host=flow.source)
        self._next_start_ns = -1
        self._schedule_start()

    def _start(self, flow: Flow, connection: _Connection, now_ns: int) -> None:
        record = FlowRecord(flow, connection.number)
        self._records.append(record)
        connection.unfinished += 1
        self._active[connection.number] = connection
        message = connection.sender.post(flow.size_bytes, start_ns=now_ns, tag=record)
        connection.flows.append((record, message))
        self.fabric.kick(flow.source)
        if flow.stop_ns is not None:
            self.fabric.at(flow.stop_ns, lambda _: self._stop(flow, message), host=flow.source)

    def _stop(self, flow: Flow, message: Message) -> None:
        message.qp.truncate(message)
        self.fabric.kick(flow.source)

    def _connection(self, flow: Flow) -> _Connection:
        """Flows have a queue pair of their own unless they name one."""
        key = (flow.source, flow.destination, flow.qp or "")
        if flow.qp is not None and key in self._shared:
            return self._shared[key]
        hosts = self.run_plan.topology.hosts
        source, destination = hosts[flow.source], hosts[flow.destination]
        number = len(self._connections) + _FIRST_QPN
        sender = self.nics[flow.source].open_qp(str(destination.address), number, number)
        receiver = self.nics[flow.destination].open_qp(str(source.address), number, number)
        tag = self.fabric.flow(int(source.address), int(destination.address), number)
        if self._trace == flow.index:
            self.trace_tag = tag
            self.fabric.trace(tag)
        connection = _Connection(number, sender, receiver, tag, shared=flow.qp is not None)
        self._connections.append(connection)
        if connection.shared:
            self._shared[key] = connection
        return connection

    def _on_delivered(self, delivery: Delivery) -> None:
        record, _ = self._connections[delivery.qp.qpn - _FIRST_QPN].flows[delivery.sequence]
        record.note_delivered(delivery.time_ns, delivery.qp.stats.marked_received)
        self._add(self._traffic.on_delivered(record.flow, delivery.time_ns))

    def _on_completed(self, message: Message) -> None:
        connection = self._connections[message.qp.qpn - _FIRST_QPN]
        record, _ = connection.flows[message.sequence]
        record.note_sent(Sent.of(message))
        self._done += 1
        connection.unfinished -= 1
        self._add(self._traffic.on_completed(record.flow, message.completed_ns))
        if self._done == self._known:
            self.fabric.stop()

    # Running

    def run(self, progress: Progress | None = None) -> Recording:
        """Runs until every flow is acknowledged, or the scenario's limit."""
        started = time.process_time()
        scenario = self.run_plan.scenario
        self._add(self._traffic.flows)
        if scenario.record.rate_interval_ns:
            self.fabric.at(scenario.record.rate_interval_ns, self._sample_rates)
        with _rare_collection():
            stop = self.fabric.run(until_ns=self.run_plan.limit_ns, progress=partial(self._progress, progress))
        self._look_at_memory(self.fabric.now_ns)
        ended = "done" if self._done == self._known else {"until": "limit"}.get(stop, stop)
        if ended == "limit" and self._is_idle():
            ended = "idle"
        self._count_all()
        return self._recording(ended, time.process_time() - started)

    def _progress(self, progress: Progress | None, now_ns: int, _: int) -> None:
        self._look_at_memory(now_ns)
        if progress is not None:
            progress(self._done, self._known, now_ns)

    def _look_at_memory(self, now_ns: int) -> None:
        """Raises UserError when there is not enough for what is held and for the tables of what was sampled."""
        self._looked_ns = now_ns
        interval_ns = self.run_plan.scenario.record.queue_interval_ns
        self._memory.look(now_ns, now_ns // interval_ns * len(self._ports) if interval_ns else 0)

    def _is_idle(self) -> bool:
        """All flows have started, nothing is under way, and nothing ever will be: only the sampling goes on."""
        held = self.fabric.conservation()
        busy = held["queued"] or held["on_wire"] or any(nic.next_wakeup_ns() < NEVER for nic in self.nics)
        return len(self._records) == self._known and not busy

    def _count_all(self) -> None:
        """What is known only now: the counts of unfinished flows, and what was on the receivers' links."""
        stats = _columns(self.fabric.flow_stats())
        framing = self.run_plan.scenario.framing_bytes
        on_wire = stats["delivered_bytes"] + framing * stats["delivered_packets"]
        for connection in self._connections:
            for record, message in connection.flows:
                record.note_end(connection.receiver.stats.marked_received, int(on_wire[connection.tag - 1]))
                if record.completed_ns < 0:
                    record.note_sent(Sent.of(message))

    def _sample_rates(self, now_ns: int) -> None:
        record = self.run_plan.scenario.record
        if now_ns - self._looked_ns > _SAMPLES_A_LOOK * record.queue_interval_ns > 0:
            self._look_at_memory(now_ns)  # a run that waits makes progress in samples only
        delivered = np.frombuffer(self.fabric.flow_stats()["delivered_bytes"], np.int64)
        rates = self._rates
        for number, connection in sorted(self._active.items()):
            total = int(delivered[connection.tag - 1])
            rates.time_ns.append(now_ns)
            rates.qp.append(number)
            rates.delivered_bytes.append(total - connection.delivered_bytes)
            rates.rate_bps.append(connection.sender.rate_bps)
            rates.window_bytes.append(connection.sender.window_bytes)
            rates.rtt_ns.append(connection.sender.take_rtt_ns())
            connection.delivered_bytes = total
            if not connection.unfinished:
                del self._active[number]
        self.fabric.at(now_ns + record.rate_interval_ns, self._sample_rates)

    def trace_records(self) -> list[TraceRecord]:
        """What happened to the traced flow's packets, hop by hop: see `Fabric.trace_records`."""
        return self.fabric.trace_records()

    def captured(self) -> Iterator[tuple[int, str, bytes]]:
        """(time_ns, "from to", frame) of the frames on hosts' links, in order of their first bits."""
        for time_ns, link, direction, headers, _ in self.fabric.captured():
            a, b = self.links[link]
            yield time_ns, f"{b} to {a}" if direction else f"{a} to {b}", wire.materialize(headers)

    def write_more(self, folder: Path) -> None:
        """hosts.pcapng and trace.txt, where they were asked for."""
        if self._capture:
            write_pcap(folder / "hosts.pcapng", self.captured())
        if self._trace is not None:
            with (folder / "trace.txt").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in explain(self.trace_records(), self.names))

    def _recording(self, ended: str, cpu_s: float) -> Recording:
        fabric = self.fabric
        times, values = fabric.samples()
        depth = np.frombuffer(values, np.int64).reshape(-1, max(len(self._ports), 1))
        totals = {name: sum(getattr(nic.stats, name) for nic in self.nics) for name in _NIC_COUNTS}
        totals["paused_ns"] = sum(sum(nic.stats.paused_ns) for nic in self.nics)
        return Recording(
            ended=ended,
            compiler=self._compiler,
            end_ns=fabric.now_ns,
            events=fabric.events,
            flows=sorted(self._records, key=lambda record: record.flow.index),
            ports=self._ports,
            queue_times_ns=np.frombuffer(times, np.int64),
            queue_depth_bytes=depth,
            rates=self._rates,
            rate_interval_ns=self.run_plan.scenario.record.rate_interval_ns,
            port_stats=_columns(fabric.port_stats()),
            queue_stats=_columns(fabric.queue_stats()),
            pfc_stats=_columns(fabric.pfc_stats()),
            node_names=self.names,
            conservation=fabric.conservation(),
            pfc_events=[
                {"time_ns": at, "kind": kind, "queues": [[self.names[node], port, prio] for node, port, prio in queues]}
                for at, kind, _, queues in fabric.pfc_events()
            ],
            nic_totals=totals,
            workload=self._traffic.summary(),
            failed_asserts={
                name: (pipe.failed_asserts, pipe.failed_assert)
                for name, pipe in self._pipes.items()
                if pipe.failed_assert is not None
            },
            cpu_s=cpu_s,
            set_up_s=self._set_up_s,
            peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            * (1 if sys.platform == "darwin" else 1024),
        )


@contextmanager
def _rare_collection() -> Iterator[None]:
    """The network lives as long as its run; to walk it whenever some packets were made costs a sixth of the time."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _device(pipe: Pipe, device_id: int) -> Device:
    """The P4Runtime target in front of a switch, whose clock nothing here asks for."""
    return Device(lambda _: pipe, device_id, clock_ns=lambda: 0)


def _columns(table: dict[str, bytes]) -> dict[str, Integers]:
    return {name: np.frombuffer(column, np.int64) for name, column in table.items()}
