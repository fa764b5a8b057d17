"""The virtual world: hosts, P4 switches and links on one discrete-event clock, in one process or in several."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from ipaddress import IPv4Address
from itertools import tee
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from harness.columns import nics
from harness.columns.queues import DEPTH
from harness.control import controller, program_state
from harness.control.pipelines import compiled, pipeline
from harness.control.program_ledger import Kind, by_name, count
from harness.control.rerouting import Rerouting
from harness.errors import out_of_memory
from harness.measure import output_folder, tracing
from harness.measure.links import LinkCounters, LinkSamples, ports_of
from harness.measure.metrics import rates_table
from harness.measure.pcap import write_pcap
from harness.measure.recording import (
    IDLE,
    STALLED,
    STANDSTILLS,
    Integers,
    Progress,
    Recording,
    Series,
    Writing,
    port_places,
)
from harness.measure.tracing import TraceRecord
from harness.plan.headroom import headroom_bytes, xoff_bytes
from harness.plan.how import TRACE_LINES, TRACE_TEXT, Tracing
from harness.plan.probes import HostProbe, Probe, QueueProbe, SwitchProbe, probes_of
from harness.plan.probes.base import Values
from harness.plan.probes.cells import CellProbe
from harness.plan.probes.readings import Readings
from harness.plan.run import LinkChange, RouteChange, Run
from harness.workloads import Flow
from harness.workloads.collective_record import collective_tables
from harness.worlds import building, reports
from harness.worlds.expected import Paths, check_fits, expected, memory_limit
from harness.worlds.garbage_collection import rare_collection
from harness.worlds.host_session import Connect, Event, HostReport, HostSession, Post
from harness.worlds.parallel import Alone, Crew, RankCrew, Workers, cost, merged
from harness.worlds.partition import partition
from harness.worlds.progress import DoneShare, ProgressWatch
from harness.worlds.raised import NamedErrors
from harness.worlds.ranks import Ranks
from harness.worlds.session import FIRST_NUMBER, Connection, Session
from harness.worlds.turns import Turns
from harness.worlds.whole_frames import WholeFrames
from host_agents import wire
from host_agents.assignments import Assignment
from host_agents.nic import Nic
from host_agents.timers import NEVER
from p4switch.coverage import Coverage
from p4switch.fabric import Fabric, joined
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.trace import Decoder
from p4switch.traffic.settings import Trimming, dscp_classes

if TYPE_CHECKING:
    from p4switch.engine import Switch as Pipe

_Of = TypeVar("_Of")

# Every moment for which the whole network has to stop shortens the windows in which it runs quickly. So where hosts are
# independent, flows are not started one by one but handed to their hosts so much ahead.
_HAND_OVER_NS = 20_000
_LOOK_EVENTS = 1_000_000  # of the network, between two looks at the memory and at how far the run is
_TELL_EVERY_S = 0.5  # of wall time, how far the run is
_TELL_EVERY_TIMES = 50  # what telling has taken: it asks every queue pair
_SAMPLES_A_LOOK = 1000  # of the queues, between two looks at the memory
_MOST_RTTS_TO_END = 1000  # after the last flow's end, for what is still under way


@dataclass(frozen=True)
class _Part:
    """Part of one worker in the recording; nodes that it does not run count 0."""

    samples: tuple[bytes, bytes]
    port_stats: joined.Columns
    queue_stats: joined.Columns
    pfc_stats: joined.Columns
    conservation: dict[str, int]
    counted: Counter[Kind]
    nic_totals: Counter[str]
    failed_asserts: dict[str, tuple[int, str]]


COVERAGE_FILE = "coverage.json"
"""File of a run's folder: coverage of the program by its packets, as `Coverage.save` writes it."""


