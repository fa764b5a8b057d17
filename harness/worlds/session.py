"""Session of a run: the start and connection of each flow, and its outcome; without I/O or clock.

It sends requests to hosts through `carry` and gets their reports. A world delivers both, and calls
`start_due` when a flow's start is near:

    session = Session(traffic, addresses, carry, columns)
    session.begin()
    session.start_due(now_ns)                   # not later than session.next_start_ns
    session.note(host, event)                   # a workload may answer with flows, which changes next_start_ns
    session.note_rates(samples, delivered)
    session.end(reports)                        # session.records is complete
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from harness.columns.column import Column
from harness.measure.flow_record import FlowColumns, FlowRecord, Sent
from harness.measure.recording import Rate
from harness.workloads import Flow, Traffic
from harness.workloads.collective_record import CollectiveReport
from harness.worlds.host_session import (
    Completed,
    Connect,
    Delivered,
    Ended,
    Event,
    Failed,
    HostReport,
    Post,
    RateSample,
)
from host_agents.assignments import Assignment

FIRST_NUMBER = 2  # queue pairs 0 and 1 are InfiniBand's own, for management
Hosts = tuple[int, ...]  # by index
_Incast = tuple[int, Hosts, Hosts]  # number, sources, destinations
Addresses = Callable[[Hosts, Hosts], tuple[str, str]]
Carry = Callable[[int, Connect | Post | Assignment], object]  # passes a request to a host, by index; in order


@dataclass(slots=True)
class Connection:
    """Queue pairs of one number at all of its ends, and the flows on it, in order."""

    number: int
    sources: Hosts
    destinations: Hosts
    flows: list[FlowRecord] = field(default_factory=list)
    delivered_bytes: int = 0  # wire bytes to each receiver at the last sample of rates


class Details(NamedTuple):
    """Details of flows with one sender and one receiver that other workers did not get.

    They are columns, which take less time to pass on than an object for each flow.
    """

    sent: list[int]  # completed flows, ...
    first_sent_ns: list[int]  # ... the times of their first packets, ...
    sent_columns: dict[str, list[float]]  # ... and their columns that senders fill
    delivered: list[int]  # delivered flows, ...
    delivered_columns: dict[str, list[float]]  # ... and their columns that receivers fill at delivery


class Session:
    """Session of one run's flows.

    A flow with several ends is one message on one connection: each source sends all of it to the
    address of the destinations, and it is done when each destination has all of it.
    """

    def __init__(
        self,
        traffic: Traffic,
        addresses: Addresses,
        carry: Carry,
        columns: Sequence[Column],
        os_overhead_ns: int = 0,
        owns: Callable[[int], bool] = lambda host: True,
        on_start: Callable[[FlowRecord], object] | None = None,
    ) -> None:
        """Prepare the session.

        `addresses` returns the source and destination address of a connection's frames, for its
        sources and destinations. `columns` are those of flows. Flows reach the NIC `os_overhead_ns`
        after their start. `owns` returns whether a host gets its requests from this session; with
        several workers the others get theirs from the sessions of their workers. `on_start` is
        called with each flow that starts anywhere, before the requests for it.
        """
        self.traffic = traffic
        self.owns = owns
        self.connections: list[Connection] = []
        self.records: list[FlowRecord] = []  # by flow index
        self.rates: list[Rate] = []
        self.done = 0
        self.failed: set[int] = set()  # flows that a source has given up
        self.forged = 0  # arrived messages that were never sent, since frames on the wire may be forged
        self.collectives: dict[int, CollectiveReport] = {}  # by host, at the end
        self._at_work: set[int] = set()  # hosts whose collectives have not ended
        self._addresses = addresses
        self._carry = carry
        self._columns = FlowColumns(columns)
        self._os_overhead_ns = os_overhead_ns
        self._on_start = on_start
        self._joint: set[int] = set()  # numbers of connections with several sources or destinations
        self._shared: dict[tuple[object, ...], Connection] = {}  # by ends and name
        self._incasts: dict[_Incast, list[FlowRecord]] = {}  # announced incasts without a started flow
        # Connections for the flows of such an incast that are still to start.
        self._connected: dict[int, Connection] = {}
        self._to_start: list[tuple[int, int]] = []  # a heap of (start_ns, flow)
        self._under_way: set[int] = set()  # flows that were passed to a host and are not done
        # Reports on flows with several ends, until all ends have reported, by flow and host.
        self._delivered: dict[int, dict[int, Delivered]] = {}
        self._sent: dict[int, dict[int, Sent]] = {}

    @property
    def finished(self) -> bool:
        """Whether all known flows are delivered and acknowledged, or failed, and all collectives have ended."""
        return self.done + len(self.failed) == len(self.records) and not self._at_work

    @property
    def outcome(self) -> str:
        """Outcome of a finished session: "done", or "failed" if any flow has."""
        return "failed" if self.failed else "done"

    @property
    def progress(self) -> tuple[int, int]:
        """Numbers of flows and hosts with collectives that are done, and of all."""
        hosts = len(self.traffic.assignments)
        return self.done + hosts - len(self._at_work), len(self.records) + hosts

    @property
    def next_start_ns(self) -> int | None:
        """Start of the next flow that was not yet passed to a host; None if there is none."""
        return self._to_start[0][0] if self._to_start else None

    @property
    def under_way(self) -> bool:
        """True if a host has a flow to send or to receive, or a collective to continue."""
        return len(self._under_way) > len(self.failed) or bool(self._at_work)

    def all_started(self, now_ns: int) -> bool:
        """Return whether every known flow has started."""
        return all(record.flow.start_ns <= now_ns for record in self.records)

    def begin(self) -> None:
        """Start the workload's first flows, and the hosts' collectives."""
        self._add(self.traffic.flows)
        for host, assignment in self.traffic.assignments.items():
            self._at_work.add(host)
            if self.owns(host):
                self._carry(host, assignment)

    def start_due(self, until_ns: int) -> None:
        """Pass the flows that start until that time to their hosts."""
        while self._to_start and self._to_start[0][0] <= until_ns:
            self._hand_over(self.records[heappop(self._to_start)[1]])

    def note(self, host: int, event: Event) -> Sequence[Flow]:
        """Process a host's report, and return the flows that follow from it."""
        if isinstance(event, Delivered):
            return self._on_delivered(host, event)
        if isinstance(event, Completed):
            return self._on_completed(host, event)
        if isinstance(event, Failed):
            self.failed.add(event.flow)
            self._sent.setdefault(event.flow, {})[host] = event.sent
        else:
            self._at_work.discard(host)
        return ()

    def is_joint(self, event: Event) -> bool:
        """Return whether a host's report belongs to a flow with several senders or receivers."""
        if not self._joint or isinstance(event, Ended):
            return False
        number = event.number if isinstance(event, Delivered) else self.records[event.flow].qp
        return number in self._joint

    def details(self) -> Details:
        """Return the details of flows that only this worker has."""
        flows = ((record, record.flow) for record in self.records)
        single = [record for record, flow in flows if not flow.further_sources and not flow.further_destinations]
        sent = [record for record in single if record.completed_ns >= 0 and self.owns(record.flow.source)]
        delivered = [record for record in single if record.delivered_ns >= 0 and self.owns(record.flow.destination)]
        return Details(
            [record.flow.index for record in sent],
            [record.first_sent_ns for record in sent],
            _by_column(sent, (column.name for column in self._columns.of_senders)),
            [record.flow.index for record in delivered],
            _by_column(delivered, (column.name for column, _ in self._columns.when_delivered)),
        )

    def note_details(self, details: Details) -> None:
        """Process another worker's details of flows."""
        records = self.records
        for index, first_sent_ns in zip(details.sent, details.first_sent_ns, strict=True):
            records[index].first_sent_ns = first_sent_ns
        for flows, columns in ((details.sent, details.sent_columns), (details.delivered, details.delivered_columns)):
            for name, values in columns.items():
                for index, value in zip(flows, values, strict=True):
                    records[index].columns[name] = value

    def note_rates(self, samples: Iterable[RateSample], delivered_bytes: Callable[[RateSample], int | None]) -> None:
        """Record the senders' samples, by time and connection.

        `delivered_bytes` are the wire bytes to all receivers by then; None if there were none since
        the previous sample. For several receivers the mean is recorded.
        """
        for sample in samples:
            connection = self.connections[sample.number - FIRST_NUMBER]
            before = connection.delivered_bytes
            delivered = delivered_bytes(sample)
            connection.delivered_bytes = before if delivered is None else delivered // len(connection.destinations)
            self.rates.append(Rate(*sample, delivered_bytes=connection.delivered_bytes - before))

    def end(self, reports: Sequence[HostReport]) -> None:
        """Process each host's report at the end of the run; flows that have not started are unfinished."""
        self.collectives = {
            host: collectives for host, report in enumerate(reports) if (collectives := report.collectives) is not None
        }
        self.traffic.on_end(self.collectives)
        for host, report in enumerate(reports):
            for flow, sent in report.unfinished.items():
                self._sent.setdefault(flow, {})[host] = sent
        for flow, parts in self._sent.items():
            if self.records[flow].completed_ns < 0:
                self.records[flow].note_sent(Sent.joined(parts.values(), self._columns))
        for record in self.records:
            if record.flow.stop_ns is not None and record.qp < 0:
                record.flow.size_bytes = 0  # number of bytes sent
        for connection in self.connections:
            ends = [reports[host] for host in connection.destinations]
            counts = [report.received[connection.number] for report in ends if connection.number in report.received]
            delivered_bytes = sum(report.delivered_bytes.get(connection.number, 0) for report in ends) // len(ends)
            for record in connection.flows:
                record.note_end(counts, delivered_bytes, self._columns)

    # Flows

    def _add(self, flows: Iterable[Flow]) -> Sequence[Flow]:
        added = list(flows)
        for flow in added:
            flow.index = len(self.records)
            record = FlowRecord(flow, -1, columns=self._columns.unknown.copy())
            self.records.append(record)
            if flow.incast is not None:
                self._incasts.setdefault((*flow.incast, flow.destinations), []).append(record)
            heappush(self._to_start, (flow.start_ns, flow.index))
        return added

    def _hand_over(self, record: FlowRecord) -> None:
        flow = record.flow
        if flow.incast is not None:
            for member in self._incasts.pop((*flow.incast, flow.destinations), ()):
                self._connected[member.flow.index] = self._connection(member.flow, flow.start_ns)
        connection = self._connected.pop(flow.index, None) or self._connection(flow, flow.start_ns)
        record.qp = connection.number
        connection.flows.append(record)
        self._under_way.add(flow.index)
        if self._on_start is not None:
            self._on_start(record)
        post: Post | None = None
        for source in connection.sources:
            if self.owns(source):
                post = post or self._post(flow, connection.number)
                self._carry(source, post)

    def _post(self, flow: Flow, number: int) -> Post:
        later_ns = self._os_overhead_ns
        stop_ns = None if flow.stop_ns is None else flow.stop_ns + later_ns
        start_ns = flow.start_ns + later_ns
        return Post(number, flow.index, flow.size_bytes, start_ns, stop_ns, flow.incast, flow.qp is None)

    def _connection(self, flow: Flow, time_ns: int) -> Connection:
        """Return the flow's connection: its own unless it names one.

        All connections of an announced incast exist when it begins.
        """
        key = (flow.source, flow.further_sources, flow.destination, flow.further_destinations, flow.qp)
        if flow.qp is not None and key in self._shared:
            return self._shared[key]
        connection = Connection(FIRST_NUMBER + len(self.connections), flow.sources, flow.destinations)
        self.connections.append(connection)
        if flow.further_sources or flow.further_destinations:
            self._joint.add(connection.number)
        if flow.qp is not None:
            self._shared[key] = connection
        senders = list(filter(self.owns, connection.sources))
        receivers = list(filter(self.owns, connection.destinations))
        if senders or receivers:
            self._connect(connection, flow, time_ns, senders, receivers)
        return connection

    def _connect(
        self, connection: Connection, flow: Flow, time_ns: int, senders: Sequence[int], receivers: Sequence[int]
    ) -> None:
        """Open the connection's ends at these of its hosts; receivers come first.

        So their ends exist before a frame can arrive.
        """
        number, destinations = connection.number, connection.destinations
        source, destination = self._addresses(connection.sources, destinations)
        several = len(destinations) > 1
        joins = destination if several else None
        members = tuple(self._addresses(connection.sources, (host,))[1] for host in destinations) if several else ()
        for host in receivers:
            back = Connect(number, source, time_ns, joins=joins, priority=flow.priority, part=flow.part)
            self._carry(host, back)
        for host in senders:
            there = Connect(number, destination, time_ns, members, priority=flow.priority, part=flow.part)
            self._carry(host, there)

    # Outcomes

    def _on_delivered(self, host: int, event: Delivered) -> Sequence[Flow]:
        connection = self.connections[event.number - FIRST_NUMBER]
        if host not in connection.destinations or event.sequence >= len(connection.flows):
            self.forged += 1
            return ()
        record = connection.flows[event.sequence]
        flow = record.flow
        if flow.index not in self._under_way:
            self.forged += 1
            return ()
        if flow.further_destinations:
            deliveries = self._delivered.setdefault(flow.index, {})
            deliveries[host] = event
            if len(deliveries) < len(connection.destinations):
                return ()
            time_ns = max(each.time_ns for each in deliveries.values())
            record.note_delivered(time_ns, [each.counts for each in deliveries.values()], self._columns)
        else:
            record.note_delivered(event.time_ns, (event.counts,), self._columns)
        if record.completed_ns >= 0:
            self._finish(flow)
        return self._add(self.traffic.on_delivered(flow, record.delivered_ns))

    def _on_completed(self, host: int, event: Completed) -> Sequence[Flow]:
        record = self.records[event.flow]
        flow = record.flow
        if flow.further_sources:
            sent = self._sent.setdefault(event.flow, {})
            sent[host] = event.sent
            if len(sent) < len(flow.sources):
                return ()
            record.note_sent(Sent.joined(sent.values(), self._columns))
        else:
            record.note_sent(event.sent)
        if record.delivered_ns >= 0:  # another host may report this later
            self._finish(flow)
        return self._add(self.traffic.on_completed(flow, record.completed_ns))

    def _finish(self, flow: Flow) -> None:
        self.done += 1
        self._under_way.remove(flow.index)
        self._delivered.pop(flow.index, None)
        self._sent.pop(flow.index, None)


def _by_column(records: Sequence[FlowRecord], names: Iterable[str]) -> dict[str, list[float]]:
    return {name: [record.columns[name] for record in records] for name in names}
