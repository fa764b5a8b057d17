"""Collectives in the network: groups of hosts that reduce and replicate vectors.

They do so by reads and writes to all members.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import Self

from harness.workloads.base import Setting, Size, Traffic, WorkloadParameters, expect_hosts, register
from host_agents.assignments import (
    ALL_GATHER,
    ALL_REDUCE,
    BARRIER,
    BROADCAST,
    PUSHED_ALL_REDUCE,
    RANDOM,
    REDUCE,
    UNICAST_RANDOM,
    UNICAST_READ,
    UNICAST_WRITE,
    Assignment,
    CollectiveConfig,
    Joining,
    Step,
)
from p4switch.errors import UserError
from p4switch.tables import Table
from topologies.collectives import CollectiveGroup, trees
from topologies.model import Topology

if TYPE_CHECKING:
    from harness.workloads.collective_record import CollectiveReport

PACKET_BYTES = 128
UNIT_BYTES = 16  # addresses count these units
FLIT_BITS = 128
MAX_OPERATIONS = 4_000_000  # limit of a run
_SEVERAL = (ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER)  # kinds whose initiators divide the vector
_PAIRWISE = (UNICAST_READ, UNICAST_WRITE)
Kind = Literal[
    "all_reduce", "reduce", "broadcast", "all_gather", "barrier", "random", "unicast_read", "unicast_write",
    "pushed_all_reduce",
]  # fmt: skip
Range = Annotated[tuple[int, int], Field(strict=False)]
Numbers = NDArray[Any]


class Application(Table):
    """Group of hosts with their common application.

    The size is given by the `operations` of each initiator or by the `size_bytes` of the whole
    vector. An operation of an all-reduce is a read and a write. The `initiators` are evenly spread
    over the members, and each has a slice of the vector. By default all members are initiators; a
    broadcast has one. In unicast reads and writes, members with even ranks initiate operations with
    the next rank.

    Kind `random` has `sets` of operations, with a pause of `idle_cycles` before each set but the
    first. The number of operations in a set is in the range `set_operations`. Each operation is a
    read or a write with equal probability. Every `unicast_every`-th set has unicast operations
    towards one host, `unicast_factor` times as many.
    """

    kind: Kind = "all_reduce"  # kind of operation
    # Number of hosts that take part; none: all that other applications leave.
    hosts: Annotated[int, Field(ge=1)] | None = None
    # Instead of hosts: which hosts take part, by index.
    members: Annotated[tuple[int, ...], Field(strict=False)] = ()
    operations: Annotated[int, Field(ge=1, le=1 << 20)] | None = None  # number of operations of each initiator
    size_bytes: Size | None = None  # size of the whole vector
    initiators: Annotated[int, Field(ge=1)] | None = None  # number of members that have a slice
    operator: Literal["sum", "min", "max", "and", "or", "xor"] = "sum"  # operator that combines contributions
    # Slots of each initiator for each kind of operation: sequences in progress.
    window: Annotated[int, Field(ge=1)] = 128
    first_sequence: Annotated[int, Field(ge=1, le=1 << 30)] = 1  # first sequence number of each initiator, from 1
    sets: Annotated[int, Field(ge=1, le=10_000)] = 10  # kind random: number of sets of operations
    set_operations: Range = (64, 256)  # kind random: the least and the most operations of a set
    idle_cycles: Range = (5_000, 10_000)  # kind random: the least and the most idle cycles before a set
    unicast_every: Annotated[int, Field(ge=0)] = 0  # kind random: period of unicast sets, in sets; 0: never
    # Kind random: factor of the number of operations in a unicast set.
    unicast_factor: Annotated[int, Field(ge=1)] = 5

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.kind in (RANDOM, BARRIER):
            if self.operations is not None or self.size_bytes is not None:
                raise ValueError(f"should have neither operations nor size_bytes, as kind is {self.kind!r}")
        elif (self.operations is None) == (self.size_bytes is None):
            raise ValueError("should have either operations or size_bytes")
        if (self.size_bytes or 0) % 4:
            raise ValueError(f"size_bytes {self.size_bytes}: should be whole numbers of 4 bytes")
        if self.hosts is not None and self.members:
            raise ValueError("should have either hosts or members")
        return self

    @model_validator(mode="after")
    def _ranges(self) -> Self:
        for name, (least, most), lowest in (
            ("set_operations", self.set_operations, 1),
            ("idle_cycles", self.idle_cycles, 0),
        ):
            if not lowest <= least <= most:
                raise ValueError(f"{name} [{least}, {most}]: should be the least and the most, from {lowest} on")
        return self


@register("collectives")
class Collectives(WorkloadParameters):
    """Applications side by side, on separate hosts unless they name the same `members`.

    An application without `members` gets hosts in the order of their addresses, or at random
    (`placement`). Starts are spread evenly over `spread_cycles`. A cycle is 16 bytes at the hosts'
    link rate. With `payload` "data" memory has random numbers, packets carry them, and every
    member's memory is compared with the result of numpy.
    """

    # Groups of hosts and their applications, side by side.
    applications: Annotated[tuple[Application, ...], Field(strict=False, min_length=1)] = (Application(operations=128),)
    placement: Literal["addresses", "random"] = "addresses"  # hosts of applications that name none
    # Time over which the applications' starts are spread.
    spread_cycles: Annotated[int, Field(ge=0, le=1 << 40)] = 5_000
    # "zeros": only times are simulated; "data": packets carry numbers, and results are checked.
    payload: Literal["zeros", "data"] = "zeros"
    numbers: Literal["int32", "float32"] = "int32"  # type of numbers in memory, with payload "data"
    fraction_bits: Annotated[int, Field(ge=0, le=30)] = 16  # fraction bits of float32 values as fixed point
    # Time from a request's arrival until the memory of a host answers.
    memory_cycles: Annotated[int, Field(ge=0, le=1 << 30)] = 180
    response_order: Literal["fifo", "random"] = "fifo"  # order in which a host sends its answers
    # Choice of a NIC among its queues of requests and responses.
    arbiter: Literal["least_recent", "round_robin"] = "least_recent"
    injection_queues: Literal["separate", "shared"] = "separate"  # whether reads and writes wait in queues of their own
    request_priority: Annotated[int, Field(ge=0, le=7)] = 3  # the class of requests
    response_priority: Annotated[int, Field(ge=0, le=7)] = 4  # the class of responses

    def collectives(self, setting: Setting) -> Sequence[CollectiveGroup]:
        return [group for group in self._groups(setting) if _is_multicast(self.applications[group.number - 1])]

    def generate(self, setting: Setting) -> Traffic:
        groups = self._groups(setting)
        order = sorted({host for group in groups for host in group.members})
        start_cycles = {host: place * self.spread_cycles / len(order) for place, host in enumerate(order)}
        steps: dict[int, list[Step]] = {host: [] for host in order}
        joinings: dict[int, list[Joining]] = {host: [] for host in order}
        parts = []
        address = 0
        for app, group in zip(self.applications, groups, strict=True):
            packets = _packets(app, group)
            part = _Part(app, group, address, app.size_bytes or packets * PACKET_BYTES)
            parts.append(part)
            address += packets * PACKET_BYTES // UNIT_BYTES
            where = _where(group.number)
            how_many_trees = len(trees(setting.topology, group, where)) if _is_multicast(app) else 0
            for rank, host in enumerate(group.members):
                if how_many_trees:
                    joinings[host].append(_joining(group, rank, how_many_trees))
                steps[host] += self._steps(setting, part, rank, host)
        contents = self._contents(setting, order, parts, address * UNIT_BYTES)
        peers = _peers(setting, steps)
        config = CollectiveConfig(
            memory_cycles=self.memory_cycles,
            response_order=self.response_order,
            arbiter=self.arbiter,
            injection_queues=self.injection_queues,
            request_priority=self.request_priority,
            response_priority=self.response_priority,
            fraction_bits=self.fraction_bits if self.numbers == "float32" else -1,
        )
        assignments = {
            host: Assignment(
                config,
                tuple(joinings[host]),
                tuple(steps[host]),
                round(start_cycles[host] * _cycle_ns(setting, host)),
                contents[host].tobytes() if contents else None,
                tuple(peers.get(str(setting.topology.hosts[host].address), ())),
            )
            for host in order
        }
        return _CollectiveTraffic(setting.topology, assignments, parts, contents, self._scale())

    def _scale(self) -> float:
        """Return the factor of fixed-point numbers in transit; 0 for integers."""
        return float(1 << self.fraction_bits) if self.numbers == "float32" else 0.0

    def _groups(self, setting: Setting) -> list[CollectiveGroup]:
        """Return the group of each application, in order, with numbers from 1.

        Raises UserError if there are too few hosts or too many operations.
        """
        taken = {host for app in self.applications for host in app.members}
        free = [host for host in range(setting.hosts) if host not in taken]
        if self.placement == "random":
            setting.rng.shuffle(free)
        wanted = sum(app.hosts or 0 for app in self.applications)
        expect_hosts("applications.hosts", wanted + len(taken), setting)
        groups = []
        for number, app in enumerate(self.applications, start=1):
            where = _where(number)
            members = app.members
            if not members:
                wanted -= app.hosts or 0  # the rest, without hosts of later applications
                count = len(free) - wanted if app.hosts is None else app.hosts
                members, free = tuple(sorted(free[:count])), free[count:]
            if not members:
                raise UserError(f"{where}: no hosts are left for it")
            if app.initiators is not None and app.initiators > len(members):
                raise UserError(f"{where}.initiators: {app.initiators}; expected at most its {len(members)} hosts")
            if app.kind == RANDOM and app.unicast_every and len(members) < 2:
                raise UserError(f"{where}.unicast_every: unicast operations of one host; expected two hosts at least")
            push = app.kind == PUSHED_ALL_REDUCE
            group = CollectiveGroup(number, members, app.window, app.first_sequence, push)
            group.check(setting.topology, where)
            groups.append(group)
        operations = sum(_operations(app, group) for app, group in zip(self.applications, groups, strict=True))
        if operations > MAX_OPERATIONS:
            raise UserError(f"workload.applications: {operations} operations; expected at most {MAX_OPERATIONS}")
        return groups

    def _steps(self, setting: Setting, part: _Part, rank: int, host: int) -> list[Step]:
        app, group = part.application, part.group
        if app.kind == RANDOM:
            return _random_sets(setting, app, group, rank, host)
        if app.kind in _PAIRWISE:
            if rank % 2 or rank + 1 == len(group.members):
                return []
            peer = str(setting.topology.hosts[group.members[rank + 1]].address)
            return [Step(app.kind, 0, part.size_bytes, part.address, app.operator, peer=peer)]
        return [Step(app.kind, group.number, part.size_bytes, part.address, app.operator, part.initiators)]

    def _contents(
        self, setting: Setting, order: Sequence[int], parts: Sequence[_Part], size_bytes: int
    ) -> dict[int, Numbers]:
        """Return the contents of each host's memory, big-endian; empty without data."""
        if self.payload == "zeros":
            return {}
        for place, part in enumerate(parts):
            if part.application.kind == RANDOM:
                raise UserError(f"workload.applications.{place}: random operations have no data; expected another kind")
        rng = np.random.default_rng(setting.rng.getrandbits(64))
        count = size_bytes // 4
        if self.numbers == "float32":
            most = 2.0 ** (30 - self.fraction_bits) / len(order)
            return {host: rng.uniform(-most, most, count).astype(">f4") for host in order}
        return {host: rng.integers(-(2**31), 2**31, count).astype(">i4") for host in order}


