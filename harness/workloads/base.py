"""Base of workloads: initial flows, and flows that start when others are done."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from host_agents.assignments import Assignment
from host_agents.config import MAX_INCAST
from p4switch.errors import UserError, validate
from p4switch.numbers import integral
from p4switch.registry import Registry
from p4switch.tables import Table
from topologies import Topology
from topologies.collectives import CollectiveGroup, trees
from topologies.groups import MAX_GROUPS

if TYPE_CHECKING:
    from harness.workloads.collective_record import CollectiveReport

MAX_SIZE_BYTES = 2**40
MAX_TIME_NS = 2**61
ENDLESS_BYTES = 2**39  # size of a flow that runs to the end or is stopped: over ten seconds at 100 Gb/s
Size = Annotated[int, BeforeValidator(integral), Field(ge=1, lt=MAX_SIZE_BYTES)]
Time = Annotated[int, BeforeValidator(integral), Field(ge=0, lt=MAX_TIME_NS)]

Role = Literal["attacker", "victim"]

NONE = "none"  # the workload of a scenario that has only flows of groups

MAX_FLOWS = 2_000_000  # largest number of flows at the start of a run; a flow takes some 500 bytes


@dataclass(slots=True)
class Flow:
    """One message.

    `source` and `destination` are host indices. Flows with the same `qp` name share a queue pair,
    in order.

    A flow with `stop_ns` sends until that time. Before it ends, `size_bytes` is an upper bound;
    afterwards it is the number of bytes sent. A flow with further destinations is a multicast. It
    ends when each destination has all of it. A flow with further sources is a reduction, and each
    source sends all of it. Under an attack (`harness/workloads/attack.py`) the world gets pieces of
    flows. Each piece is a flow that refers to the flow it belongs to.
    """

    source: int
    destination: int
    size_bytes: int
    start_ns: int
    group: str = ""
    qp: str | None = None
    stop_ns: int | None = None
    index: int = -1  # number from 0, set when the world gets the flow
    # Number and senders of an announced incast that the flow is a part of.
    incast: tuple[int, tuple[int, ...]] | None = None
    priority: int | None = None  # class of its queue pair's data; None: the scenario's
    further_sources: tuple[int, ...] = ()
    further_destinations: tuple[int, ...] = ()
    role: Role | None = None  # set if the scenario distinguishes attackers and victims
    whole: Flow | None = None  # the flow that this one is a piece of
    origin: Flow | None = None  # the same flow with the host numbers of its group's workload
    pieces: int = 1  # number of pieces of this flow
    part: str = ""  # the scenario's group that it belongs to; "": the scenario's own workload
    operation: int = -1  # operation of a schedule that it carries out

    def __copy__(self) -> Flow:
        """Return a copy.

        This takes a tenth of the default's time, and an attack copies each of a workload's flows.
        """
        twin = object.__new__(type(self))
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin

    def __reduce__(self) -> tuple[type[Flow], tuple[Any, ...]]:
        """Return all fields by position, which takes a third of the default's time."""
        return Flow, _fields(self)

    @property
    def number(self) -> int:
        """Number of the flow, from 0, in the order of generation; a piece has the number of its flow."""
        return self.index if self.whole is None else self.whole.index

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source, *self.further_sources)

    @property
    def destinations(self) -> tuple[int, ...]:
        return (self.destination, *self.further_destinations)


FlowFields = Sequence[Sequence[Any]]
"""Values of each field of some flows, in the order of the fields."""

_fields = attrgetter(*Flow.__slots__)


def fields_of(flows: Iterable[Flow]) -> FlowFields:
    """Return the fields of flows, which take less time to pickle than an object for each flow."""
    return list(zip(*map(_fields, flows), strict=True))


def flows_of(fields: FlowFields) -> list[Flow]:
    """Return flows with these fields."""
    return list(map(Flow, *fields)) if fields else []


