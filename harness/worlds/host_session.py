"""A host's part of a run's session: its connections and messages at one NIC.

It does no I/O and has no clock, so any driver can use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from harness.columns.column import Column, Receiver, Sender, filled_by
from harness.columns.rates import getters
from harness.measure.flow_record import Counts, Sent
from harness.workloads.collective_record import CollectiveReport
from host_agents import wire
from host_agents.assignments import Assignment
from host_agents.cc.base import ReactionPoint
from host_agents.collective.packets import PAYLOAD_BYTES
from host_agents.collective.program import Program
from host_agents.messages import Delivery, IncastGroup, Message, QpStats
from host_agents.nic import Nic
from host_agents.qp import QueuePair
from host_agents.registry import LoadBalancing, Protocol

# Requests of the run's session to a host, and events of a host for the session. Times are ns of the
# model. They are dataclasses with slots, because every flow needs several of them, and named tuples
# take twice as long to create.


@dataclass(slots=True)
class Connect:
    """Request to open this host's end of a connection by `time_ns`; all ends have its number.

    If the peer is a multicast group, `members` are the hosts of that group. `joins` is the address of a multicast
    group that this host joins. `priority` is the class of the connection's data; None: the NIC's default. `part` is
    the scenario's group to which the connection belongs, and which may have its own protocol.
    """

    number: int
    peer_address: str
    time_ns: int
    members: tuple[str, ...] = ()
    joins: str | None = None
    priority: int | None = None
    part: str = ""


@dataclass(slots=True)
class Post:
    """Request to send a message on a connection from `start_ns` on, until `stop_ns` if that is given.

    `incast` has the number and the hosts of the incast that it belongs to, if it is to be
    announced. `only` means that no other message follows on the connection.
    """

    number: int
    flow: int
    size_bytes: int
    start_ns: int
    stop_ns: int | None
    incast: tuple[int, tuple[int, ...]] | None = None
    only: bool = False


@dataclass(slots=True)
class Delivered:
    """Event that message number `sequence` of a connection has arrived."""

    number: int
    sequence: int
    time_ns: int
    counts: Counts  # counts of the connection so far, for columns of flows that are read at delivery


@dataclass(slots=True)
class Completed:
    """Event that every byte that this host sends of a flow is acknowledged."""

    flow: int
    sent: Sent


@dataclass(slots=True)
class Failed:
    """Event that a host has given up a flow whose retransmissions were never acknowledged."""

    flow: int
    sent: Sent


@dataclass(slots=True)
class Ended:
    """Event that the host's collectives have ended."""

    time_ns: int


Event = Delivered | Completed | Failed | Ended


class RateSample(NamedTuple):
    """Sample of a connection: the sampled columns of `rates` (`harness.columns.rates`), in their order."""

    time_ns: int
    number: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class HostReport:
    """Report of a host at the end of the run."""

    unfinished: dict[int, Sent]  # unfinished messages by flow
    received: dict[int, Counts]  # counts by connection, for columns of flows that are read at the end
    delivered_bytes: dict[int, int]  # bytes on the wire, including framing, by connection
    collectives: CollectiveReport | None = None


