"""Virtual world: a run on a network with one discrete-event clock, in one process or in several."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import tee
from pathlib import Path

import numpy as np
import pandas as pd

from control_plane.program_ledger import Kind, by_name
from harness.columns.queues import DEPTH, QUEUES
from harness.errors import out_of_memory
from harness.measure import output_folder, tracing
from harness.measure.flow_record import FlowRecord
from harness.measure.links import LinkSamples, ports_of
from harness.measure.metrics import rates_table
from harness.measure.recording import (
    IDLE,
    STALLED,
    STANDSTILLS,
    Progress,
    Recording,
    Series,
    Writing,
    places,
)
from harness.measure.tracing import TraceRecord
from harness.plan.how import TRACE_LINES, TRACE_TEXT, Tracing
from harness.plan.probes import Probe, probes_of
from harness.plan.probes.readings import Readings
from harness.plan.run import Run
from harness.workloads import Traffic
from harness.workloads.collective_record import collective_tables
from harness.worlds.earliest_end import EarliestEnd
from harness.worlds.expected import check_fits, expected, memory_limit
from harness.worlds.garbage_collection import rare_collection
from harness.worlds.host_session import Connect, Event, HostReport, Post
from harness.worlds.local import Counts, LocalWorld, columns, ends_of
from harness.worlds.memory import MemoryLimit
from harness.worlds.network import Network
from harness.worlds.parallel import Crew, RankCrew, Workers
from harness.worlds.partition import partition
from harness.worlds.partitioned import PartitionedWorld
from harness.worlds.progress import DoneShare, ProgressWatch
from harness.worlds.raised import NamedErrors
from harness.worlds.ranks import Ranks
from harness.worlds.session import FIRST_NUMBER, Session, outcome
from harness.worlds.starts import Order, SharedStarts, Starts
from harness.worlds.turns import Turns
from host_agents.assignments import Assignment
from host_agents.timers import NEVER
from p4switch.coverage import Coverage
from p4switch.fabric import Fabric, joined

_LOOK_EVENTS = 1_000_000  # events of the network between two checks of memory and progress
_TELL_EVERY_S = 0.5  # wall-clock time between two reports of progress
_TELL_EVERY_TIMES = 50  # multiple of a report's own duration, since it queries every queue pair
_SAMPLES_A_LOOK = 1000  # samples of the queues between two checks of memory
_MOST_RTTS_TO_END = 1000  # time for events after the last flow's end

COVERAGE_FILE = "coverage.json"
"""File of a run's folder: coverage of the program by its packets, as `Coverage.save` writes it."""