def _where(number: int) -> str:
    """Return the name of a group's table in the scenario, for messages."""
    return f"workload.applications.{number - 1}"


def _cycle_ns(setting: Setting, host: int) -> float:
    return FLIT_BITS * 1e9 / setting.topology.uplink(setting.topology.hosts[host]).rate_bps


def _is_multicast(application: Application) -> bool:
    return application.kind not in _PAIRWISE


def _joining(group: CollectiveGroup, rank: int, how_many_trees: int) -> Joining:
    return Joining(
        group.number, len(group.members), rank, how_many_trees, group.window, group.first_sequence, group.push
    )


def _initiators(application: Application, group: CollectiveGroup) -> tuple[int, ...]:
    """Return the ranks of the initiators."""
    members = len(group.members)
    count = application.initiators or (1 if application.kind == BROADCAST else members)
    return tuple(place * members // count for place in range(count))


def _packets(application: Application, group: CollectiveGroup) -> int:
    """Return the number of packets of the vector."""
    if application.kind in (RANDOM, BARRIER):
        return 1
    if application.size_bytes is not None:
        return -(-application.size_bytes // PACKET_BYTES)
    shares = len(_initiators(application, group)) if application.kind in _SEVERAL else 1
    return (application.operations or 0) * shares


def _operations(application: Application, group: CollectiveGroup) -> int:
    """Return the largest number of operations of all hosts; a vector has one for each packet."""
    if application.kind != RANDOM:
        return _packets(application, group)
    sets, every = application.sets, application.unicast_every
    unicast = sets // every if every else 0
    of_a_host = (sets - unicast + unicast * application.unicast_factor) * application.set_operations[1]
    return of_a_host * len(group.members)


def _random_sets(setting: Setting, app: Application, group: CollectiveGroup, rank: int, host: int) -> list[Step]:
    """Return the random sets of a host, with random numbers that do not depend on other hosts."""
    rng = random.Random(setting.rng.getrandbits(64))
    steps = []
    for number in range(1, app.sets + 1):
        count = rng.randint(*app.set_operations)
        idle_ns = round(rng.randint(*app.idle_cycles) * _cycle_ns(setting, host)) if number > 1 else 0
        if app.unicast_every and number % app.unicast_every == 0:
            other = rng.choice([member for member in group.members if member != host])
            steps.append(
                Step(
                    UNICAST_RANDOM,
                    0,
                    count * app.unicast_factor * PACKET_BYTES,
                    peer=str(setting.topology.hosts[other].address),
                    idle_ns=idle_ns,
                )
            )
        else:
            steps.append(Step(RANDOM, group.number, count * PACKET_BYTES, initiators=(rank,), idle_ns=idle_ns))
    return steps


def _peers(setting: Setting, steps: Mapping[int, Sequence[Step]]) -> dict[str, dict[str, None]]:
    """Return, by address of a host, the addresses of hosts with unicast operations towards it."""
    peers: dict[str, dict[str, None]] = {}
    for host, of_host in steps.items():
        for step in of_host:
            if step.peer:
                peers.setdefault(step.peer, {})[str(setting.topology.hosts[host].address)] = None
    return peers


class _Part:
    """Application on its hosts, with its vector in the memory of each."""

    def __init__(self, application: Application, group: CollectiveGroup, address: int, size_bytes: int) -> None:
        self.application = application
        self.group = group
        self.address = address  # in units of 16 bytes
        self.size_bytes = size_bytes
        self.initiators = _initiators(application, group)

    @property
    def vector(self) -> slice:
        """Range of the vector in memory, in numbers."""
        start = self.address * UNIT_BYTES // 4
        return slice(start, start + self.size_bytes // 4)

    def slices(self) -> list[tuple[int, slice]]:
        """Return (rank, slice) of each initiator."""
        packets = -(-self.size_bytes // PACKET_BYTES)
        each = -(-packets // len(self.initiators)) * PACKET_BYTES // 4
        start, stop = self.vector.start, self.vector.stop
        return [
            (rank, slice(min(start + place * each, stop), min(start + (place + 1) * each, stop)))
            for place, rank in enumerate(self.initiators)
        ]

    def apply(self, memory: dict[int, Numbers], scale: float) -> None:
        """Apply the application to a copy of the hosts' memory."""
        kind, members = self.application.kind, self.group.members
        before = {host: memory[host].copy() for host in members}
        if kind in (ALL_REDUCE, PUSHED_ALL_REDUCE, REDUCE):
            for rank, part in self.slices():
                reduced = _reduced([before[host][part] for host in members], self.application.operator, scale)
                for host in (members[rank],) if kind == REDUCE else members:
                    memory[host][part] = reduced
        elif kind in (ALL_GATHER, BROADCAST):
            for rank, part in self.slices():
                for host in members:
                    memory[host][part] = before[members[rank]][part]
        elif kind in _PAIRWISE:
            for rank in range(0, len(members) - 1, 2):
                here, there = members[rank], members[rank + 1]
                source, target = (there, here) if kind == UNICAST_READ else (here, there)
                memory[target][self.vector] = before[source][self.vector]


def _reduced(vectors: Sequence[Numbers], operator: str, scale: float) -> Numbers:
    """Return the reduction of vectors by lane; sums wrap.

    With a `scale` numbers are fixed point, rounded to the nearest, halves to even.
    """
    lanes = [_fixed(vector, scale) if scale else vector.astype(np.int64) for vector in vectors]
    stacked = np.stack(lanes)
    combine = {"sum": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}
    combine["xor"] = np.bitwise_xor
    wrapped = (combine[operator].reduce(stacked, axis=0) & 0xFFFFFFFF).astype(np.uint32).astype(np.int32)
    reduced: Numbers = (wrapped / scale).astype(">f4") if scale else wrapped.astype(">i4")
    return reduced


def _fixed(vector: Numbers, scale: float) -> Numbers:
    fixed: Numbers = np.clip(np.rint(vector.astype(np.float64) * scale), -(2**31), 2**31 - 1).astype(np.int64)
    return fixed


class _CollectiveTraffic(Traffic):
    def __init__(
        self,
        topology: Topology,
        assignments: Mapping[int, Assignment],
        parts: Sequence[_Part],
        contents: Mapping[int, Numbers],
        scale: float,
    ) -> None:
        super().__init__([], assignments)
        self._topology = topology
        self._parts = parts
        self._names = [host.name for host in topology.hosts]
        self._contents = contents
        self._scale = scale
        self._reports: Mapping[int, CollectiveReport] = {}

    def on_end(self, reports: Mapping[int, CollectiveReport]) -> None:
        self._reports = reports

    def summary(self) -> dict[str, Any]:
        from harness.workloads.collective_record import figures, operations_table, slot_bytes

        reports = self._reports
        if not reports:
            return {}
        ended = [report.ended_ns for report in reports.values()]
        unfinished = [self._names[host] for host, report in reports.items() if report.ended_ns < 0]
        cycle_ns = next(iter(reports.values())).cycle_ns
        table = operations_table(self._names, reports)
        members = {part.group.number: len(part.group.members) for part in self._parts}
        apart = []
        for part in self._parts:
            hosts = [self._names[host] for host in part.group.members]
            own = table[table["initiator"].isin(hosts) & table["group"].isin([0, part.group.number])]
            apart.append({"kind": part.application.kind, **figures(own, members, len(hosts), cycle_ns)})
        groups = [part.group for part in self._parts if _is_multicast(part.application)]
        wrong = self._wrong() if self._contents and not unfinished else []
        return {
            "job_completion_ns": None if unfinished else max(ended),
            **figures(table, members, len(reports), cycle_ns),
            "applications": apart,
            "unfinished_hosts": len(unfinished),
            "wrong_memories": len(wrong) if self._contents and not unfinished else None,
            "mistakes": [f"the memory of {name} does not agree with numpy" for name in wrong],
            "clipped": sum(report.clipped for report in reports.values()),
            "counts": _summed([report.counts for report in reports.values()]),
            "peak_entries": _largest([report.sizes for report in reports.values()]),
            "slots": slot_bytes(table, self._topology, groups),
        }

    def _wrong(self) -> list[str]:
        """Return the hosts whose memory has a wrong result."""
        expected = {host: numbers.copy() for host, numbers in self._contents.items()}
        for part in self._parts:
            part.apply(expected, self._scale)
        return [
            self._names[host] for host, numbers in expected.items() if self._reports[host].contents != numbers.tobytes()
        ]


def _summed(tables: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(table[name] for table in tables) for name in tables[0]}


def _largest(tables: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the largest value of any host."""
    return {name: max(table[name] for table in tables) for name in tables[0]}