class Traffic:
    """Flows of one run.

    The base class is a fixed list; a subclass adds flows after others are done. `assignments` are
    the collectives of hosts, by host. `failed_links` are down from the beginning; they are named by
    the nodes at their ends. Traffic files of other simulators may declare such links.
    """

    failed_links: Sequence[tuple[str, str]] = ()

    def __init__(self, flows: Sequence[Flow], assignments: Mapping[int, Assignment] | None = None) -> None:
        self.flows = flows
        self.assignments = dict(assignments or {})

    @property
    def follows_deliveries(self) -> bool:
        """True if flows may start because other flows are delivered."""
        return type(self).on_delivered is not Traffic.on_delivered

    @property
    def follows_completions(self) -> bool:
        """True if flows may start because other flows are acknowledged."""
        return type(self).on_completed is not Traffic.on_completed

    @property
    def independent(self) -> bool:
        """True if hosts interact through frames only, so that events at a host start no flow at another one."""
        return not self.follows_deliveries and not self.follows_completions

    @property
    def local(self) -> bool:
        """True if events at a host start flows at that host only, which depend on its own events only.

        Then `on_delivered` returns flows from the destination, and `on_completed` returns flows
        from the source. With several workers, each worker processes the events of its own hosts,
        and gets copies of other workers' flows. So this traffic has to recognize flows by their
        fields. For the summary, `part` returns one worker's state and `join` adds it.
        """
        return self.independent

    @property
    def flow_bytes(self) -> int | None:
        """Bytes that the senders of all flows send, including later flows; None if unknown before the run.

        It is read before the first flow is done.
        """
        return _sent_bytes(self.flows) if self.independent else None

    def on_delivered(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        """Return the flows that start, not before `now_ns`, after every receiver has all of `flow`."""
        return ()

    def on_completed(self, flow: Flow, now_ns: int) -> Iterable[Flow]:
        """Return the flows that start after every sender has the acknowledgement of all of `flow`."""
        return ()

    def on_end(self, reports: Mapping[int, CollectiveReport]) -> None:
        """Handle the end of the run with the report of each host that has an assignment."""

    def part(self, owns: Callable[[int], bool]) -> object:
        """Return the state that the summary needs from one worker's hosts, which `owns` selects by index.

        The state can be pickled.
        """
        if self.independent:
            return None
        raise NotImplementedError(f"{type(self).__name__} is local, but does not define part and join")

    def join(self, part: Any) -> None:
        """Add another worker's part."""

    def summary(self) -> dict[str, Any]:
        """Return the workload's measurements beyond flows, after the run.

        A run fails if there is a list of `mistakes` with wrong results.
        """
        return {}


def _sent_bytes(flows: Iterable[Flow]) -> int | None:
    """Return the total bytes that flows send; None if a flow ends at a given time."""
    total = 0
    for flow in flows:
        if flow.stop_ns is not None:
            return None
        total += flow.size_bytes * len(flow.sources)
    return total


@dataclass(frozen=True)
class Setting:
    """Context of a workload: network, random numbers of its own, and the base folder of relative paths."""

    topology: Topology
    rng: random.Random
    folder: Path

    @property
    def hosts(self) -> int:
        return len(self.topology.hosts)


class WorkloadParameters(Table):
    """Parameters of a workload; a subclass adds its own."""

    @abstractmethod
    def generate(self, setting: Setting) -> Traffic: ...

    def groups(self, setting: Setting) -> Sequence[tuple[int, tuple[int, ...]]]:
        """Return the source and destinations of every flow with several of them, for the switches' entries."""
        return ()

    def collectives(self, setting: Setting) -> Sequence[CollectiveGroup]:
        """Return the groups whose operations the switches replicate and combine, with their numbers."""
        return ()


class TimedParameters(WorkloadParameters):
    """Parameters of a workload whose flows start at times given by the scenario or a file."""

    start_at_zero: bool = False  # shift all start times so that the first flow starts at 0


def _moved_to_zero(traffic: Traffic) -> None:
    first_ns = min((flow.start_ns for flow in traffic.flows), default=0)
    for flow in traffic.flows:
        flow.start_ns -= first_ns
        if flow.stop_ns is not None:
            flow.stop_ns -= first_ns


REGISTRY: Registry[type[WorkloadParameters]] = Registry(
    "workload", group="p4cc.workloads", package="harness.workloads", base=WorkloadParameters
)
register = REGISTRY.register
names = REGISTRY.names
parameters = REGISTRY.find


def build(
    name: str, values: Mapping[str, Any], topology: Topology, seed: int, folder: Path, group: str = ""
) -> Traffic:
    """Return the traffic of one run, which depends only on the workload, the network and the seed.

    Raises UserError for invalid keys or values, and for traffic without flows.

    The traffic of a `group` of the scenario has random numbers of its own. Only workload `none` may
    have no flows.
    """
    model = validate(parameters(name), values, f"groups.{group}.workload" if group else "workload")
    rng = random.Random(f"workload {seed} {group}" if group else f"workload {seed}")
    traffic = model.generate(Setting(topology, rng, folder))
    if not traffic.flows and not traffic.assignments and name != NONE:
        raise UserError(f"workload {name!r} has no flows")
    if isinstance(model, TimedParameters) and model.start_at_zero:
        _moved_to_zero(traffic)
    return traffic


def groups(
    name: str, values: Mapping[str, Any], topology: Topology, seed: int, folder: Path
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the distinct multicast groups of the same traffic.

    Raises UserError if there are more than a network can have.
    """
    model = validate(parameters(name), values, "workload")
    wanted = list(dict.fromkeys(model.groups(Setting(topology, random.Random(f"workload {seed}"), folder))))
    if len(wanted) > MAX_GROUPS:
        raise UserError(f"workload {name!r} needs {len(wanted)} multicast groups; expected at most {MAX_GROUPS}")
    return wanted


def collectives(
    name: str, values: Mapping[str, Any], topology: Topology, seed: int, folder: Path
) -> list[CollectiveGroup]:
    """Return the groups of the same traffic's collectives.

    Raises UserError for groups that this network cannot serve.
    """
    model = validate(parameters(name), values, "workload")
    wanted = list(model.collectives(Setting(topology, random.Random(f"workload {seed}"), folder)))
    numbers = [group.number for group in wanted]
    for group in wanted:
        group.check(topology)
        trees(topology, group)
        if numbers.count(group.number) > 1:
            raise UserError(f"workload.groups: number {group.number} is given twice; expected one for each group")
    return wanted


def expect_flows(key: str, count: int) -> None:
    """Raise UserError if a workload would make too many flows for the memory."""
    if count > MAX_FLOWS:
        raise UserError(f"workload.{key}: makes about {count:.2g} flows; expected at most {MAX_FLOWS}")


def expect_incast(key: str, senders: int) -> None:
    """Raise UserError if an incast has more senders than an announcement can name."""
    if senders > MAX_INCAST:
        raise UserError(f"workload.{key}: an incast of {senders} senders; expected at most {MAX_INCAST}")


def expect_hosts(key: str, wanted: int, setting: Setting) -> None:
    """Raise UserError if the network has fewer hosts than the workload needs."""
    if wanted > setting.hosts:
        raise UserError(f"workload.{key}: needs {wanted} hosts; topology {setting.topology.name!r} has {setting.hosts}")