class HostSession:
    """Executor of the session's requests at one host, which reports the NIC's events."""

    def __init__(
        self,
        nic: Nic,
        tell: Callable[[Event], object],
        columns: Sequence[Column],
        samples: bool = True,
        senders: Mapping[str, tuple[Protocol, LoadBalancing]] | None = None,
    ) -> None:
        """Prepare the session.

        `columns` are those of flows; senders and receivers fill some of them. `samples` means that
        `sample` will be called. `senders` has the protocol and load balancer of each of the
        scenario's groups, by name; others use the NIC's.
        """
        self._senders = senders or {}
        self._getters = getters()
        self._sent_columns = [
            (column.name, column.type == "float64", attrgetter(source.attribute))
            for column, source in filled_by(Sender, columns)
        ]
        sources = [source for _, source in filled_by(Receiver, columns)]
        self._counts = _names(count for source in sources for count in source.counts)
        self._delivered_counts = _names(count for source in sources if source.when_delivered for count in source.counts)
        self.nic = nic
        self._tell = tell
        self._queue_pairs: dict[int, QueuePair] = {}  # by connection
        self._messages: dict[int, Message] = {}  # unfinished messages by flow
        # Number of unfinished messages by connection, until the sample after the last one.
        self._active: dict[int, int] = {}
        self._samples = samples
        self._to_retire: list[QueuePair] = []  # queue pairs whose only message is done
        self._program: Program | None = None
        nic.on_delivered = self._on_delivered
        nic.on_complete = self._on_complete
        nic.on_failed = self._on_failed

    def connect(self, request: Connect) -> None:
        number = request.number
        if not self._samples and len(self._to_retire) > 1:
            last = self._to_retire.pop()  # the session may be about to use this queue pair
            self._retire()
            self._to_retire.append(last)
        protocol, balancing = self._senders.get(request.part, (None, None))
        self._queue_pairs[number] = self.nic.open_qp(
            request.peer_address,
            number,
            number,
            priority=request.priority,
            protocol=protocol,
            load_balancing=balancing,
            members=request.members,
        )
        if request.joins is not None:
            self.nic.join(request.joins)

    def post(self, request: Post, now_ns: int) -> None:
        """Post a flow to the NIC, after which the NIC may have a frame to send.

        A flow on a failed connection fails at once.
        """
        qp = self._queue_pairs[request.number]
        if qp.failed:
            self._tell(Failed(request.flow, self._sent(Message(qp, -1, request.size_bytes, now_ns, request))))
            return
        group = IncastGroup(*request.incast) if request.incast is not None else None
        message = qp.post(request.size_bytes, start_ns=now_ns, tag=request, group=group)
        self._messages[request.flow] = message
        self._active[request.number] = self._active.get(request.number, 0) + 1

    def assign(self, request: Assignment) -> None:
        """Start collectives. The NIC may have frames to send when they start."""
        engine = self.nic.open_collectives(request.config, request.contents)
        self._program = Program(engine, lambda now_ns: self._tell(Ended(now_ns)))
        for joining in request.joinings:
            self._program.join(joining)
        for peer in request.peers:
            engine.accept(wire.parse_address(peer))
        self._program.start(request.steps, request.start_ns)

    def stop(self, request: Post) -> None:
        """Stop a message after the bytes that were sent; do nothing if it is done."""
        message = self._messages.get(request.flow)
        if message is not None:
            message.qp.truncate(message)

    def sample(self, now_ns: int) -> list[RateSample]:
        """Return samples of the connections that had something to send since the last call."""
        samples = []
        for number, unfinished in list(self._active.items()):
            qp = self._queue_pairs[number]
            samples.append(RateSample(now_ns, number, tuple([get(qp) for get in self._getters])))
            if not unfinished:
                del self._active[number]
        self._retire()
        return samples

    def connection_of(self, part: object) -> int | None:
        """Return the number of the first connection that uses an object of a protocol or load balancer.

        The object is a reaction point, a notification point or a load balancer. None if no
        connection uses it.
        """
        for number, qp in self._queue_pairs.items():
            point = qp.reaction_point
            if any(
                part is one for one in (point, *getattr(point, "parts", ()), qp.notification_point, qp.load_balancer)
            ):
                return number
        return None

    def flow_on(self, number: int) -> int | None:
        """Return the flow that this host is sending on a connection; None if there is none."""
        return next((flow for flow, message in self._messages.items() if message.qp.qpn == number), None)

    def reaction_points(self) -> Iterator[tuple[int, ReactionPoint]]:
        """Yield (connection, reaction point) for the connections on which this host is sending."""
        for number, unfinished in sorted(self._active.items()):
            if unfinished:
                yield number, self._queue_pairs[number].reaction_point

    def moved(self) -> int:
        """Return a number that grows with any progress of this host's flows and collectives, and only then."""
        stats = [qp.stats for qp in self._queue_pairs.values()]
        total = sum(each.bytes_acked + each.bytes_delivered for each in stats)
        if self._program is not None:
            counts = self._program.engine.stats
            total += counts.requests_sent - counts.repeats + counts.writes_delivered
        return total

    def advanced_bytes(self) -> int:
        """Return the progress of this host in bytes.

        Progress is the acknowledged bytes of its flows, plus one payload for each operation that was
        sent.
        """
        total = sum(qp.stats.bytes_acked for qp in self._queue_pairs.values())
        if self._program is not None:
            counts = self._program.engine.stats
            total += PAYLOAD_BYTES * (counts.requests_sent - counts.repeats)
        return total

    def report(self, delivered_bytes: dict[int, int]) -> HostReport:
        """Return the host's report.

        `delivered_bytes` are those on this host's link, including framing, by connection.
        """
        return HostReport(
            unfinished={flow: self._sent(message) for flow, message in self._messages.items()},
            received={number: _counted(qp.stats, self._counts) for number, qp in self._queue_pairs.items()},
            delivered_bytes=delivered_bytes,
            collectives=None if self._program is None else _report(self._program),
        )

    def _sent(self, message: Message) -> Sent:
        """Return a message's state; columns without a value have NaN."""
        qp = message.qp
        columns: dict[str, float] = {}
        for name, is_float, get in self._sent_columns:
            value = get(qp)
            columns[name] = math.nan if value is None else float(value) if is_float else value
        return Sent(message.size_bytes, message.first_sent_ns, message.completed_ns, columns)

    def _on_delivered(self, delivery: Delivery) -> None:
        qp = delivery.qp
        self._tell(Delivered(qp.qpn, delivery.sequence, delivery.time_ns, _counted(qp.stats, self._delivered_counts)))

    def _retire(self) -> None:
        """Drop the sending half of queue pairs that are done and whose rate was sampled since.

        Those whose reaction point is not yet at rest have to wait.
        """
        self._to_retire = [qp for qp in self._to_retire if not qp.retire()]

    def _on_complete(self, message: Message) -> None:
        request = message.tag
        assert isinstance(request, Post)
        if request.only:
            self._to_retire.append(self._queue_pairs[request.number])
        self._tell(Completed(self._forget(message), self._sent(message)))

    def _on_failed(self, message: Message) -> None:
        self._tell(Failed(self._forget(message), self._sent(message)))

    def _forget(self, message: Message) -> int:
        """Forget a finished message and return the number of its flow."""
        request = message.tag
        assert isinstance(request, Post)
        del self._messages[request.flow]
        self._active[request.number] -= 1
        if not self._samples and not self._active[request.number]:
            del self._active[request.number]
        return request.flow


def _names(counts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(counts))


def _counted(stats: QpStats, counts: Iterable[str]) -> Counts:
    counted = {}  # a comprehension would be a further call for each flow
    for name in counts:
        counted[name] = getattr(stats, name)
    return counted


def _report(program: Program) -> CollectiveReport:
    engine = program.engine
    memory = engine.memory
    return CollectiveReport(
        ended_ns=program.ended_ns,
        cycle_ns=engine.cycle_ns,
        operations=engine.record(),
        counts=engine.stats.counts(),
        sizes=engine.sizes(),
        contents=None if memory is None else bytes(memory.contents),
        clipped=0 if memory is None else memory.clipped,
    )
