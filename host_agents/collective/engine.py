"""Engine for collectives in a NIC, which sends operations and answers those of other hosts.

Its protocol limits the sending of operations. Requests wait in queues for reads and for writes, and
answers wait in a third queue. The queue that was served longest ago is next (thesis, 6.2.5). A read
is answered after the memory's latency, and a write at once. Unanswered requests are repeated after
a time-out, and each write is delivered once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from librt.strings import read_i64_be
from mypy_extensions import i64

from host_agents import wire
from host_agents.assignments import RANDOM_ORDER, ROUND_ROBIN, SHARED, UNICAST_WINDOW, CollectiveConfig, Joining
from host_agents.cc.base import Host
from host_agents.collective.frames import CollectiveFrames
from host_agents.collective.injection import PUSH, READ, UNICAST, WRITE, Injection
from host_agents.collective.memory import Memory, padded
from host_agents.collective.operations import Operation, OperationOwner, Seen, Stream
from host_agents.collective.packets import (
    ACKNOWLEDGEMENT,
    CONTRIBUTION,
    HEADER,
    OPERATORS,
    PAYLOAD_BYTES,
    RESULT,
    group_address,
)
from host_agents.collective.packets import PUSH as PUSH_OPCODE
from host_agents.collective.packets import READ as READ_OPCODE
from host_agents.collective.packets import WRITE as WRITE_OPCODE
from host_agents.errors import HostError
from host_agents.fifo import Fifo, RowFifo
from host_agents.framing import FLIT_BYTES
from host_agents.port import Arbiter
from host_agents.timers import NEVER, Timer

KINDS: Final = ("read", "write", "push")  # kinds of operations
_REQUEST_OPCODES: Final = (READ_OPCODE, WRITE_OPCODE, PUSH_OPCODE)

_READS: Final = 0  # queues
_WRITES: Final = 1
_RESPONSES: Final = 2
_EARLY_NS: Final = 0.001  # largest error of sums of fractions of a ns
_RETRY: Final = 8
_OVERFLOW: Final = 4
_HEADER_END: Final = wire.AFTER_BTH + HEADER.size_bytes
_LANES_END: Final = _HEADER_END + PAYLOAD_BYTES

# Row of a read in progress in the memory: its end, its initiator, and the request's header.
_READING: Final = 4
_READY_NS: Final = 0
_DESTINATION: Final = 1
_FIRST: Final = 2
_SECOND: Final = 3


class CollectiveStats:
    """Counts of one engine, including errors."""

    def __init__(self) -> None:
        self.requests_sent = 0  # including repeated ones
        self.repeats = 0
        self.requests_received = 0
        self.duplicates = 0  # requests that have arrived before, and results that are already known
        self.writes_delivered = 0
        self.overflows = 0  # results with a partial sum that overflowed
        # errors
        self.not_joined = 0  # requests for a group that this host is not in
        self.no_peer = 0  # operations from a host that is no peer
        self.too_many = 0  # requests beyond the limit of operations in progress
        self.unasked = 0  # answers that no operation waits for
        self.outside_window = 0  # requests with a sequence number outside of the initiator's window
        self.short_lanes = 0  # frames without the payload that they should have
        self.no_memory = 0  # addresses beyond the memory

    def counts(self) -> dict[str, int]:
        """Return all counts by name."""
        return {name: getattr(self, name) for name in COLLECTIVE_COUNTS}


COLLECTIVE_COUNTS: Final = (
    "requests_sent", "repeats", "requests_received", "duplicates", "writes_delivered", "overflows",
    "not_joined", "no_peer", "too_many", "unasked", "outside_window", "short_lanes", "no_memory",
)  # fmt: skip


class Membership:
    """Membership of this host in a group.

    `seen` is by initiator's rank, for reads and for writes.
    """

    def __init__(self, joining: Joining) -> None:
        j = joining
        self.number = j.number
        self.members = j.members
        self.rank = j.rank
        self.push = j.push
        addresses = [group_address(tree, j.number) for tree in range(1, j.trees + 1)]
        # By kind of operation.
        self.streams = [Stream(kind, j.number, j.rank, addresses, j.first_sequence, j.window) for kind in (READ, WRITE)]
        self.streams.append(Stream(PUSH, j.number, 0, addresses, j.first_sequence, j.window))
        self.seen = [[Seen(j.first_sequence, j.window) for _ in range(j.members)] for _ in (READ, WRITE)]

    def writes_before(self, rank: int) -> int:
        """Return the number below which all writes of this initiator have been delivered here."""
        return self.seen[WRITE][rank].before


class _Deadline:
    def __init__(self, at_ns: int, operation: Operation) -> None:
        self.at_ns = at_ns
        self.operation = operation
        self.repeats = operation.repeats

    def is_over(self) -> bool:
        """Return whether the operation is answered or has a later deadline."""
        return self.operation.done_ns >= 0 or self.repeats != self.operation.repeats


class Engine(Arbiter):
    """Engine of a NIC's collective operations. It calls `on_write` with the membership after each write."""

    def __init__(
        self,
        config: CollectiveConfig,
        address: int,
        host: Host,
        line_rate_bps: int,
        injection: Injection,
        join: Callable[[int], object],
        contents: bytes | None = None,
    ) -> None:
        """Create the engine; `join` makes the NIC accept packets for another address."""
        self.config = config
        self.injection = injection
        injection.draw_from(host.random)
        self.stats = CollectiveStats()
        self.cycle_ns = FLIT_BYTES * 8e9 / line_rate_bps
        self.memory = None if contents is None else Memory(contents, config.fraction_bits)
        self.on_write: Callable[[int, Membership], object] | None = None
        self.operations: list[tuple[str, int, int, int, int, int]] = []  # rows of completed operations; see `record`
        self._host = host
        self._join = join
        self._frames = CollectiveFrames(address, config.request_priority, config.response_priority)
        self._groups: dict[int, Membership] = {}
        self._last: Membership | None = None  # membership of the latest frame
        self._unicast: dict[int, Stream] = {}  # by destination and kind
        self._heard_from: dict[int, Seen] = {}  # unicast: by source and kind, for sources whose operations are accepted
        self._most_answers = 0  # largest number of waiting answers if all hosts respect their windows
        self._requests: list[Fifo[Operation]] = [Fifo(), Fifo()]  # reads, writes
        self._repeated: list[Fifo[Operation]] = [Fifo(), Fifo()]  # served before the requests
        self._shared = config.injection_queues == SHARED
        self._responses: Fifo[bytes] = Fifo()
        self._unordered: list[bytes] = []  # answers that wait, if their order is random
        self._random = config.response_order == RANDOM_ORDER
        self._memory_ns = math.ceil(config.memory_cycles * self.cycle_ns)
        self._reading = RowFifo(_READING)  # reads in progress in the memory
        # In the order of service: the queue served longest ago is first.
        self._turns = [_READS, _WRITES, _RESPONSES]
        self._round_robin = config.arbiter == ROUND_ROBIN
        self._request_class = 1 << config.request_priority
        self._response_class = 1 << config.response_priority
        self._peaks = [0, 0, 0]
        self._reading_peak = 0
        self._deadlines: Fifo[_Deadline] = Fifo()
        self._deadlines_peak = 0
        self.timers = host.timers
        self._timer = Timer(host.timers, self)

    # Requests of the host's programs

    def join(self, joining: Joining) -> Membership:
        """Join a group.

        Raises HostError if this host is already in a group with this number.
        """
        number = joining.number
        if number in self._groups:
            raise HostError(f"collective group {number} is joined already")
        membership = Membership(joining)
        self._groups[number] = membership
        self._most_answers += joining.members * _answers(joining.window)
        self.injection.join(number, joining.members, joining.rank)
        for address in membership.streams[READ].addresses:
            self._join(address)
        return membership

    def accept(self, source: int) -> None:
        """Accept operations of that host towards this one from now on."""
        if source << 1 not in self._heard_from:
            for kind in (READ, WRITE):
                self._heard_from[source << 1 | kind] = Seen(1, UNICAST_WINDOW)
            self._most_answers += _answers(UNICAST_WINDOW)

    def stream(self, kind: int, destination: int) -> Stream:
        """Return the stream of operations towards one host."""
        key = destination << 1 | kind
        stream = self._unicast.get(key)
        if stream is None:
            stream = Stream(kind, UNICAST, 0, [destination], 1, UNICAST_WINDOW)
            self._unicast[key] = stream
        return stream

    def post(self, operation: Operation) -> None:
        """Post an operation, which leaves on its turn when the protocol permits."""
        queue = _READS if operation.stream.kind == READ or self._shared else _WRITES
        self._requests[queue].push(operation)
        self._peaks[queue] = max(self._peaks[queue], self._requests[queue].size)

    def record(self) -> list[tuple[str, int, int, int, int, int]]:
        """Return (kind, group, posted_ns, sent_ns, done_ns, repeats) of every sent operation, completed ones first."""
        streams = [*self._unicast.values()]
        for membership in self._groups.values():
            streams += membership.streams
        return self.operations + [_row(operation) for stream in streams for operation in stream.unanswered()]

    def sizes(self) -> dict[str, int]:
        """Return the largest number of entries of each queue, and those of the protocol."""
        return {
            "read_queue_entries": self._peaks[_READS],
            "write_queue_entries": self._peaks[_WRITES],
            "response_queue_entries": self._peaks[_RESPONSES],
            "memory_queue_entries": self._reading_peak,
            "deadline_entries": self._deadlines_peak,
            **self.injection.sizes(),
        }

    # Requests of the port

    def due_ns(self, paused_until_ns: Sequence[int]) -> int:
        due = NEVER
        response_class = self.config.response_priority
        if self._waiting_responses() > 0:
            due = paused_until_ns[response_class]
        elif self._reading.size > 0:
            ready_ns: int = self._reading.rows[self._reading.oldest() + _READY_NS]
            due = max(ready_ns, paused_until_ns[response_class])
        for queue in (_READS, _WRITES):
            operation = self._next_request(queue)
            if operation is not None:
                due = min(due, max(self._ready_ns(operation), paused_until_ns[self.config.request_priority]))
        return due

    def transmit(self, now_ns: int, paused: int) -> bytes | None:
        self._read_memory(now_ns)
        turns = self._turns
        for place in range(3):
            queue = turns[place]
            if queue == _RESPONSES:
                frame = None if paused & self._response_class else self._response()
            else:
                frame = None if paused & self._request_class else self._request(now_ns, queue)
            if frame is not None:
                if self._round_robin:
                    self._turns = turns[place + 1 :] + turns[: place + 1]
                else:
                    turns.append(turns.pop(place))
                return frame
        return None

    def _next_request(self, queue: int) -> Operation | None:
        if self._repeated[queue].size > 0:
            return self._repeated[queue].peek()
        return self._requests[queue].peek() if self._requests[queue].size > 0 else None

    def _ready_ns(self, operation: Operation) -> int:
        """Return the time from which an operation may be sent; NEVER if it has to wait for an answer."""
        if operation.sent_ns >= 0:
            return 0  # the first sending of a repeated operation was permitted
        if not operation.stream.may_send():
            return NEVER
        ready = self.injection.ready_at(operation.stream.kind)
        return math.ceil(ready * self.cycle_ns - _EARLY_NS) if ready < NEVER else NEVER

    def _request(self, now_ns: int, queue: int) -> bytes | None:
        """Return the next frame of a queue of requests; None if none may be sent."""
        operation = self._next_request(queue)
        if operation is None:
            return None
        stream = operation.stream
        now = now_ns / self.cycle_ns
        if operation.sent_ns >= 0:
            self._repeated[queue].pop()
            if operation.done_ns >= 0:
                return self._request(now_ns, queue)
            self.injection.on_repeated(now, stream.kind, operation.probe)
            operation.probe = False
            operation.repeats += 1
            self.stats.repeats += 1
        else:
            if self._ready_ns(operation) > now_ns:
                return None
            self._requests[queue].pop()
            stream.number(operation)
            operation.sent_ns = now_ns
            operation.probe = self.injection.on_sent(now, stream.group, stream.kind)
        self.stats.requests_sent += 1
        self._expect(now_ns, operation)
        tree = stream.tree(operation.sequence)
        return self._frames.frame(
            _REQUEST_OPCODES[stream.kind],
            stream.addresses[tree - 1 if tree > 0 else 0],
            True,
            operation.operator << 4 | (_RETRY if operation.repeats > 0 else 0),
            tree << 32 | stream.group << 16 | stream.rank,
            operation.size_bytes,
            operation.sequence,
            operation.address,
            operation.lanes,
        )

    def _response(self) -> bytes | None:
        if self._random:
            waiting = self._unordered
            if not waiting:
                return None
            place = self._host.random.randrange(len(waiting))
            chosen = waiting[place]
            waiting[place] = waiting[-1]
            waiting.pop()
            return chosen
        return self._responses.pop() if self._responses.size > 0 else None

    def _waiting_responses(self) -> int:
        return len(self._unordered) if self._random else self._responses.size

    def _respond(self, frame: bytes) -> None:
        if self._random:
            self._unordered.append(frame)
        else:
            self._responses.push(frame)
        waiting = self._waiting_responses()
        if waiting > self._peaks[_RESPONSES]:
            self._peaks[_RESPONSES] = waiting

    # Time-outs

    def _expect(self, now_ns: int, operation: Operation) -> None:
        """Set a deadline for the answer, one time-out from now."""
        deadlines = self._deadlines
        while deadlines.size > 0 and deadlines.peek().is_over():
            deadlines.pop()
        deadlines.push(_Deadline(now_ns + self._host.rto_ns, operation))
        self._deadlines_peak = max(self._deadlines_peak, deadlines.size)
        if not self._timer.is_armed():
            self._timer.arm(deadlines.peek().at_ns)

    def on_timer(self, now_ns: int, timer: Timer) -> None:
        deadlines = self._deadlines
        while deadlines.size > 0:
            head = deadlines.peek()
            if not head.is_over():
                if head.at_ns > now_ns:
                    timer.arm(head.at_ns)
                    return
                operation = head.operation
                queue = _READS if operation.stream.kind == READ or self._shared else _WRITES
                self._repeated[queue].push(operation)
            deadlines.pop()

    # Arrivals

    def receive(self, now_ns: int, frame: bytes, after_bth: int) -> bool:
        """Handle a frame for queue pair 0xFFFFFF; return False if it is malformed.

        `after_bth` is the number of bytes after the BTH on the wire, without the ICRC.
        """
        opcode = frame[wire.BTH]
        if opcode < WRITE_OPCODE or opcode > RESULT or opcode == PUSH_OPCODE or len(frame) < _HEADER_END:
            return False  # pushes are addressed to switches
        if frame[wire.AFTER_BTH] >> 4 >= len(OPERATORS):
            return False
        carries = opcode not in (READ_OPCODE, ACKNOWLEDGEMENT)
        if after_bth != HEADER.size_bytes + (PAYLOAD_BYTES if carries else 0):
            return False
        if carries and self.memory is not None and len(frame) < _LANES_END:
            self.stats.short_lanes += 1
            return True
        first = read_i64_be(frame, wire.AFTER_BTH)
        second = read_i64_be(frame, wire.AFTER_BTH + 8)
        self._read_memory(now_ns)
        if opcode in (WRITE_OPCODE, READ_OPCODE):
            self._on_request(now_ns, READ if opcode == READ_OPCODE else WRITE, frame, first, second)
        else:
            self._on_answer(now_ns, opcode, frame, first, second)
        return True

    def _on_request(self, now_ns: int, kind: int, frame: bytes, first: i64, second: i64) -> None:
        """Handle a request with the header words `first` and `second`."""
        stats = self.stats
        stats.requests_received += 1
        group: int = first >> 32 & 0xFFFF
        rank: int = first >> 16 & 0xFFFF
        size_bytes: int = first & 0xFFFF
        sequence: int = second >> 32 & 0xFFFFFFFF
        address: int = second & 0xFFFFFFFF
        source = _source(frame)
        membership: Membership | None = None
        if group == UNICAST:
            heard = self._heard_from.get(source << 1 | kind)
            if heard is None:
                stats.no_peer += 1
                return
            seen = heard
        else:
            membership = self._membership(group)
            if membership is None or rank >= membership.members:
                stats.not_joined += 1
                return
            seen = membership.seen[kind][rank]
        if not seen.within(sequence):
            stats.outside_window += 1
            return
        if self._reading.size + self._waiting_responses() >= self._most_answers:
            stats.too_many += 1
            return
        memory = self.memory
        if memory is not None and not memory.has(address, size_bytes):
            stats.no_memory += 1
            return
        if seen.note(sequence):
            if membership is not None and rank != membership.rank:
                self.injection.on_heard(now_ns / self.cycle_ns, group, rank, kind)
            if kind == WRITE:
                stats.writes_delivered += 1
                if memory is not None:
                    memory.write(address, frame[_HEADER_END : _HEADER_END + size_bytes])
                if membership is not None and self.on_write is not None:
                    self.on_write(now_ns, membership)
        else:
            stats.duplicates += 1
        if kind == READ:
            reading = self._reading
            at = reading.push()
            rows = reading.rows
            rows[at + _READY_NS] = now_ns + self._memory_ns
            rows[at + _DESTINATION] = source
            rows[at + _FIRST] = first
            rows[at + _SECOND] = second
            if reading.size > self._reading_peak:
                self._reading_peak = reading.size
        else:
            self._respond(self._answer(ACKNOWLEDGEMENT, source, first, second, b""))

    def _membership(self, group: int) -> Membership | None:
        """Return the membership in a group; None if this host is not in it."""
        last = self._last
        if last is None or last.number != group:
            last = self._groups.get(group)
            self._last = last
        return last

    def _answer(self, opcode: int, destination: int, first: i64, second: i64, lanes: bytes) -> bytes:
        """Return the answer to a request with the header words `first` and `second`."""
        bits: int = first >> 56 & 0xF8
        place_bits: int = first >> 16 & 0xFFFFFFFFFF
        size_bytes: int = first & 0xFFFF
        sequence: int = second >> 32 & 0xFFFFFFFF
        address: int = second & 0xFFFFFFFF
        return self._frames.frame(opcode, destination, False, bits, place_bits, size_bytes, sequence, address, lanes)

    def _read_memory(self, now_ns: int) -> None:
        """Send the answers of the reads that memory has completed."""
        reading = self._reading
        rows = reading.rows
        memory = self.memory
        now: i64 = now_ns
        while reading.size > 0 and rows[reading.oldest() + _READY_NS] <= now:
            at = reading.oldest()
            reading.drop()
            destination: int = rows[at + _DESTINATION]
            first = rows[at + _FIRST]
            second = rows[at + _SECOND]
            lanes = b""
            if memory is not None:
                address: int = second & 0xFFFFFFFF
                size_bytes: int = first & 0xFFFF
                if first >> 32 & 0xFFFF == UNICAST:
                    lanes = padded(memory.read(address, size_bytes))
                else:
                    operator: int = first >> 60 & 0xF
                    lanes = memory.lanes(address, size_bytes, operator)
            self._respond(self._answer(CONTRIBUTION, destination, first, second, lanes))

    def _on_answer(self, now_ns: int, opcode: int, frame: bytes, first: i64, second: i64) -> None:
        """Handle an answer with the header words `first` and `second`."""
        stats = self.stats
        group: int = first >> 32 & 0xFFFF
        rank: int = first >> 16 & 0xFFFF
        sequence: int = second >> 32 & 0xFFFFFFFF
        kind = READ if opcode == CONTRIBUTION else WRITE
        if group == UNICAST:
            stream = None if opcode == RESULT else self._unicast.get(_source(frame) << 1 | kind)
        else:
            membership = self._membership(group)
            if membership is None:
                stats.not_joined += 1
                return
            stream = membership.streams[PUSH if opcode == RESULT else kind]
            if opcode != RESULT and rank != membership.rank:
                stream = None
        operation = stream.take(sequence) if stream is not None else None
        if operation is None:
            if opcode == RESULT and stream is not None and sequence < stream.next:
                stats.duplicates += 1  # a result that was repeated for another member
            else:
                stats.unasked += 1
            return
        operation.done_ns = now_ns
        if opcode != ACKNOWLEDGEMENT and len(frame) >= _LANES_END:
            operation.result = frame[_HEADER_END : _HEADER_END + operation.size_bytes]
        operation.overflow = first >> 56 & _OVERFLOW != 0
        if operation.overflow:
            stats.overflows += 1
        self.operations.append(_row(operation))
        latency = (now_ns - operation.sent_ns) / self.cycle_ns if operation.repeats == 0 else -1.0
        self.injection.on_answered(now_ns / self.cycle_ns, group, operation.stream.kind, latency, operation.probe)
        operation.owner.on_answered(now_ns, operation)

    def coin(self) -> bool:
        """Return True or False with equal probability."""
        return self._host.random.random() < 0.5

    def operation(
        self, stream: Stream, address: int, size_bytes: int, operator: int, owner: OperationOwner, now_ns: int
    ) -> Operation:
        """Return an operation to post; a write or a push carries the memory's contents at the address.

        Raises HostError for an unknown operator, and for an address or a size that the memory does not have.
        """
        if operator not in OPERATORS.values():
            raise HostError(f"operator {operator}: expected one of: {', '.join(map(str, OPERATORS.values()))}")
        lanes = b""
        memory = self.memory
        if memory is not None:
            if not memory.has(address, size_bytes):
                raise HostError(
                    f"a collective of {size_bytes} bytes at {address} x 16: expected at most {PAYLOAD_BYTES}, whole "
                    f"numbers of 4 bytes, within a memory of {len(memory.contents)} bytes"
                )
            if stream.kind == WRITE:
                lanes = padded(memory.read(address, size_bytes))
            elif stream.kind == PUSH:
                lanes = memory.lanes(address, size_bytes, operator)
        return Operation(stream, address, size_bytes, operator, owner, now_ns, lanes)


def _source(frame: bytes) -> int:
    addresses: int = read_i64_be(frame, wire.SOURCE) >> 32 & 0xFFFFFFFF
    return addresses


def _answers(window: int) -> int:
    """Return the largest number of answers owed to an initiator: reads and writes, each repeated once."""
    return 4 * window


def _row(operation: Operation) -> tuple[str, int, int, int, int, int]:
    return (
        KINDS[operation.stream.kind],
        operation.stream.group,
        operation.posted_ns,
        operation.sent_ns,
        operation.done_ns,
        operation.repeats,
    )
