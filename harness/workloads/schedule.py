"""Schedules: operations of ranks that wait for each other: computing, sending, receiving.

A send is a message of the network. It starts when everything that it requires is done, even if the
receive has not begun. It is done when it is acknowledged. A receive is done when it has begun and
its message is delivered. Computing occupies one of its rank's processors, which work sequentially.

An operation is scheduled as soon as its start can be computed, ahead of the network's time, and is
not moved later. So a processor takes work in the order in which its start times become known. This
may differ from the order of the start times: work released by a message is queued behind all
computing that waited for no message, even if it was ready earlier. A message matches a receive with
its source, destination and tag that is known at its arrival; of several, the one that begins first.
A receive from any source, or with any tag, takes the message that arrived first.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Any, Final, Literal

from harness.workloads.base import MAX_FLOWS, MAX_SIZE_BYTES, MAX_TIME_NS, Flow, Traffic, expect_flows
from p4switch.errors import UserError

ANY: Final = -(1 << 64)  # any source, or any tag, of a receive
_Channel = tuple[int, int]  # source and tag of messages at one destination
# Heaps of the times at which receives begin, with the receives' numbers.
_Receives = dict[_Channel, list[tuple[int, int]]]
_Part = tuple["array[int]", int, dict[int, _Receives]]  # ends of operations, messages under way, receives by rank
MAX_OPERATIONS = 3 * MAX_FLOWS  # operations for each flow: a send, a receive and a computation before it
_MOST_SHOWN = 8  # number of receives that an error message names


@dataclass(slots=True)
class Operation:
    """Operation of a rank.

    It waits for the end of the operations that it `requires`, and for the start of those in
    `follows`.
    """

    rank: int
    kind: Literal["calc", "send", "recv"]
    requires: list[int]
    follows: list[int] = field(default_factory=list)
    duration_ns: int = 0
    processor: int = 0
    peer: int = -1  # other end of a message
    size_bytes: int = 0
    tag: int = 0
    step: int = 0  # training step that it belongs to


def expect_operations(key: str, count: int) -> None:
    """Raise UserError if a workload would make more operations than can be held."""
    if count > MAX_OPERATIONS:
        raise UserError(f"workload.{key}: makes about {count:.2g} operations; expected at most {MAX_OPERATIONS}")


class Schedule:
    """Operations by number; adding too many raises UserError."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.operations: list[Operation] = []
        self.step = 0  # step of the operations that are added now

    def calc(self, rank: int, duration_ns: int, requires: Iterable[int] = (), processor: int = 0) -> int:
        return self._add(
            Operation(rank, "calc", list(requires), duration_ns=duration_ns, processor=processor, step=self.step)
        )

    def send(self, rank: int, peer: int, size_bytes: int, requires: Iterable[int] = (), tag: int = 0) -> int:
        """Add a send to `peer` of at least one byte."""
        size_bytes = max(size_bytes, 1)
        return self._add(
            Operation(rank, "send", list(requires), peer=peer, size_bytes=size_bytes, tag=tag, step=self.step)
        )

    def recv(self, rank: int, peer: int, requires: Iterable[int] = (), tag: int = 0) -> int:
        """Add a receive from `peer`, or ANY."""
        return self._add(Operation(rank, "recv", list(requires), peer=peer, tag=tag, step=self.step))

    def _add(self, operation: Operation) -> int:
        if len(self.operations) == MAX_OPERATIONS:
            raise UserError(f"workload: makes more than {MAX_OPERATIONS} operations")
        self.operations.append(operation)
        return len(self.operations) - 1

    def check(self, where: str) -> None:
        """Raise UserError for unmatched messages, cycles, and more flows or time than the limits."""
        if (computing_ns := sum(one.duration_ns for one in self.operations)) >= MAX_TIME_NS:
            raise UserError(f"{where}: computes for {computing_ns:.2g} ns in all; expected less than {MAX_TIME_NS}")
        open_ends: Counter[tuple[int, int, int]] = Counter()  # source, destination, tag
        choosing = _choosing(self.operations)
        for one in self.operations:
            if one.kind == "calc":
                continue
            if not 0 <= one.peer < self.ranks and (one.kind, one.peer) != ("recv", ANY):
                raise UserError(f"{where}: no rank {one.peer}; expected 0 to {self.ranks - 1}")
            if one.size_bytes >= MAX_SIZE_BYTES:
                raise UserError(f"{where}: a message of {one.size_bytes} bytes; expected less than {MAX_SIZE_BYTES}")
            source, destination = (one.rank, one.peer) if one.kind == "send" else (one.peer, one.rank)
            channel = (ANY, destination, ANY) if destination in choosing else (source, destination, one.tag)
            open_ends[channel] += 1 if one.kind == "send" else -1
        for (source, destination, tag), more in open_ends.items():
            if more:
                surplus = f"{more} more sends than receives" if more > 0 else f"{-more} more receives than sends"
                raise UserError(f"{where}: {_from(source)} to rank {destination}, {_tag(tag)}: {surplus}")
        expect_flows("file", sum(one.kind == "send" for one in self.operations))
        sorter = TopologicalSorter({i: (*one.requires, *one.follows) for i, one in enumerate(self.operations)})
        try:
            sorter.prepare()
        except CycleError as error:
            rank = self.operations[error.args[1][0]].rank
            raise UserError(f"{where}: operations of rank {rank} wait for each other in a cycle") from None


