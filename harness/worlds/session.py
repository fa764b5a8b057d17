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

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from harness.columns.column import Column
from harness.measure.flow_record import Counts, FlowColumns, FlowRecord, Sent
from harness.measure.recording import Rate
from harness.workloads import Flow, FlowFields, Traffic, fields_of, flows_of
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
from host_agents.timers import NEVER

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


Place = tuple[int, int]  # number of a flow's connection, and its place on it; -1 and -1 if it has not started
Numbers = Sequence[int]
Places = tuple[Numbers, Numbers]  # by flow: both parts of its place


class Started(NamedTuple):
    """Flows of one worker's hosts, for the first worker, which does not know all of them.

    Flows have different indices at different workers, so they are identified by their places. At
    the end each worker passes its flows to the first one as columns, because these are cheaper than
    objects.
    """

    first: Numbers  # flows from the beginning of the run that have started at this worker's hosts
    first_places: Places
    later: FlowFields  # all later flows at this worker's hosts
    later_known: Numbers  # time and host at which each later flow became known, in pairs
    later_places: Places


class Details(NamedTuple):
    """Details of flows that one worker has and the first one does not."""

    sent: Places  # completed flows with one sender and one receiver; the next four fields are in the same order
    sizes_bytes: Numbers  # bytes that were sent
    first_sent_ns: Numbers  # times of the first packets
    completed_ns: Numbers
    sent_columns: dict[str, list[float]]  # columns that senders fill
    delivered: Places  # delivered flows with one sender and one receiver; the next two fields are in the same order
    delivered_ns: Numbers  # times of delivery
    delivered_columns: dict[str, list[float]]  # columns that receivers fill at delivery
    incomplete: dict[Place, dict[int, Sent]]  # flows that are not completed, as their senders have them, by host
    forged: int
    traffic: object  # part of the workload's events


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
        divided: bool = False,
    ) -> None:
        """Prepare the session.

        `addresses` returns the source and destination address of a connection's frames, for its
        sources and destinations. `columns` are those of flows. Flows reach the NIC `os_overhead_ns`
        after their start. `owns` returns whether a host gets its requests from this session; with
        several workers the others get theirs from the sessions of their workers. `divided` means
        that this session processes only the reports of hosts that it owns, and those on flows with
        several ends. Then those flows of the others that concern this session come by `learn`, and
        connections are opened by `open_next`. At the end the first session gets all flows by
        `take_over`. `on_start` is called with each flow of this session that starts, before the requests
        for it.
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
        # Connections of such an incast whose flows have not started yet.
        self._connected: dict[int, Connection] = {}
        self._to_start: list[tuple[int, int]] = []  # a heap of (start_ns, flow)
        self._under_way: set[int] = set()  # flows that were passed to a host and are not done
        self._left = 0  # flows that are neither done nor failed, as far as this session gets reports
        self._known = 0  # flows of hosts whose reports this session gets
        self._first = 0  # number of flows at the beginning, which all workers have
        # In a divided session: for each flow, when and at which host it became known, in pairs.
        self.divided = divided
        self._became_known = array("q")
        self._opened_ns = 0  # flows that became known before it have their connections
        # A heap of (start_ns, known_ns, host, number, flow), in the order in which a single session
        # would start the flows. It has flows that wait for their connection to be opened, and flows
        # of other workers; `number` orders the flows that follow from one report. Index -1 marks a
        # flow of another worker of which only the connection matters.
        self._in_order: list[tuple[int, int, int, int, Flow]] = []
        self._put = 0  # number of flows that were put there
        self.waiting: Counter[int] = Counter()  # number of own flows among these, by host
        # Reports on flows with several ends, until all ends have reported, by flow and host.
        self._delivered: dict[int, dict[int, Delivered]] = {}
        self._sent: dict[int, dict[int, Sent]] = {}

    @property
    def finished(self) -> bool:
        """Whether all flows are delivered and acknowledged, or failed, and all collectives have ended.

        A divided session answers for the hosts that it owns.
        """
        return not self._left and not self._at_work

    @property
    def progress(self) -> tuple[int, int]:
        """Numbers of flows and hosts with collectives that are done, and of all."""
        hosts = sum(map(self._hears, self.traffic.assignments))
        return self.done + hosts - len(self._at_work), self._known + hosts

    @property
    def failures(self) -> int:
        """Number of flows that a source has given up; in a divided session, a source that it owns."""
        return sum(self._hears(self.records[flow].flow.source) for flow in self.failed)

    @property
    def next_start_ns(self) -> int:
        """Start of the next flow that was not yet passed to a host; NEVER if there is none."""
        return self._to_start[0][0] if self._to_start else NEVER

    @property
    def under_way(self) -> bool:
        """True if a host has a flow to send or to receive, or a collective to continue."""
        return bool(self._under_way - self.failed) or bool(self._at_work)

    def all_started(self, now_ns: int) -> bool:
        """Return whether every known flow has started."""
        return all(record.flow.start_ns <= now_ns for record in self.records)

    def begin(self) -> None:
        """Start the workload's first flows, and the hosts' collectives."""
        self._first = len(self._add(self.traffic.flows))
        for host, assignment in self.traffic.assignments.items():
            if self._hears(host):
                self._at_work.add(host)
            if self.owns(host):
                self._carry(host, assignment)

    def start_due(self, until_ns: int) -> None:
        """Pass the flows that start until that time to their hosts."""
        while self._to_start and self._to_start[0][0] <= until_ns:
            record = self.records[heappop(self._to_start)[1]]
            if self.divided and self._waits(record.flow):
                self._put_in_order(record.flow, *self._known_by(record.flow.index))
                self.waiting[record.flow.source] += 1
            else:
                self._hand_over(record)

    def learn(self, flow: Flow, known_ns: int, host: int) -> None:
        """Add a flow that follows from an event at another worker's host at `known_ns`.

        Raises RuntimeError if connections that come after the flow's are already numbered.
        """
        if known_ns < self._opened_ns:
            raise RuntimeError(
                f"host {host}: a flow follows from what it reports at {known_ns} ns, but connections are numbered "
                f"up to {self._opened_ns} ns: its may_report has missed a frame"
            )
        if self._concerns(flow):
            self._add((flow,), known_ns, host)
        elif self._needs_connection(flow):
            flow.index = -1
            self._put_in_order(flow, known_ns, host)

    def concerns_others(self, flow: Flow) -> bool:
        """Return whether sessions of other workers need a flow of this worker's host."""
        return not self.owns(flow.destination) or self._needs_connection(flow) or _is_joint(flow)

    def next_opening_ns(self, known_ns: int) -> int:
        """Return the start of the first flow that waits for its order, in a divided session.

        All sessions know the flows that became known before `known_ns` anywhere. NEVER if the
        order of the first flow is not known yet, or if there is none.
        """
        self._opened_ns = known_ns
        if not self._in_order:
            return NEVER
        start_ns, flow_known_ns, *_ = self._in_order[0]
        return start_ns if start_ns <= known_ns and flow_known_ns < known_ns else NEVER

    def open_next(self) -> None:
        """Start the first flow that waits for its order; all sessions do so in the same order.

        So they number connections alike.
        """
        flow = heappop(self._in_order)[4]
        if flow.index < 0:
            self._connection(flow, flow.start_ns)
            return
        source = flow.source
        if source in self.waiting:  # an own host
            self.waiting[source] -= 1
            if not self.waiting[source]:
                del self.waiting[source]
        self._hand_over(self.records[flow.index])

    def note(self, host: int, event: Event, now_ns: int = -1) -> Sequence[Flow]:
        """Process a host's report, and return the flows that follow from it.

        A divided session needs the time of the host's turn.
        """
        if isinstance(event, Delivered):
            return self._on_delivered(host, event, now_ns)
        if isinstance(event, Completed):
            return self._on_completed(host, event, now_ns)
        if isinstance(event, Failed):
            self._left -= event.flow in self._under_way and event.flow not in self.failed
            self.failed.add(event.flow)
            self._sent.setdefault(event.flow, {})[host] = event.sent
        else:
            self._at_work.discard(host)
        return ()

    def place_of(self, event: Delivered | Completed | Failed) -> tuple[int, int]:
        """Return the connection's number of a report's flow, and the flow's place on it."""
        if isinstance(event, Delivered):
            return event.number, event.sequence
        record = self.records[event.flow]
        return record.qp, record.place

    def flow_at(self, number: int, place: int) -> int | None:
        """Return the flow at a place of a connection; None if it has not started yet."""
        record = self._at(number, place)
        return None if record is None else record.flow.index

    def has_flows_of(self, number: int) -> bool:
        """Return whether this session has the flows of a connection, as far as it is known."""
        if number - FIRST_NUMBER >= len(self.connections):
            return True
        connection = self.connections[number - FIRST_NUMBER]
        return number in self._joint or any(map(self._hears, (*connection.sources, *connection.destinations)))

    def is_joint(self, event: Event) -> bool:
        """Return whether a host's report belongs to a flow with several senders or receivers."""
        if not self._joint or isinstance(event, Ended):
            return False
        number = event.number if isinstance(event, Delivered) else self.records[event.flow].qp
        return number in self._joint

    def note_incomplete(self, host: int, incomplete: Mapping[int, Sent]) -> None:
        """Note how far a host has sent the flows that it has not completed at the end."""
        for flow, sent in incomplete.items():
            self._sent.setdefault(flow, {})[host] = sent

    def started(self) -> Started:
        """Return the flows of this worker's hosts, in a divided session."""
        own = [record for record in self.records if self.owns(record.flow.source)]
        first = [record for record in own if record.flow.index < self._first and record.qp >= 0]
        later = [record for record in own if record.flow.index >= self._first]
        return Started(
            array("q", [record.flow.index for record in first]),
            _places(first),
            fields_of([record.flow for record in later]),
            array("q", chain.from_iterable(self._known_by(record.flow.index) for record in later)),
            _places(later),
        )

    def take_over(self, parts: Iterable[Started]) -> None:
        """Take over the flows of all other workers' hosts, in a divided session at the end of the run.

        All flows get the numbers that a single session gives them.
        """
        own = (record.flow for record in self.records if self.owns(record.flow.source))
        flows = [*range(self._first), *(flow.index for flow in own if flow.index >= self._first)]
        for started in parts:
            flows += self._placed(started)
        self._number(flows)

    def _placed(self, started: Started) -> list[int]:
        """Assign the flows of another worker's hosts to their connections, and return the later ones."""
        records, unknown = self.records, self._columns.unknown
        placed: list[tuple[int, int, FlowRecord]] = []
        later = flows_of(started.later)
        for flow, known_ns, host, number, place in zip(
            later, started.later_known[::2], started.later_known[1::2], *started.later_places, strict=True
        ):
            record = self._at(number, place)
            if record is None:
                flow.index = len(records)
                record = FlowRecord(flow, -1, columns=unknown.copy())
                records.append(record)
                self._became_known.extend((known_ns, host))
                placed.append((place, number, record))
            else:
                flow.index = record.flow.index
                record.flow = flow
        for index, number, place in zip(started.first, *started.first_places, strict=True):
            if records[index].qp < 0:
                placed.append((place, number, records[index]))
        for place, number, record in sorted(placed, key=itemgetter(0)):
            if number >= 0:
                record.qp, record.place = number, place
                self.connections[number - FIRST_NUMBER].flows.append(record)
        return [flow.index for flow in later]

    def details(self) -> Details:
        """Return the details of flows that only this worker has."""
        single = [record for record in self.records if _is_single(record.flow)]
        sent = [record for record in single if record.completed_ns >= 0 and self.owns(record.flow.source)]
        delivered = [record for record in single if record.delivered_ns >= 0 and self.owns(record.flow.destination)]
        return Details(
            _places(sent),
            array("q", [record.flow.size_bytes for record in sent]),
            array("q", [record.first_sent_ns for record in sent]),
            array("q", [record.completed_ns for record in sent]),
            _by_column(sent, (column.name for column in self._columns.of_senders)),
            _places(delivered),
            array("q", [record.delivered_ns for record in delivered]),
            _by_column(delivered, (column.name for column, _ in self._columns.when_delivered)),
            {(self.records[flow].qp, self.records[flow].place): by_host for flow, by_host in self._sent.items()},
            self.forged,
            self.traffic.part(self.owns) if self.divided else None,
        )

    def join(self, details: Details) -> None:
        """Process another worker's details of flows at the end of the run.

        All of these flows are known here, with their places.
        """
        sent, delivered = (list(map(self._on, *places)) for places in (details.sent, details.delivered))
        for record, size_bytes, first_sent_ns, completed_ns in zip(
            sent, details.sizes_bytes, details.first_sent_ns, details.completed_ns, strict=True
        ):
            record.flow.size_bytes = size_bytes
            record.first_sent_ns = first_sent_ns
            record.completed_ns = completed_ns
        for record, delivered_ns in zip(delivered, details.delivered_ns, strict=True):
            record.delivered_ns = delivered_ns
        _add_up_pieces([record.flow for record in sent])
        for place, by_host in details.incomplete.items():
            self._sent.setdefault(self._on(*place).flow.index, {}).update(by_host)
        self.forged += details.forged
        if self.divided:
            self.traffic.join(details.traffic)
        for records, columns in ((sent, details.sent_columns), (delivered, details.delivered_columns)):
            for name, values in columns.items():
                for record, value in zip(records, values, strict=True):
                    record.columns[name] = value

    def _number(self, flows: Sequence[int]) -> None:
        """Give flows the numbers that a single session gives them.

        Flows that became known at the same time and host are already in order.
        """
        numbers = np.array(flows, np.int64)
        known_ns, hosts = np.array(self._became_known).reshape(-1, 2)[numbers].T
        before = self.records
        self.records = [before[flow] for flow in numbers[np.lexsort((hosts, known_ns))].tolist()]
        numbered: set[int] = set()  # flows that were broken up, by identity
        for number, record in enumerate(self.records):
            whole = record.flow.whole
            record.flow.index = number
            if whole is not None and id(whole) not in numbered:
                whole.index = len(numbered)
                numbered.add(id(whole))
        self.failed = {before[flow].flow.index for flow in self.failed}
        self._sent = {before[flow].flow.index: sent for flow, sent in self._sent.items()}

    def _at(self, number: int, place: int) -> FlowRecord | None:
        """Return the flow at a place of a connection; None if this session does not have it there."""
        if not 0 <= number - FIRST_NUMBER < len(self.connections):
            return None
        flows = self.connections[number - FIRST_NUMBER].flows
        return flows[place] if place < len(flows) else None

    def _on(self, number: int, place: int) -> FlowRecord:
        """Return the flow at a place of a connection, which this session has."""
        return self.connections[number - FIRST_NUMBER].flows[place]

    def _known_by(self, flow: int) -> tuple[int, int]:
        """Return when and at which host a flow became known, in a divided session."""
        return self._became_known[2 * flow], self._became_known[2 * flow + 1]

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
            self.note_incomplete(host, report.unfinished)
        for flow, parts in self._sent.items():
            if self.records[flow].completed_ns < 0:
                self.records[flow].note_sent(Sent.joined(parts.values(), self._columns))
        for record in self.records:
            if record.flow.stop_ns is not None and record.qp < 0:
                record.flow.size_bytes = 0  # number of bytes sent
        for connection in self.connections:
            number = connection.number
            counts: list[Counts] = []
            delivered_bytes = 0
            for host in connection.destinations:
                report = reports[host]
                if number in report.received:
                    counts.append(report.received[number])
                delivered_bytes += report.delivered_bytes.get(number, 0)
            delivered_bytes //= len(connection.destinations)
            for record in connection.flows:
                record.note_end(counts, delivered_bytes, self._columns)

    # Flows

    def _add(self, flows: Iterable[Flow], known_ns: int = -1, host: int = -1) -> Sequence[Flow]:
        """Add flows that follow from a host's report at a time."""
        added = list(flows)
        for flow in added:
            flow.index = len(self.records)
            record = FlowRecord(flow, -1, columns=self._columns.unknown.copy())
            self.records.append(record)
            if flow.incast is not None:
                self._incasts.setdefault((*flow.incast, flow.destinations), []).append(record)
            if self.divided:
                self._became_known.extend((known_ns, host))
            if not self.divided or self.owns(flow.source):
                self._known += 1
                self._left += 1
                heappush(self._to_start, (flow.start_ns, flow.index))
            else:
                self._left += self._hears_of(flow, flow.destination)
                self._put_in_order(flow, known_ns, host)
        return added

    def _hears(self, host: int) -> bool:
        """Return whether this session gets the reports of a host."""
        return not self.divided or self.owns(host)

    def _hears_of(self, flow: Flow, host: int) -> bool:
        """Return whether this session gets the reports of a host on a flow."""
        return self._hears(host) or bool(flow.further_sources or flow.further_destinations)

    def _concerns(self, flow: Flow) -> bool:
        """Return whether this session needs more of a flow than its connection."""
        return self._hears(flow.source) or self._hears(flow.destination) or _is_joint(flow)

    def _put_in_order(self, flow: Flow, known_ns: int, host: int) -> None:
        self._put += 1
        number = flow.index if known_ns < 0 else self._put
        heappush(self._in_order, (flow.start_ns, known_ns, host, number, flow))

    def _waits(self, flow: Flow) -> bool:
        """Return whether a flow needs a new connection, or an earlier flow of an own host does."""
        return bool(self.waiting) or self._needs_connection(flow)

    def _needs_connection(self, flow: Flow) -> bool:
        return flow.qp is None or self._key(flow) not in self._shared

    @staticmethod
    def _key(flow: Flow) -> tuple[object, ...]:
        """Return the key of the flow's connection in `_shared`."""
        return (flow.source, flow.further_sources, flow.destination, flow.further_destinations, flow.qp)

    def _put_on(self, connection: Connection, record: FlowRecord) -> None:
        record.qp = connection.number
        record.place = len(connection.flows)
        connection.flows.append(record)
        flow = record.flow
        if not self.divided or self.owns(flow.source) or self._hears_of(flow, flow.destination):
            self._under_way.add(flow.index)

    def _hand_over(self, record: FlowRecord) -> None:
        flow = record.flow
        if flow.incast is not None:
            for member in self._incasts.pop((*flow.incast, flow.destinations), ()):
                self._connected[member.flow.index] = self._connection(member.flow, flow.start_ns)
        connected = self._connected.pop(flow.index, None) if self._connected else None
        connection = connected or self._connection(flow, flow.start_ns)
        if self.divided and not self._concerns(flow):
            return
        self._put_on(connection, record)
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
        if flow.qp is not None and (shared := self._shared.get(self._key(flow))) is not None:
            return shared
        connection = Connection(FIRST_NUMBER + len(self.connections), flow.sources, flow.destinations)
        self.connections.append(connection)
        if flow.further_sources or flow.further_destinations:
            self._joint.add(connection.number)
        if flow.qp is not None:
            self._shared[self._key(flow)] = connection
        senders = tuple(filter(self.owns, connection.sources))
        receivers = tuple(filter(self.owns, connection.destinations))
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
            back = Connect(number, source, time_ns, (), joins, flow.priority, flow.part)
            self._carry(host, back)
        for host in senders:
            there = Connect(number, destination, time_ns, members, None, flow.priority, flow.part)
            self._carry(host, there)

    # Outcomes

    def _on_delivered(self, host: int, event: Delivered, now_ns: int) -> Sequence[Flow]:
        connection = self.connections[event.number - FIRST_NUMBER]
        if host not in connection.destinations or event.sequence >= len(connection.flows):
            self.forged += self.owns(host)
            return ()
        record = connection.flows[event.sequence]
        flow = record.flow
        if flow.index not in self._under_way:
            self.forged += self.owns(host)
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
        if record.completed_ns >= 0 or not self._hears_of(flow, flow.source):
            self._finish(flow)
        return self._add(self.traffic.on_delivered(flow, record.delivered_ns), now_ns, host)

    def _on_completed(self, host: int, event: Completed, now_ns: int) -> Sequence[Flow]:
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
        if record.delivered_ns >= 0 or not self._hears_of(flow, flow.destination):  # it may be reported later
            self._finish(flow)
        return self._add(self.traffic.on_completed(flow, record.completed_ns), now_ns, host)

    def _finish(self, flow: Flow) -> None:
        if flow.index in self.failed:
            return
        self._left -= 1
        self.done += self._hears(flow.source)
        self._under_way.remove(flow.index)
        self._delivered.pop(flow.index, None)
        self._sent.pop(flow.index, None)


def outcome(failures: int) -> str:
    """Return the outcome of a run without unfinished flows, some of which hosts have given up."""
    return "failed" if failures else "done"


def _is_single(flow: Flow) -> bool:
    """Return whether a flow has one sender and one receiver."""
    return not flow.further_sources and not flow.further_destinations


def _is_joint(flow: Flow) -> bool:
    """Return whether a flow concerns several hosts besides its source and destination."""
    return not _is_single(flow) or flow.incast is not None


def _places(records: Sequence[FlowRecord]) -> Places:
    return array("q", [record.qp for record in records]), array("q", [record.place for record in records])


def _add_up_pieces(pieces: Iterable[Flow]) -> None:
    """Set the number of bytes that were sent of each flow whose pieces are all completed."""
    parts: dict[int, list[Flow]] = {}
    for piece in pieces:
        if piece.whole is not None:
            parts.setdefault(id(piece.whole), []).append(piece)
    for group in parts.values():
        whole = group[0].whole
        if whole is not None and len(group) == whole.pieces:
            whole.size_bytes = sum(piece.size_bytes for piece in group)


def _by_column(records: Sequence[FlowRecord], names: Iterable[str]) -> dict[str, list[float]]:
    return {name: [record.columns[name] for record in records] for name in names}