class VirtualWorld:
    """Virtual world of one run, which is built and then `run` once.

    It queries its `LocalWorld` for activity and counts of hosts and switches. With several workers
    each process has a virtual world, and queries a `PartitionedWorld`, which combines the results
    of all.
    """

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
        on_start: Callable[[int], object] | None = None,
        crew: Callable[..., Crew] = Workers,
    ) -> None:
        """Prepare the world.

        `trace` selects the packets that are traced. `capture` records the frames on all hosts'
        links. `coverage` counts the program points that packets reach. `workers` is the number of
        processes that share the work, or the ranks, each of which builds a world; it does not
        affect results. `owners` assigns nodes to them by name, instead of `partition`; the first
        one has all hosts that start flows after others are done. `Workers` describes `on_start`.
        `crew` makes the processes that share the work.
        """
        started = time.process_time()
        self.run_plan = run
        traffic = run.traffic()
        # With a fixed list of flows, hosts interact through frames only.
        self._independent = traffic.independent
        takes_turns = traffic.local and not traffic.independent
        several = not isinstance(workers, int) or workers > 1
        if trace is not None:
            tracing.check_trace(traffic, trace.flow, several=several)
        self._memory = _checked_memory(run, traffic, workers)
        self._trace = trace
        self._capture = capture
        self._coverage = coverage
        self._compiler = compiler
        Fabric.on_crash(output_folder.removal(f"p4cc: error: {run.label}: {out_of_memory(MemoryError())}"))
        self.network = Network(
            run,
            self._note,
            independent_hosts=traffic.local,
            settle=self._settle if takes_turns else None,
            compiler=compiler,
            traced=coverage or (trace is not None and trace.pipelines),
            capture=capture,
        )
        self.fabric = self.network.fabric
        self._session = Session(
            traffic,
            run.addresses,
            self._carry,
            run.flow_columns,
            run.scenario.nic.os_overhead_ns,
            self.network.owns,
            None if trace is None else partial(self._follow, trace),
            takes_turns and several,
        )
        local = LocalWorld(run, self.network, self._session)
        self._whole: LocalWorld | PartitionedWorld = local
        shared: Crew | None = None
        if several:
            count = workers if isinstance(workers, int) else workers.count
            ranks = owners or partition(run.topology, count, hosts_together=not traffic.local)
            by_node = [ranks[name] for name in self.network.names]
            if isinstance(workers, int):
                shared = crew(self.fabric, by_node, count, self._hear, on_start)
            else:
                shared = RankCrew(self.fabric, by_node, workers, self._hear, on_start)
            self._whole = PartitionedWorld(local, shared, ranks)
        self._order = self._order_of(takes_turns, shared)
        self._schedule_changes()
        self._ports = self._sample_queues()
        self._links = LinkSamples(ports_of(run.topology), max(run.scenario.record.rate_interval_ns, 1))
        self._readings = Readings()
        self._looked_ns = 0  # time of the last check of memory
        self._rests_until_ns = 0  # no samples before this time, because nothing is in progress
        self._rest_samples = 0  # number of queue samples that were left out for this reason
        self._watch = ProgressWatch(run, traffic)
        self._done_share = DoneShare(traffic, run.limit_ns)
        self._report_s = 0.0  # monotonic time of the next report of progress
        self._standstill = ""  # reason for the end of a run without further progress
        self._set_up_s = time.process_time() - started

    def _schedule_changes(self) -> None:
        """Schedule the changes of links and routes that the run plans."""
        for change in self.run_plan.link_changes():
            self.fabric.at(change.time_ns, partial(self.network.change_link, change))
        for rerouted in self.run_plan.route_changes():
            self.fabric.at(rerouted.time_ns, partial(self.network.reroute, rerouted))

    def _order_of(self, takes_turns: bool, crew: Crew | None) -> Order:
        """Return the order of starts and reports; `crew` has the workers, if there are several."""
        fabric, session = self.fabric, self._session
        if takes_turns:
            earliest_end = EarliestEnd(self.run_plan, self.network.host_rates_bps)
            tell_others = None if crew is None else partial(crew.tell, others=True)
            return Turns(fabric, session, earliest_end.after, tell_others)
        starts = Starts(fabric, session, self._independent)
        if crew is None or not self._independent:
            return starts
        return SharedStarts(starts, self.network, session, crew.tell)

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
            self.fabric.probe("depth_bytes", self.network.nodes[switch], port)
        if ports:
            self.fabric.sample(record.queue_interval_ns)
        return places(QUEUES, ports)

    # Communication of session and hosts

    def _carry(self, host: int, request: Connect | Post | Assignment) -> None:
        """Pass a request from the session to a host."""
        if isinstance(request, Post):
            self._order.hand_over(host)
        self.network.carry(host, request)

    def _follow(self, trace: Tracing, record: FlowRecord) -> None:
        """Trace the packets of a flow if it is the selected one."""
        if trace.flow != record.flow.number:
            return
        connection = self._session.connections[record.qp - FIRST_NUMBER]
        tag = self.fabric.flow(*ends_of(self.run_plan, connection), record.qp)
        most = {} if trace.packets is None else {"packets": trace.packets}
        span = {"from_ns": trace.from_ns, "until_ns": trace.last_ns}
        self.fabric.trace(tag, **most, **span, pipelines=trace.pipelines)

    def _note(self, host: int, event: Event) -> None:
        """Pass an event from a host to the session, or to all workers' sessions in the same order."""
        self._order.report(host, event)

    def _hear(self, messages: list[bytes]) -> None:
        """Process messages of workers."""
        self._order.hear(messages)

    def _settle(self, end_ns: int, again: bool) -> int | None:
        assert isinstance(self._order, Turns)
        return self._order.settle(end_ns, again)

    # Running

    def run(self, progress: Progress | None = None) -> Recording:
        """Run until every flow is acknowledged, or until the scenario's limit."""
        with self._whole.at_work(), rare_collection(), self._named_errors():
            recording = self._run(progress)
        Fabric.on_crash(())
        assert recording is not None  # the first worker has it
        return recording

    def follow(self) -> None:
        """Take part in a run at a rank other than the first."""
        with self._whole.at_work(), rare_collection(), self._named_errors():
            self._run(None)

    def _named_errors(self) -> NamedErrors:
        run = self.run_plan
        return NamedErrors(
            run.protocol.name,
            run.load_balancing.name,
            lambda: zip(self.network.names, self.network.hosts, strict=False),
            lambda: self.fabric.now_ns,
        )

    def _run(self, progress: Progress | None) -> Recording | None:
        started = time.process_time()
        run, whole, session = self.run_plan, self._whole, self._session
        interval_ns = run.scenario.record.rate_interval_ns
        if self._independent or session.traffic.local or whole.leads:
            session.begin()
            self._order.begin()
        if interval_ns:
            self.fabric.at(interval_ns, self._sample_rates)
        for probe in probes_of(run):
            if probe.interval_ns:
                self.fabric.at(0, partial(self._read_repeatedly, probe))
        self.fabric.at(0, self._look_at_progress)
        stop = self.fabric.run(
            until_ns=run.limit_ns, progress=partial(self._report_progress, progress), progress_events=_LOOK_EVENTS
        )
        self._look_at_memory(self.fabric.now_ns)
        how = self._standstill or {"until": "limit"}.get(stop, stop)
        finished = whole.finished()
        ended = whole.decided(outcome(whole.failures()) if finished else how)
        if ended == "limit" and self._is_idle():
            ended = IDLE
            self._stands_still(self.fabric.now_ns)  # this records the time of the last progress
        for probe in probes_of(run):
            if not probe.interval_ns:
                self._read(probe, self.fabric.now_ns)
        host_reports = self._host_reports()
        if interval_ns:
            self._sample_links(self.fabric.now_ns)
        counts = whole.counts()
        whole.collect_details()
        if whole.leads:
            session.end(host_reports)
        own_s = time.process_time() - started
        recording = self._recording(ended, counts) if whole.leads else None
        cpu_s, memory_bytes = whole.cost(own_s)
        residue = self._residue() if ended == "done" else None
        self._passed_points = whole.passed_points() if self._coverage else {}
        whole.collect_trace()
        if recording is not None:
            recording.residue, recording.cpu_s, recording.peak_memory_bytes = residue, cpu_s, memory_bytes
            recording.still_since_ns = self._watch.since_ns if ended in STANDSTILLS else None
        return recording

    def _report_progress(self, progress: Progress | None, now_ns: int, _: int) -> None:
        self._look_at_memory(now_ns)
        is_due = progress is not None and time.monotonic() >= self._report_s
        if self._whole.decided(is_due):
            began_s = time.monotonic()
            advanced_bytes = self._whole.advanced_bytes()
            done, known = self._whole.progress()
            if progress is not None and self._whole.leads:
                progress(self._done_share.at(now_ns, advanced_bytes, done, known), done, known, now_ns)
            reported_s = time.monotonic()
            self._report_s = reported_s + max(_TELL_EVERY_S, _TELL_EVERY_TIMES * (reported_s - began_s))

    def _look_at_memory(self, now_ns: int) -> None:
        """Raise UserError if memory does not suffice for the current state and the tables of the samples.

        All workers call this together, at the same model time.
        """
        self._looked_ns = now_ns
        interval_ns = self.run_plan.scenario.record.queue_interval_ns
        samples = max(0, now_ns // interval_ns - self._rest_samples) if interval_ns else 0
        self._whole.look_at_memory(self._memory, now_ns, samples * len(self._ports))

    # End of the run

    def _look_at_progress(self, now_ns: int) -> None:
        """End a run without further progress, even if events still occur."""
        if self._stands_still(now_ns):
            if not self._whole.is_busy():
                self._standstill = IDLE
            elif self._whole.decided(self._watch.out_of_patience(now_ns)):
                self._standstill = STALLED
        if self._standstill:
            self.fabric.stop()
        else:
            self._rest(now_ns)
            next_ns = max(now_ns + self._watch.interval_ns, self._rests_until_ns)
            self.fabric.at(next_ns, self._look_at_progress)

    def _rest(self, now_ns: int) -> None:
        """Stop sampling while nothing is in progress and the next flow starts late.

        All samples would be 0. A pause is longer than the time between two checks.
        """
        start_ns = self._whole.next_start_ns()
        if start_ns == NEVER or start_ns <= now_ns + self._watch.interval_ns:
            return
        if self._whole.under_way() or self._whole.is_busy():
            return
        self._rests_until_ns = start_ns
        interval_ns = self.run_plan.scenario.record.queue_interval_ns
        if len(self._ports):
            resumed_ns = _multiple(start_ns, interval_ns)
            self.fabric.sample(interval_ns, resumed_ns)
            self._rest_samples += (resumed_ns - now_ns) // interval_ns

    def _stands_still(self, now_ns: int) -> bool:
        """Return whether there has been no progress since the last call."""
        whole = self._whole
        seen = whole.moved(), whole.progress(), whole.failures()
        finished, all_started = whole.finished(), whole.all_started(self._begun_ns(now_ns) - 1)
        return whole.decided(self._watch.stands_still(now_ns, seen, finished, all_started))

    def _is_idle(self) -> bool:
        """Return whether all flows have started and nothing is or will be in progress except sampling."""
        return self._whole.all_started(self._begun_ns(self.fabric.now_ns)) and not self._whole.is_busy()

    def _begun_ns(self, now_ns: int) -> int:
        """Return the start of the flows that arrive at their NICs now."""
        return now_ns - self.run_plan.scenario.nic.os_overhead_ns

    def _residue(self) -> dict[str, int]:
        """Return the flow state left in registers, after all switches have seen the flows' ends."""
        run = self.run_plan
        if not run.zero_when_done:
            return {}
        until_ns = self.fabric.now_ns + _MOST_RTTS_TO_END * run.base_rtt_ns()
        while self._whole.is_busy() and self.fabric.now_ns < until_ns:
            self.fabric.run(until_ns=self.fabric.now_ns + run.base_rtt_ns())
        return {where: n for each in self._whole.flow_state().values() for where, n in each.items()}

    def _host_reports(self) -> list[HostReport]:
        """Return the counts of unfinished flows and the bytes on receivers' links."""
        count = self._whole.decided(len(self._session.connections))
        numbers = range(FIRST_NUMBER, FIRST_NUMBER + count)
        on_links = self._whole.delivered_bytes(numbers)
        reports = self._whole.host_reports()
        if not self._whole.leads:
            return []
        for number, delivered_bytes in zip(numbers, on_links, strict=True):
            # For a group, of all members together, since the session adds up the counts of its
            # ends.
            host = self._session.connections[number - FIRST_NUMBER].destinations[0]
            reports[host].delivered_bytes[number] = delivered_bytes
        return list(reports.values())

    # Sampling

    def _read_repeatedly(self, probe: Probe, now_ns: int) -> None:
        self._read(probe, now_ns)
        self.fabric.at(now_ns + probe.interval_ns, partial(self._read_repeatedly, probe))

    def _read(self, probe: Probe, now_ns: int) -> None:
        for name, rows in self._whole.readings(probe).items():
            self._readings.add(probe, now_ns, name, rows)

    def _sample_rates(self, now_ns: int) -> None:
        record = self.run_plan.scenario.record
        if now_ns - self._looked_ns > _SAMPLES_A_LOOK * record.queue_interval_ns > 0:
            self._look_at_memory(now_ns)  # a waiting run makes progress in samples only
        samples = self._whole.rate_samples(now_ns)
        numbers = self._whole.decided([sample.number for sample in samples])
        delivered = dict(zip(numbers, self._whole.delivered_bytes(numbers), strict=True))
        self._session.note_rates(samples, lambda sample: delivered[sample.number])
        if self._whole.decided(self._links.is_due(now_ns)):
            self._sample_links(now_ns)
        interval_ns = record.rate_interval_ns
        next_ns = max(now_ns + interval_ns, _multiple(self._rests_until_ns, interval_ns))
        self.fabric.at(next_ns, self._sample_rates)

    def _sample_links(self, now_ns: int) -> None:
        counters = self._whole.link_counters()
        if self._whole.leads:
            self._links.add(now_ns, counters)

    # Recording

    def _recording(self, ended: str, parts: list[Counts]) -> Recording:
        """Return the recording without `residue` and the run's cost; `parts` has the counts of each process."""
        run, fabric, session, names = self.run_plan, self.fabric, self._session, self.network.names
        sampled_by = self._whole.sampled_by(self._ports["switch"].tolist())
        times, depths = joined.samples([part.samples for part in parts], sampled_by)
        rate_interval_ns = run.scenario.record.rate_interval_ns
        by_program: Counter[Kind] = Counter()
        totals: Counter[str] = Counter()
        failed_asserts: dict[str, tuple[int, str]] = {}
        for part in parts:
            by_program.update(part.by_program)
            totals.update(part.nic_totals)
            failed_asserts.update(part.failed_asserts)
        totals["misdelivered"] += session.forged
        return Recording(
            ended=ended,
            compiler=self._compiler,
            end_ns=fabric.now_ns,
            events=fabric.events,
            flows=session.records,
            series={"queues": Series(DEPTH.name, self._ports, np.frombuffer(times, np.int64), depths)},
            tables={
                "rates": rates_table(session.rates, rate_interval_ns),
                **({"links": self._links.table()} if rate_interval_ns else {}),
                **collective_tables(session.collectives, [host.name for host in run.topology.hosts]),
                **self._readings.tables(run),
            },
            port_stats=columns(joined.columns([part.port_stats for part in parts])),
            queue_stats=columns(joined.columns([part.queue_stats for part in parts])),
            pfc_stats=columns(joined.columns([part.pfc_stats for part in parts])),
            node_names=names,
            conservation=by_name(joined.ledger([part.conservation for part in parts]), by_program),
            pfc_events=[
                {"time_ns": at, "kind": kind, "queues": [[names[node], port, prio] for node, port, prio in queues]}
                for at, kind, _, queues in fabric.pfc_events()
            ],
            nic_totals=dict(totals),
            workload=session.traffic.summary(),
            failed_asserts={name: failed_asserts[name] for name in self.network.pipes if name in failed_asserts},
            residue=None,
            cpu_s=0.0,
            set_up_s=self._set_up_s,
            peak_memory_bytes=0,
        )

    def trace_records(self) -> list[TraceRecord]:
        """Return the events of the traced flow's packets, hop by hop: see `Fabric.trace_records`."""
        return self.fabric.trace_records()

    def write_more(self, folder: Path, writing: Writing | None = None) -> None:
        """Write the requested files: hosts.pcapng, trace.txt and trace.jsonl, coverage.json."""
        if self._capture:
            from harness.measure.pcap import write_pcap  # imported here, because only captures need scapy

            write_pcap(folder / "hosts.pcapng", self.network.captured())
        if self._trace is not None:
            records = tracing.with_progress(self.trace_records(), writing)
            hops, again = tee(tracing.hops(records, self.network.decoder, self._trace.packets))
            names = self.network.names
            lines_of_text, objects = tracing.explain(hops, names), tracing.as_json(again, names)
            with (
                (folder / TRACE_TEXT).open("w", encoding="utf-8") as text,
                (folder / TRACE_LINES).open("w", encoding="utf-8") as lines,
            ):
                # Both are written together, because a trace may be larger than the memory.
                for line, members in zip(lines_of_text, objects, strict=True):
                    text.write(f"{line}\n")
                    lines.write(f"{members}\n")
        if self._coverage:
            coverage = Coverage()
            for pipe, passed in self._passed_points.items():
                coverage.add(self.network.traced(pipe).program.points, passed)
            coverage.save(folder / COVERAGE_FILE)


def _checked_memory(run: Run, traffic: Traffic, workers: int | Ranks) -> MemoryLimit:
    """Return the memory that the run may use. Raises UserError if the run cannot fit into it.

    Flows that start after others are done are not checked: they would have to be walked through,
    which takes as long as some runs.
    """
    built, built_here = (1, 1) if isinstance(workers, int) else (workers.count, workers.count_here)
    limit = memory_limit(run, built, built_here)
    if isinstance(workers, int) and traffic.independent:
        check_fits(run, expected(run, traffic))
    return limit


def _multiple(time_ns: int, interval_ns: int) -> int:
    """Return the first multiple of the interval that is not before `time_ns`."""
    return -(-time_ns // interval_ns) * interval_ns