def _choosing(operations: Iterable[Operation]) -> set[int]:
    """Return the ranks that have receives from any source or with any tag."""
    return {one.rank for one in operations if one.kind == "recv" and ANY in (one.peer, one.tag)}


def _from(source: int) -> str:
    return "from any rank" if source == ANY else f"from rank {source}"


def _tag(tag: int) -> str:
    return "any tag" if tag == ANY else f"tag {tag}"


class ScheduleTraffic(Traffic):
    """Traffic that executes a schedule; `hosts` has the host of each rank."""

    def __init__(self, schedule: Schedule, hosts: Sequence[int]) -> None:
        self._operations = operations = schedule.operations
        self._hosts = hosts
        self._missing = [len(one.requires) + len(one.follows) for one in operations]
        self._ready_ns = [0] * len(operations)
        self._ended_ns = [-1] * len(operations)
        self._after_end: dict[int, list[int]] = {}
        self._after_start: dict[int, list[int]] = {}
        for i, one in enumerate(operations):
            for other in one.requires:
                self._after_end.setdefault(other, []).append(i)
            for other in one.follows:
                self._after_start.setdefault(other, []).append(i)
        self._local = all(
            operations[other].rank == one.rank for one in operations for other in (*one.requires, *one.follows)
        )
        self._choosing = _choosing(operations)
        self._groups = {step: f"step {step + 1}" for step in {one.step for one in operations}}
        self._free_ns: defaultdict[tuple[int, int], int] = defaultdict(int)  # processors, by rank and number
        # Arrival times of messages that no receive has taken yet, by destination and channel,
        # without empty queues.
        self._arrived: defaultdict[int, dict[_Channel, deque[int]]] = defaultdict(dict)
        # Receives without a message, by destination and channel: the time at which each begins,
        # which may be after a message's arrival, and its number.
        self._waiting: defaultdict[int, _Receives] = defaultdict(dict)
        self._under_way = 0  # number of deliveries and acknowledgements that are still expected
        self._events: list[tuple[int, int, bool]] = []  # heap of (time, operation, whether it begins)
        for i, missing in enumerate(self._missing):
            if not missing:
                heappush(self._events, (0, i, True))
        super().__init__(self._go_on())
        self._under_way_at_first = self._under_way

    @property
    def local(self) -> bool:
        return self._local

    @property
    def flow_bytes(self) -> int:
        return sum(one.size_bytes for one in self._operations if one.kind == "send" and one.peer != one.rank)

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        self._under_way -= 1
        self._arrive(self._operations[flow.operation], now_ns)
        return self._go_on()

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        self._under_way -= 1
        heappush(self._events, (now_ns, flow.operation, False))
        return self._go_on()

    def _go_on(self) -> list[Flow]:
        """Process all consequences of known events, and return the messages that start because of them."""
        flows: list[Flow] = []
        events, missing, ready_ns = self._events, self._missing, self._ready_ns
        while events:
            time_ns, number, begins = heappop(events)
            if begins:
                flow = self._begin(number, time_ns)
                if flow is not None:
                    flows.append(flow)
            else:
                self._ended_ns[number] = time_ns
            for other in (self._after_start if begins else self._after_end).get(number, ()):
                if ready_ns[other] < time_ns:
                    ready_ns[other] = time_ns
                missing[other] -= 1
                if not missing[other]:
                    heappush(events, (ready_ns[other], other, True))
        return flows

    def _begin(self, number: int, now_ns: int) -> Flow | None:
        """Begin an operation; return the message of a send to another rank."""
        one = self._operations[number]
        if one.kind == "recv":
            arrived_ns = self._take(one)
            if arrived_ns is None:
                heappush(self._waiting[one.rank].setdefault((one.peer, one.tag), []), (now_ns, number))
            else:
                heappush(self._events, (max(now_ns, arrived_ns), number, False))
        elif one.kind == "calc":
            if one.duration_ns:  # without a duration it needs no processor
                processor = (one.rank, one.processor)
                now_ns = max(self._free_ns[processor], now_ns) + one.duration_ns
                self._free_ns[processor] = now_ns
            heappush(self._events, (now_ns, number, False))
        elif one.peer == one.rank:
            self._arrive(one, now_ns)
            heappush(self._events, (now_ns, number, False))
        else:
            self._under_way += 2
            source, destination = self._hosts[one.rank], self._hosts[one.peer]
            group = self._groups[one.step]
            return Flow(source, destination, one.size_bytes, now_ns, group, "rank", operation=number)
        return None

    def _take(self, one: Operation) -> int | None:
        """Return the arrival time of the message that a receive takes; None if there is none."""
        there = self._arrived[one.rank]
        channel: _Channel | None = (one.peer, one.tag)
        if ANY in (one.peer, one.tag):
            fits = [at for at in there if one.peer in (ANY, at[0]) and one.tag in (ANY, at[1])]
            channel = min(fits, key=lambda at: (there[at][0], at), default=None)
        if channel is None or channel not in there:
            return None
        arrived_ns = there[channel].popleft()
        if not there[channel]:
            del there[channel]
        return arrived_ns

    def _arrive(self, sent: Operation, now_ns: int) -> None:
        waiting = self._waiting[sent.peer]
        channel: _Channel = (sent.rank, sent.tag)
        first = waiting.get(channel)
        if sent.peer in self._choosing:
            channels: tuple[_Channel, ...] = (channel, (ANY, sent.tag), (sent.rank, ANY), (ANY, ANY))
            first = min([waiting[each] for each in channels if each in waiting], default=None)
        if first is None:
            self._arrived[sent.peer].setdefault(channel, deque()).append(now_ns)
            return
        begun_ns, number = heappop(first)
        heappush(self._events, (max(now_ns, begun_ns), number, False))
        if not first:
            one = self._operations[number]
            del waiting[one.peer, one.tag]

    def _stuck(self) -> list[str]:
        """Return ranks that wait for each other while nothing is in progress."""
        if self._under_way:
            return []
        waiting = sorted(
            number for channels in self._waiting.values() for receives in channels.values() for _, number in receives
        )
        shown = [self._operations[number] for number in waiting[:_MOST_SHOWN]]
        lines = [f"rank {one.rank} waits for ever for a message {_from(one.peer)}, {_tag(one.tag)}" for one in shown]
        return [*lines, f"{len(waiting) - _MOST_SHOWN} more wait so"] if len(waiting) > _MOST_SHOWN else lines

    def part(self, owns: Callable[[int], bool]) -> _Part:
        has = [owns(host) for host in self._hosts]
        pairs = zip(self._operations, self._ended_ns, strict=True)
        ended_ns = array("q", (time_ns if has[one.rank] else -1 for one, time_ns in pairs))
        waiting = {rank: receives for rank, receives in self._waiting.items() if has[rank]}
        return ended_ns, self._under_way - self._under_way_at_first, waiting

    def join(self, part: _Part) -> None:
        ended_ns, under_way, waiting = part
        self._ended_ns = list(map(max, self._ended_ns, ended_ns))
        self._under_way += under_way
        self._waiting |= waiting

    def summary(self) -> dict[str, Any]:
        """Return the duration of each step from the end of the previous one; None for unfinished steps."""
        ends: dict[int, int | None] = {}
        for one, ended_ns in zip(self._operations, self._ended_ns, strict=True):
            before = ends.get(one.step, 0)
            ends[one.step] = None if before is None or ended_ns < 0 else max(before, ended_ns)
        steps, before_ns = [], 0
        for step in sorted(ends):
            end_ns = ends[step]
            steps.append(None if end_ns is None else end_ns - before_ns)
            before_ns = before_ns if end_ns is None else max(before_ns, end_ns)
        computing: Counter[int] = Counter()
        for one in self._operations:
            computing[one.rank] += one.duration_ns
        stuck = self._stuck()
        left = self._ended_ns.count(-1)
        return {
            "job_completion_ns": None if left else max(self._ended_ns, default=0),
            "step_ns": steps,
            "computing_ns": max(computing.values(), default=0),
            "unfinished_operations": left,
            **({"mistakes": stuck} if stuck else {}),
        }


Ends = Mapping[int, Sequence[int]]  # operations that the next ones require, by rank