class VirtualWorld:
    """Virtual world of one run, which is built and then `run` once."""

    def __init__(
        self,
        run: Run,
        *,
        trace: Tracing | None = None,
        capture: bool = False,
        compiler: str = "builtin",
        coverage: bool = False,
        workers: int | Ranks = 1,
        owners: Mapping[str, int] | None = None,
        late: Callable[[int], object] | None = None,
        crew: Callable[..., Crew] = Workers,
    ) -> None:
        """Prepare the world.

        `trace`: the packets that are traced. `capture`: record the frames on all hosts' links.

        `coverage`: count what of the program the packets reach. `workers`: so many processes share the work, or these
        ranks, each of which builds a world; that is in no result. `owners`: which of them has a node, by name, instead
        of `partition`'s; hosts that start flows when others are done are all the first one's. `late`: see `Workers`.
        `crew` makes the processes that share the work.
        """
        started = time.process_time()
        self.run_plan = run
        traffic = run.traffic()
        # With a fixed list of flows, hosts meet in frames only.
        independent = traffic.independent
        self._ahead_ns = _HAND_OVER_NS if independent else 0
        if trace is not None:
            tracing.check_trace(traffic, trace.flow, several=not isinstance(workers, int) or workers > 1)
        self._independent = independent
        built, built_here = (1, 1) if isinstance(workers, int) else (workers.count, workers.count_here)
        self._memory = memory_limit(run, built, built_here)
        # Flows that start when others are done would have to be walked through, which takes as long as some runs.
        if isinstance(workers, int) and independent:
            check_fits(run, expected(run, traffic))
        self._to_build = len(run.topology.hosts) + sum(len(run.topology.ports[s.name]) for s in run.topology.switches)
        self._built = 0
        local = traffic.local
        follows = local and not independent
        self.fabric = Fabric(
            framing_bytes=run.scenario.framing_bytes,
            independent_hosts=local,
            settle=self._settle if follows else None,
        )
        Fabric.on_abort(output_folder.removal(f"p4cc: error: {run.label}: {out_of_memory(MemoryError())}"))
        self.names: list[str] = []  # by fabric node
        self.links: list[tuple[str, str]] = []
        self._trace = trace
        self._capture = capture
        self._coverage = coverage
        self._compiler = compiler
        self._nodes: dict[str, int] = {}
        self._pipes: dict[str, Pipe] = {}  # by switch
        self.nics: list[Nic] = []
        self._hosts: list[HostSession] = []
        self._clients: dict[str, LocalClient] = {}  # by switch
        self._trimming: dict[int, dict[int, Trimming]] = {}  # by fabric node and port
        self._session = Session(traffic, run.addresses, self._carry, run.flow_columns, run.scenario.nic.os_overhead_ns)
        self._starts_ns: set[int] = set()  # when `_start_due` will be called
        self._own_events: list[Event] = []  # that all workers have been told of, this one included
        # The addresses of each connection's frames, source and destination, as far as somebody has asked.
        self._ends: array[int] = array("q")
        self._add_hosts()
        self._add_switches()
        self._add_links(capture)
        self._limit_ingress()
        self._trim()
        self._crew: Crew = Alone()
        self._turns: Turns | None = None
        count = workers if isinstance(workers, int) else workers.count
        ranks = owners or partition(run.topology, count, hosts_together=not local)
        by_node = [ranks[name] for name in self.names]
        if not isinstance(workers, int):
            self._crew = RankCrew(self.fabric, by_node, workers, self._on_told, late)
        elif workers > 1:
            self._crew = crew(self.fabric, by_node, count, self._on_told, late)
        if follows:
            self._paths, self._shortest_ns = Paths(run), run.shortest_delay_ns
            self._turns = Turns(self.fabric, self._session, self._crew, self._least_ns)
        for change in run.link_changes():
            self.fabric.at(change.time_ns, partial(self._change_link, change))
        for rerouted in run.route_changes():
            self.fabric.at(rerouted.time_ns, partial(self._reroute, rerouted))
        self._ports = self._sample_queues()
        self._sampled_by = np.array([ranks[switch] for switch in self._ports["switch"]], np.int64)
        places = ports_of(run.topology)
        self._links = LinkSamples(places, max(run.scenario.record.rate_interval_ns, 1))
        self._link_counters = LinkCounters(places, self._nodes, _columns(self.fabric.link_counters()))
        self._readings = Readings()
        self._looked_ns = 0  # at the memory
        self._rests_until_ns = 0  # nothing is sampled before: nothing is under way
        self._rest_samples = 0  # of queues, that were left out so
        self._watch = ProgressWatch(run, traffic)
        self._done_share = DoneShare(traffic, run.limit_ns)
        self._tell_s = 0.0  # when it is told again, on the monotonic clock
        self._standstill = ""  # how the run has ended, if nothing moves any more
        self._set_up_s = time.process_time() - started

    # Building

    def _add_hosts(self) -> None:
        run = self.run_plan
        for host, config in zip(run.topology.hosts, run.nic_configs(), strict=True):
            nic = Nic(config, run.protocol, run.load_balancing)
            self.nics.append(nic)
            tell, samples = partial(self._note, host.index), run.scenario.record.rate_interval_ns > 0
            self._hosts.append(HostSession(nic, tell, run.flow_columns, samples, run.group_senders))
            self._name(host.name, self.fabric.add_host(WholeFrames(nic) if config.check_icrc else nic, name=host.name))
            self._tell_built(1)

    def _add_switches(self) -> None:
        run = self.run_plan
        told = self._trace is not None and self._trace.pipelines
        built = pipeline(run.build, told or self._coverage, self._compiler)
        self._traced = built.traced
        self._accounts = built.program.accounts
        settings = run.scenario.switch
        common = run.controller_settings()
        self._rerouting = Rerouting(run.topology, built.program, run.program_parameters, common)
        for switch in run.topology.switches:
            pipe = self._pipes[switch.name] = built.switch(switch.device_id, run.seed)
            client = self._clients[switch.name] = LocalClient(_device(pipe, switch.device_id))
            view = controller.switch_view(run.topology, switch, common)
            controller.install(client, built.program, run.program_parameters, view)
            node = self.fabric.add_switch(
                pipe,
                name=switch.name,
                latency_ns=settings.latency_ns,
                dscp_classes=dscp_classes(common.priority_of_dscp),
                **settings.traffic(),
            )
            self._trimming[node] = run.program_parameters.trimming_ports(view)
            self._name(switch.name, node)
            self._tell_built(len(run.topology.ports[switch.name]))

    def _tell_built(self, more: int) -> None:
        """Report the progress of building: hosts count once, switches by their ports, which matches their times."""
        self._built += more
        building.tell(self._built / self._to_build)

    def _limit_ingress(self) -> None:
        """Set PFC, and the limits of ingress ports.

        A limit without PFC is a threshold without headroom: nothing gets beyond it, so nothing is ever
        paused.
        """
        settings = self.run_plan.scenario.switch
        pfc = settings.pfc
        if not pfc.enabled and settings.ingress_bytes is None:
            return
        for switch in self.run_plan.topology.switches:
            for port, there in self.run_plan.topology.ports[switch.name].items():
                limit_bytes = xoff_bytes(self.run_plan, switch.name, there)
                self.fabric.set_pfc(
                    self._nodes[switch.name],
                    priorities=self.run_plan.lossless_priorities,
                    port=port,
                    xoff_bytes=limit_bytes,
                    alpha=pfc.alpha if limit_bytes is None else None,
                    xon_gap_bytes=pfc.xon_gap_bytes,
                    headroom_bytes=headroom_bytes(self.run_plan, switch.name, there) if pfc.enabled else 0,
                    reaction_ns=pfc.reaction_ns,
                )

    def _trim(self) -> None:
        """Set what the switches' traffic managers trim."""
        for node, ports in self._trimming.items():
            for port, trimming in ports.items():
                self.fabric.set_trimming(node, port, **trimming.model_dump())

    def _name(self, name: str, node: int) -> None:
        assert node == len(self.names)
        self.names.append(name)
        self._nodes[name] = node

    def _add_links(self, capture: bool) -> None:
        hosts = self.run_plan.topology.host_by_name
        self._rates_bps = [0] * len(hosts)  # of hosts' links, at most
        changes = self.run_plan.link_changes()
        run_seed = self.run_plan.seed << 32  # links are numbered from there
        run_framing = self.run_plan.scenario.framing_bytes
        for link in self.run_plan.topology.links:
            number = self.fabric.connect(
                self._nodes[link.a],
                0 if link.a in hosts else link.a_port,
                self._nodes[link.b],
                0 if link.b in hosts else link.b_port,
                rate_bps=link.rate_bps,
                delay_ns=link.delay_ns,
                loss=link.loss,
                seed=run_seed,
                framing_bytes=run_framing if link.framing_bytes is None else link.framing_bytes,
            )
            assert number == len(self.links)
            self.links.append((link.a, link.b))
            for name in (link.a, link.b):
                if name in hosts:
                    changed_bps = (change.rate_bps or 0 for change in changes if change.link == number)
                    self._rates_bps[hosts[name].index] = max(link.rate_bps, *changed_bps, 0)
            if capture and (link.a in hosts or link.b in hosts):
                self.fabric.capture(number)

    def _change_link(self, change: LinkChange, now_ns: int) -> None:
        if change.up is not None:
            self.fabric.set_link_up(change.link, change.up)
        if change.rate_bps is not None:
            self.fabric.set_link_rate(change.link, change.rate_bps, direction=change.direction)
        if change.delay_ns is not None:
            self.fabric.set_link_delay(change.link, change.delay_ns)
        if change.loss is not None:
            self.fabric.set_link_loss(change.link, change.loss)

    def _reroute(self, change: RouteChange, now_ns: int) -> None:
        for switch in self.run_plan.topology.switches:
            if self._crew.has(self._nodes[switch.name]):
                self._clients[switch.name].write(self._rerouting.updates(switch, change.before, change.now))

    def _sample_queues(self) -> pd.DataFrame:
        """Start sampling queues, and return the sampled ports."""
        record = self.run_plan.scenario.record
        topology = self.run_plan.topology
        ports = [
            (switch.name, port, there.node)
            for switch in topology.switches
            for port, there in topology.ports[switch.name].items()
            if record.queue_interval_ns and (record.queues == "all" or there.node in topology.host_by_name)
        ]
        for switch, port, _ in ports:
            self.fabric.probe("depth_bytes", self._nodes[switch], port)
        if ports:
            self.fabric.sample(record.queue_interval_ns)
        return port_places(ports)

    # Probes

    def _read_repeatedly(self, probe: Probe, now_ns: int) -> None:
        self._read(probe, now_ns)
        self.fabric.at(now_ns + probe.interval_ns, partial(self._read_repeatedly, probe))

    def _read(self, probe: Probe, now_ns: int) -> None:
        read: dict[str, list[Values]] = {}
        if isinstance(probe, QueueProbe):
            for (switch, port, leads_to), value in self._read_queues(probe):
                read.setdefault(switch, []).append((port, leads_to, value))
        elif isinstance(probe, CellProbe):
            for name, pipe in self._own(self._pipes).items():
                if probe.covers(name):
                    read[name] = list(probe.read_by(program_state.ByEngine(pipe), self.run_plan))
        elif isinstance(probe, SwitchProbe):
            for name, client in self._own(self._clients).items():
                if probe.covers(name):
                    read[name] = list(probe.read(self.run_plan, client))
        elif isinstance(probe, HostProbe):
            hosts = [host.name for host in self.run_plan.topology.hosts]
            for name, session in self._own(dict(zip(hosts, self._hosts, strict=True))).items():
                if probe.covers(name):
                    read[name] = list(probe.read(session))
        for name, rows in merged(self._crew.gather(read), self.names).items():
            self._readings.add(probe, now_ns, name, rows)

    def _read_queues(self, probe: QueueProbe) -> list[tuple[tuple[str, int, str], int]]:
        """Return the probe's ports with their values, at the first worker.

        A frame that is lost on a link that fails counts at its sender's port where its receiver is.
        """
        values = self._at_ports(probe.reads, probe.priority)
        ports = probe.ports(self.run_plan)
        own = [values.get((self._nodes[switch], port), 0) for switch, port, _ in ports]
        sums = self._added_up(own)
        return list(zip(ports, sums, strict=True)) if self._crew.first else []

    def _added_up(self, own: list[int]) -> list[int]:
        """Return the sums of all workers' counts of the same things, at the first one."""
        parts = self._crew.gather(own)
        return [sum(counts) for counts in zip(*parts, strict=True)] if len(parts) > 1 else own

    def _own(self, by_name: Mapping[str, _Of]) -> dict[str, _Of]:
        """Return the entries of this worker's nodes."""
        return {name: value for name, value in by_name.items() if self._crew.has(self._nodes[name])}

    def _own_hosts(self) -> Iterable[HostSession]:
        return self._own(dict(zip(self.names, self._hosts, strict=False))).values()

    def _at_ports(self, quantity: str, priority: int | None) -> dict[tuple[int, int], int]:
        """Return a quantity by node and port, without unused ports."""
        stats = _columns(self.fabric.port_stats() if priority is None else self.fabric.queue_stats())
        rows = zip(stats["node"].tolist(), stats["port"].tolist(), stats[quantity].tolist(), strict=True)
        if priority is None:
            return {(node, port): value for node, port, value in rows}
        meant = stats["priority"] == priority
        return {(node, port): value for (node, port, value), here in zip(rows, meant, strict=True) if here}

    # Flows

    def _schedule_start(self) -> None:
        """Have the flows that start next started then. There is one event for a time, however often it is next."""
        start_ns = self._session.next_start_ns
        if start_ns is None:
            return
        time_ns = max(start_ns, self.fabric.now_ns)
        if time_ns not in self._starts_ns:
            self._starts_ns.add(time_ns)
            # Independent hosts' workers all have a session: each hands over its own hosts' flows.
            self.fabric.at(time_ns, self._start_due, own=not self._independent)

    def _start_due(self, now_ns: int) -> None:
        self._starts_ns.remove(now_ns)
        self._session.start_due(now_ns + self._ahead_ns)
        self._schedule_start()

    def _settle(self, end_ns: int) -> None:
        assert self._turns is not None
        self._turns.settle(end_ns)

    def _least_ns(self, flow: Flow) -> int:
        """Return the least time until a flow is done: its payload on its source's link, and the way there and back."""
        there, back = self._paths.links(flow)
        own_ns = 0.0 if flow.stop_ns is not None else flow.size_bytes * 8e9 / self._rates_bps[flow.source]
        return int(own_ns) + (there + back) * self._shortest_ns

    def _carry(self, host: int, request: Connect | Post | Assignment) -> None:
        """Carry a request from the session to a host."""
        if isinstance(request, Post):
            if self._trace is not None:
                self._follow(request, self._trace)
            if self._turns is not None:
                self._turns.take(host)
        if not self._crew.has(host):
            return
        if isinstance(request, Connect):
            self._hosts[host].connect(request)
            return
        if isinstance(request, Assignment):
            self._hosts[host].assign(request)
            self.fabric.kick(host)
            return
        if request.start_ns <= self.fabric.now_ns:
            self._post(host, request, self.fabric.now_ns)
        else:
            self.fabric.at(request.start_ns, partial(self._post, host, request), host=host)

    def _follow(self, request: Post, trace: Tracing) -> None:
        """Have the packets of a flow traced, if it is the one."""
        if trace.flow != self._session.records[request.flow].flow.number:
            return
        connection = self._session.connections[request.number - FIRST_NUMBER]
        tag = self.fabric.flow(*self._ends_of(connection), request.number)
        most = {} if trace.packets is None else {"packets": trace.packets}
        span = {"from_ns": trace.from_ns, "until_ns": trace.last_ns}
        self.fabric.trace(tag, **most, **span, pipelines=trace.pipelines)

    def _ends_of(self, connection: Connection) -> tuple[int, int]:
        """Return where a connection's frames come from, and where they go to, as numbers."""
        source, destination = self.run_plan.addresses(connection.sources, connection.destinations)
        return _number_of(source), _number_of(destination)

    def _post(self, host: int, request: Post, now_ns: int) -> None:
        self._hosts[host].post(request, now_ns)
        self.fabric.kick(host)
        if request.stop_ns is not None:
            self.fabric.at(request.stop_ns, partial(self._stop, host, request), host=host)

    def _stop(self, host: int, request: Post, now_ns: int) -> None:
        self._hosts[host].stop(request)
        self.fabric.kick(host)

    def _note(self, host: int, event: Event) -> None:
        """Pass an event from a host to the session, or to all workers' sessions in the same order."""
        if self._turns is not None:
            self._turns.report(host, event)
        elif self._independent and self._crew.count > 1:
            self._crew.tell(reports.packed(self.fabric.now_ns, host, event, self._session.is_joint(event)))
            self._own_events.append(event)
        else:
            self._on_event(host, event)

    def _on_told(self, told: list[bytes]) -> None:
        if self._turns is not None:
            self._turns.hear(told)
            return
        own = iter(self._own_events)  # which come back in their order
        self._own_events = []
        heard = map(reports.unpacked, told)
        events = [(host, next(own) if self._crew.has(host) else event) for _, host, event in heard]
        for host, event in sorted(events, key=itemgetter(0)):
            self._on_event(host, event)

    def _on_event(self, host: int, event: Event) -> None:
        self._session.note(host, event)
        if not self._independent:
            self._schedule_start()
        if self._session.finished:
            self.fabric.stop()

    # Running

    def run(self, progress: Progress | None = None) -> Recording:
        """Run until every flow is acknowledged, or until the scenario's limit."""
        with self._crew.at_work(), rare_collection(), self._named_errors():
            recording = self._run(progress)
        Fabric.on_abort(())
        assert recording is not None  # of the first worker
        return recording

    def follow(self) -> None:
        """Take part in a run, at another rank than the first."""
        with self._crew.at_work(), rare_collection(), self._named_errors():
            self._run(None)

    def _named_errors(self) -> NamedErrors:
        run = self.run_plan
        hosts = [host.name for host in run.topology.hosts]
        return NamedErrors(
            run.protocol.name,
            run.load_balancing.name,
            lambda: zip(hosts, self._hosts, strict=True),
            lambda: self.fabric.now_ns,
        )

    def _run(self, progress: Progress | None) -> Recording | None:
        started = time.process_time()
        scenario = self.run_plan.scenario
        session = self._session
        if self._independent or self._turns is not None or self._crew.first:
            session.begin()
            if self._turns is not None:
                self._turns.begin()
            else:
                self._schedule_start()
        if scenario.record.rate_interval_ns:
            self.fabric.at(scenario.record.rate_interval_ns, self._sample_rates)
        for probe in probes_of(self.run_plan):
            if probe.interval_ns:
                self.fabric.at(0, partial(self._read_repeatedly, probe))
        self.fabric.at(0, self._look_at_progress)
        stop = self.fabric.run(
            until_ns=self.run_plan.limit_ns, progress=partial(self._progress, progress), progress_events=_LOOK_EVENTS
        )
        self._look_at_memory(self.fabric.now_ns)
        how = self._standstill or {"until": "limit"}.get(stop, stop)
        ended = self._crew.agree(session.outcome if session.finished else how)
        if ended == "limit" and self._is_idle():
            ended = IDLE
            self._stands_still(self.fabric.now_ns)  # so that it is known since when
        for probe in probes_of(self.run_plan):
            if not probe.interval_ns:
                self._read(probe, self.fabric.now_ns)
        told = self._reports()
        if scenario.record.rate_interval_ns:
            self._sample_links(self.fabric.now_ns)
        parts = self._crew.gather(self._part())
        if self._crew.count > 1 and (self._independent or self._turns is not None):
            for details in self._crew.gather(session.details(self._crew.has))[1:]:
                session.note_details(details)
        if self._crew.first:
            session.end(told)
        own_s = time.process_time() - started
        recording = self._recording(ended, parts) if self._crew.first else None
        cpu_s, memory_bytes = cost(self._crew, own_s)
        residue = self._residue() if ended == "done" else None
        self._collect_records()
        if recording is not None:
            recording.residue, recording.cpu_s, recording.peak_memory_bytes = residue, cpu_s, memory_bytes
            recording.still_since_ns = self._watch.since_ns if ended in STANDSTILLS else None
        return recording

    def _collect_records(self) -> None:
        """Collect the records that `write_more` writes."""
        passed = {name: pipe.passed() for name, pipe in self._own(self._pipes).items()} if self._coverage else {}
        self._passed = merged(self._crew.gather(passed), list(self._pipes))
        if self._crew.count > 1:
            for records in self._crew.gather(self.fabric.take_records()):
                self.fabric.add_records(records)

    def _residue(self) -> dict[str, int]:
        """Return the flow state left in registers, once all switches have seen the flows' ends."""
        run = self.run_plan
        registers = run.program_parameters.zero_when_done
        if not registers:
            return {}
        until_ns = self.fabric.now_ns + _MOST_RTTS_TO_END * run.base_rtt_ns()
        while self._is_busy() and self.fabric.now_ns < until_ns:
            self.fabric.run(until_ns=self.fabric.now_ns + run.base_rtt_ns())
        parts = self._crew.gather(
            {
                name: program_state.left_in(
                    {name: program_state.ByEngine(pipe)}, registers, compiled(run.build).p4info, run.program.name
                )
                for name, pipe in self._own(self._pipes).items()
            }
        )
        hosts = zip(self.names, self._hosts, strict=False)
        left = {name: session.nic.host.residue() for name, session in self._own(dict(hosts)).items()}
        found = {where: n for each in merged(parts, list(self._pipes)).values() for where, n in each.items()}
        for name, each in merged(self._crew.gather(left), self.names).items():
            found |= {f"{what} of {name}": n for what, n in each.items()}
        return found

    def _progress(self, progress: Progress | None, now_ns: int, _: int) -> None:
        self._look_at_memory(now_ns)
        is_due = progress is not None and time.monotonic() >= self._tell_s
        if self._crew.agree(is_due):
            began_s = time.monotonic()
            parts = self._crew.gather(sum(host.advanced_bytes() for host in self._own_hosts()))
            if progress is not None and self._crew.first:
                done, known = self._session.progress
                progress(self._done_share.at(now_ns, sum(parts), done, known), done, known, now_ns)
            told_s = time.monotonic()
            self._tell_s = told_s + max(_TELL_EVERY_S, _TELL_EVERY_TIMES * (told_s - began_s))

    def _look_at_memory(self, now_ns: int) -> None:
        """Raise UserError if memory does not suffice for what is held and for the tables of the samples.

        All workers come here together, at the same time of the model.
        """
        self._looked_ns = now_ns
        interval_ns = self.run_plan.scenario.record.queue_interval_ns
        samples = max(0, now_ns // interval_ns - self._rest_samples) if interval_ns else 0
        queue_samples = samples * len(self._ports)
        self._memory.look(now_ns, queue_samples, self._crew)

    def _look_at_progress(self, now_ns: int) -> None:
        """End a run in which nothing will ever move any more, whatever else keeps the clock going."""
        first = self._crew.first
        if self._stands_still(now_ns):
            if not self._is_busy():
                self._standstill = IDLE
            elif self._crew.agree(first and self._watch.out_of_patience(now_ns)):
                self._standstill = STALLED
        if self._standstill:
            self.fabric.stop()
        else:
            self._rest(now_ns)
            next_ns = max(now_ns + self._watch.interval_ns, self._rests_until_ns)
            self.fabric.at(next_ns, self._look_at_progress)

    def _rest(self, now_ns: int) -> None:
        """Stop sampling while nothing is under way and the next flow starts late.

        What would be read is 0 everywhere. A rest lasts longer than the time between two looks.
        """
        start_ns = self._crew.agree(self._session.next_start_ns)
        if start_ns is None or start_ns <= now_ns + self._watch.interval_ns:
            return
        if self._crew.agree(self._session.under_way) or self._is_busy():
            return
        self._rests_until_ns = start_ns
        interval_ns = self.run_plan.scenario.record.queue_interval_ns
        if len(self._ports):
            resumed_ns = _multiple(start_ns, interval_ns)
            self.fabric.sample(interval_ns, resumed_ns)
            self._rest_samples += (resumed_ns - now_ns) // interval_ns

    def _stands_still(self, now_ns: int) -> bool:
        """Return whether nothing has moved since the last call."""
        parts = self._crew.gather(sum(host.moved() for host in self._own_hosts()))
        return self._crew.agree(self._crew.first and self._watch.stands_still(now_ns, sum(parts), self._session))

    def _is_idle(self) -> bool:
        """Return whether all flows have started, and nothing is or will be under way: only the sampling goes on."""
        begun_ns = self.fabric.now_ns - self.run_plan.scenario.nic.os_overhead_ns
        return self._crew.agree(self._session.all_started(begun_ns)) and not self._is_busy()

    def _is_busy(self) -> bool:
        """Return whether something is under way, or will be."""
        held = self.fabric.conservation()
        return self._crew.either(
            bool(held["queued"] or held["on_wire"]) or any(nic.next_wakeup_ns() < NEVER for nic in self.nics)
        )

    def _reports(self) -> list[HostReport]:
        """Return the counts of unfinished flows and the bytes on receivers' links."""
        count = self._crew.agree(len(self._session.connections))
        numbers = range(FIRST_NUMBER, FIRST_NUMBER + count)
        on_wire = self._delivered_bytes(numbers)
        own = {host: session.report({}) for host, session in enumerate(self._hosts) if self._crew.has(host)}
        reports = merged(self._crew.gather(own), range(len(self._hosts)))
        if not self._crew.first:
            return []
        delivered: list[dict[int, int]] = [{} for _ in self._hosts]
        for number, carried in zip(numbers, on_wire, strict=True):
            # Of all members of a group together: the session adds up what its ends say.
            delivered[self._session.connections[number - FIRST_NUMBER].destinations[0]][number] = carried
        return [replace(report, delivered_bytes=delivered[host]) for host, report in reports.items()]

    def _framing_bytes(self, addresses: Integers) -> Integers:
        """Return the links' charge for a frame to destinations; to a group, the members' mean."""
        run = self.run_plan
        extra_bytes = [run.topology.uplink(host).extra_bytes for host in run.topology.hosts]
        own = {int(host.address): extra_bytes[host.index] for host in run.topology.hosts if extra_bytes[host.index]}
        if own:
            own |= {int(group.address): round(fmean(extra_bytes[m] for m in group.members)) for group in run.groups}
        return np.array([run.scenario.framing_bytes + own.get(address, 0) for address in addresses.tolist()], np.int64)

    def _delivered_bytes(self, numbers: Sequence[int]) -> list[int]:
        """Return these connections' bytes on the receivers' links, framing included, at the first worker."""
        connections = self._session.connections
        for connection in connections[len(self._ends) // 2 :]:
            self._ends.extend(self._ends_of(connection))
        ends = np.array(self._ends, np.int64).reshape(-1, 2)
        stats = _columns(self.fabric.flow_stats())
        place = stats["qp"] - FIRST_NUMBER
        rows = np.flatnonzero((place >= 0) & (place < len(connections)))
        # What receivers answer has the same number, and the other way.
        rows = rows[(stats["dst_ip"][rows] == ends[place[rows], 1]) & (stats["src_ip"][rows] == ends[place[rows], 0])]
        carried = np.zeros(len(connections), np.int64)
        framing_bytes = self._framing_bytes(stats["dst_ip"][rows])
        carried[place[rows]] = stats["delivered_bytes"][rows] + framing_bytes * stats["delivered_packets"][rows]
        # Where hosts are all the first worker's, the others' sessions know of no connection.
        return self._added_up([int(carried[number - FIRST_NUMBER]) if connections else 0 for number in numbers])

    def _sample_rates(self, now_ns: int) -> None:
        record = self.run_plan.scenario.record
        if now_ns - self._looked_ns > _SAMPLES_A_LOOK * record.queue_interval_ns > 0:
            self._look_at_memory(now_ns)  # a run that waits makes progress in samples only
        parts = self._crew.gather([sample for host in self._hosts for sample in host.sample(now_ns)])
        samples = sorted(sample for part in parts for sample in part)
        numbers = self._crew.agree([sample.number for sample in samples])
        delivered = dict(zip(numbers, self._delivered_bytes(numbers), strict=True))
        self._session.note_rates(samples, lambda sample: delivered[sample.number])
        if self._crew.agree(self._links.is_due(now_ns)):
            self._sample_links(now_ns)
        interval_ns = record.rate_interval_ns
        next_ns = max(now_ns + interval_ns, _multiple(self._rests_until_ns, interval_ns))
        self.fabric.at(next_ns, self._sample_rates)

    def _sample_links(self, now_ns: int) -> None:
        counters = self._link_counters.in_order(_columns(self.fabric.link_counters()))
        parts = self._crew.gather(counters)
        if parts:
            self._links.add(now_ns, {name: np.sum([part[name] for part in parts], axis=0) for name in counters})

    def trace_records(self) -> list[TraceRecord]:
        """Return the events of the traced flow's packets, hop by hop: see `Fabric.trace_records`."""
        return self.fabric.trace_records()

    def captured(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield (time_ns, "from to", frame) of the frames on hosts' links, in order of their first bits."""
        for time_ns, link, direction, headers, _ in self.fabric.captured():
            a, b = self.links[link]
            yield time_ns, f"{b} to {a}" if direction else f"{a} to {b}", wire.materialize(headers)

    def write_more(self, folder: Path, writing: Writing | None = None) -> None:
        """Write the requested files: hosts.pcapng, trace.txt and trace.jsonl, coverage.json."""
        if self._capture:
            write_pcap(folder / "hosts.pcapng", self.captured())
        if self._trace is not None:
            records = tracing.with_progress(self.trace_records(), writing)
            found, again = tee(tracing.hops(records, self._decoder, self._trace.packets))
            told, objects = tracing.explain(found, self.names), tracing.as_json(again, self.names)
            with (
                (folder / TRACE_TEXT).open("w", encoding="utf-8") as text,
                (folder / TRACE_LINES).open("w", encoding="utf-8") as lines,
            ):
                for line, members in zip(told, objects, strict=True):  # together: a trace may be larger than the memory
                    text.write(f"{line}\n")
                    lines.write(f"{members}\n")
        if self._coverage:
            assert self._traced is not None
            coverage = Coverage()
            for passed in self._passed.values():
                coverage.add(self._traced.program.points, passed)
            coverage.save(folder / COVERAGE_FILE)

    def _decoder(self) -> Decoder:
        assert self._traced is not None
        return Decoder(self._traced)

    def _part(self) -> _Part:
        """Return this worker's part of the recording, at the end."""
        totals: Counter[str] = Counter()
        for host, nic in enumerate(self.nics):
            if self._crew.has(host):
                totals.update(nics.counts(nic.stats))
        return _Part(
            samples=self.fabric.samples(),
            port_stats=self.fabric.port_stats(),
            queue_stats=self.fabric.queue_stats(),
            pfc_stats=self.fabric.pfc_stats(),
            conservation=self.fabric.conservation(),
            counted=count(map(program_state.ByEngine, self._own(self._pipes).values()), self._accounts),
            nic_totals=totals,
            failed_asserts={
                name: (pipe.failed_asserts, pipe.failed_assert)
                for name, pipe in self._own(self._pipes).items()
                if pipe.failed_assert is not None
            },
        )

    def _recording(self, ended: str, parts: list[_Part]) -> Recording:
        """Return the recording without `residue` and the run's cost."""
        fabric = self.fabric
        times, depths = joined.samples([part.samples for part in parts], self._sampled_by)
        rate_interval_ns = self.run_plan.scenario.record.rate_interval_ns
        counted: Counter[Kind] = Counter()
        totals: Counter[str] = Counter()
        for part in parts:
            counted.update(part.counted)
            totals.update(part.nic_totals)
        totals["misdelivered"] += self._session.forged
        return Recording(
            ended=ended,
            compiler=self._compiler,
            end_ns=fabric.now_ns,
            events=fabric.events,
            flows=self._session.records,
            series={"queues": Series(DEPTH.name, self._ports, np.frombuffer(times, np.int64), depths)},
            tables={
                "rates": rates_table(self._session.rates, rate_interval_ns),
                **({"links": self._links.table()} if rate_interval_ns else {}),
                **collective_tables(self._session.collectives, [host.name for host in self.run_plan.topology.hosts]),
                **self._readings.tables(self.run_plan),
            },
            port_stats=_columns(joined.columns([part.port_stats for part in parts])),
            queue_stats=_columns(joined.columns([part.queue_stats for part in parts])),
            pfc_stats=_columns(joined.columns([part.pfc_stats for part in parts])),
            node_names=self.names,
            conservation=by_name(joined.ledger([part.conservation for part in parts]), counted),
            pfc_events=[
                {"time_ns": at, "kind": kind, "queues": [[self.names[node], port, prio] for node, port, prio in queues]}
                for at, kind, _, queues in fabric.pfc_events()
            ],
            nic_totals=dict(totals),
            workload=self._session.traffic.summary(),
            failed_asserts=merged([part.failed_asserts for part in parts], self.names),
            residue=None,
            cpu_s=0.0,
            set_up_s=self._set_up_s,
            peak_memory_bytes=0,
        )


@lru_cache(maxsize=1 << 17)
def _number_of(address: str) -> int:
    """Return an address as a number, cached since each flow asks."""
    return int(IPv4Address(address))


def _multiple(time_ns: int, interval_ns: int) -> int:
    """Return the first multiple of the interval that is not before `time_ns`."""
    return -(-time_ns // interval_ns) * interval_ns


def _device(pipe: Pipe, device_id: int) -> Device:
    """Return the P4Runtime target in front of a switch, whose clock nothing here asks for."""
    return Device(lambda _: pipe, device_id, clock_ns=lambda: 0)


def _columns(table: dict[str, bytes]) -> dict[str, Integers]:
    return {name: np.frombuffer(column, np.int64) for name, column in table.items()}
