"""From scenarios to runs: each combination of protocol, load balancer and seed, checked before any of them starts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

import topologies
from harness import workloads
from harness.control import load_balancing as switch_load_balancing
from harness.control import programs
from harness.control.controller import Settings, switch_view
from harness.control.lanes import circle
from harness.control.load_balancing import LoadBalancer
from harness.control.pipelines import LOSS, Build
from harness.control.programs import Program, ProgramParameters
from harness.measure import probes
from harness.measure.flow_record import COLUMNS, COUNTS_PREFIX, column_of
from harness.measure.probes import CounterProbe, Probe, ProgramProbe
from harness.measure.probes.reaction_point import expect_number
from harness.plan import needs
from harness.plan.references import loaded
from harness.plan.scenario import LinkEvent, Scenario, Variant, check, merge, sound_part
from harness.workloads.attack import Attack, attacked
from harness.workloads.base import TimedParameters
from host_agents import registry
from host_agents.assignments import Assignment
from host_agents.config import SCOPE_PAIR, SCOPE_QP, NicConfig
from host_agents.errors import HostError
from host_agents.registry import LoadBalancing, Protocol
from p4switch import extensions
from p4switch.errors import Mistakes, UserError, raised_at, suggest, validate
from p4switch.quantities import doubts
from p4switch.tables import as_written
from topologies import Host, Topology
from topologies.collectives import CollectiveGroup
from topologies.collectives import trees as collective_trees
from topologies.groups import Group
from topologies.model import Neighbour
from topologies.path_ids import path_ids

_T = TypeVar("_T")
_MAX_LABEL_BYTES = 200
_MAX_RTT_NS = 10**12

# Bytes of a packet beyond its payload, Ethernet to ICRC; and a whole ACK without telemetry.
HEADER_BYTES = 58
ACK_BYTES = 62
_COLLECTIVE_BYTES = 138  # of a packet of collectives: half have lanes (202 bytes), half have not (74)
# Columns of flows that worlds fill.
LATENCY = "max_latency_ns"
LINKS = "mean_links"
SHORTEST_LINKS = "shortest_links"
FILLED = (LATENCY, LINKS, SHORTEST_LINKS)
DEFAULT_LIMIT_NS = 1_000_000_000  # of a scenario that wishes for none: more than any run should take


@dataclass(frozen=True)
class LinkChange:
    """At `time_ns` link number `link` of the topology goes up or down, or gets another rate in both directions."""

    time_ns: int
    link: int
    up: bool | None
    rate_bps: int | None


@dataclass(frozen=True)
class Run:
    """One run, resolved: everything a world needs.

    `scenario` has one protocol, one load balancer and one seed, and of its variant, whose keys are set, the name.
    """

    name: str  # of the scenario
    scenario: Scenario
    folder: Path  # where the scenario's relative paths start
    topology: Topology
    protocol: Protocol
    load_balancing: LoadBalancing
    program: Program
    program_parameters: ProgramParameters
    switch_load_balancer: LoadBalancer
    names: tuple[str, ...]  # what distinguishes this run from others of the same scenario, but for the seed
    columns: tuple[str, ...] = ()  # those further ones of flows that this run can fill
    probes: tuple[Probe, ...] = ()  # those of the scenario's that this run has something for

    @property
    def point_columns(self) -> tuple[str, ...]:
        """Those that senders fill, of reaction points and queue pairs."""
        return tuple(name for name in self.columns if name not in FILLED)

    @property
    def seed(self) -> int:
        return self.scenario.seeds[0]

    @property
    def limit_ns(self) -> int:
        """When the run ends at the latest."""
        return self.scenario.limit_ns or DEFAULT_LIMIT_NS

    @property
    def variant(self) -> str:
        """What distinguishes this run from others of the same scenario, but for the seed."""
        return ", ".join(self.names)

    @property
    def label(self) -> str:
        """A name for the run's folder."""
        parts = [self.name, *(re.sub(r"[^\w+.-]+", "-", name) for name in self.names), f"seed{self.seed}"]
        return "-".join(parts)

    @property
    def data_bytes(self) -> int:
        """A full data packet as it leaves the host."""
        payload = self.scenario.nic.mtu_bytes
        return HEADER_BYTES + payload + (-payload & 3) + (2 if self.protocol.info.telemetry else 0)

    @cached_property
    def packet_bytes(self) -> int:
        """A packet of most of what links carry: a full data packet, or the mean one of collectives."""
        return _COLLECTIVE_BYTES if self.traffic().assignments else self.data_bytes

    @cached_property
    def build(self) -> Build:
        """What the switches run. Raises UserError."""
        from wireformats import p4 as packet_includes  # stands on compiled modules

        given = {name: str(value) for name, value in self.scenario.switch.defines.items()}
        defines = {**self.program_parameters.defines(), **({"MULTICAST": "1"} if self.groups else {}), **given}
        if loss_ppm := round(self.scenario.switch.loss * 1e6):
            defines[LOSS] = str(loss_ppm)
        kind = registry.KINDS["cc"]
        outside = [name for file in self.scenario.extensions for name in kind.names_from(file)]
        opcodes = [*(registry.resolve(name).opcodes for name in outside), self.protocol.opcodes]
        folders = packet_includes.include_path(*opcodes)
        return Build.of(self.program.source, self.switch_load_balancer, defines, folders)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The multicast groups that the workload's flows go to. Raises UserError."""
        name, values = named("workload", self.scenario.workload)
        wanted = workloads.groups(name, values, self.topology, self.seed, self.folder)
        return tuple(Group(number, source, members) for number, (source, members) in enumerate(wanted, start=1))

    @cached_property
    def collectives(self) -> tuple[CollectiveGroup, ...]:
        """The groups whose operations the switches replicate and combine. Raises UserError."""
        name, values = named("workload", self.scenario.workload)
        return tuple(workloads.collectives(name, values, self.topology, self.seed, self.folder))

    @cached_property
    def _group_of(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Group]:
        return {((group.source,), group.members): group for group in self.groups}

    @cached_property
    def _host_addresses(self) -> list[str]:
        return [str(host.address) for host in self.topology.hosts]

    def addresses(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> tuple[str, str]:
        """Where frames of a flow between these hosts come from, and where they go to. Raises UserError."""
        if len(sources) == len(destinations) == 1:
            return self._host_addresses[sources[0]], self._host_addresses[destinations[0]]
        group = self._group_of.get((sources, destinations))
        if group is None:
            raise UserError(
                f"workload: a flow from {len(sources)} to {len(destinations)} hosts, "
                "which is none of the groups that it declares; expected flows from one host"
            )
        return self._host_addresses[group.source], str(group.address)

    @property
    def per_packet(self) -> bool:
        """Packets of one flow take several paths: by the hosts' choice, or by the switches'."""
        return self.load_balancing.info.per_packet or self.switch_load_balancer.per_packet

    @property
    def reliability(self) -> str:
        """How what is lost is sent again: as the scenario says, or as suits the load balancers and the protocol."""
        return self.scenario.nic.reliability or self.protocol.usual_reliability(self.per_packet)

    @property
    def cc_scope(self) -> str:
        """Who shares a reaction point. Raises UserError."""
        return _host(lambda: self.protocol.scope(self.scenario.nic.cc_scope))

    def base_rtt_ns(self) -> int:
        """The largest base RTT of the network: a full packet there, its ACK back, nothing queued."""
        return max(self.base_rtts_ns)

    @cached_property
    def base_rtts_ns(self) -> tuple[int, ...]:
        """The largest base RTT of the paths through so many switches, from 0; 0: there are none."""
        charged = self.scenario.link_bytes
        by_hops = topologies.routing.base_rtts_ns(
            self.topology, charged(self.data_bytes), charged(ACK_BYTES), self.scenario.switch.latency_ns
        )
        return tuple(by_hops.get(hops, 0) for hops in range(max(by_hops) + 1))

    @property
    def rto_ns(self) -> int:
        """The retransmission time-out."""
        nic = self.scenario.nic
        return nic.rto_ns if nic.rto_base_rtts is None else round(nic.rto_base_rtts * self.base_rtt_ns())

    @property
    def loss_packets(self) -> int:
        """After how many later packets a missing one is lost; 0 where packets overtake each other on several paths."""
        given = self.scenario.nic.loss_packets
        if given is not None:
            return given
        return 0 if self.per_packet else 3

    def nic_configs(self) -> list[NicConfig]:
        """What each host's NIC is told, in order of the hosts."""
        first, *others = self.topology.hosts
        config = self.nic_config(first)
        return [
            config,
            *(
                replace(config, address=str(host.address), line_rate_bps=self.topology.uplink(host).rate_bps)
                for host in others
            ),
        ]

    def nic_config(self, host: Host) -> NicConfig:
        """What the NIC of one host is told."""
        scenario, settings = self.scenario, self.scenario.nic
        return NicConfig(
            address=str(host.address),
            line_rate_bps=self.topology.uplink(host).rate_bps,
            base_rtt_ns=self.base_rtt_ns(),
            base_rtts_ns=self.base_rtts_ns,
            mtu_bytes=settings.mtu_bytes,
            data_priority=settings.data_priority,
            control_priority=settings.control_priority,
            pfc=scenario.switch.pfc.enabled,
            reliability=self.reliability,
            cc_scope=self.cc_scope,
            ack_every_packets=settings.ack_every_packets,
            rto_ns=self.rto_ns,
            retry_count=settings.retry_count,
            loss_packets=self.loss_packets,
            cell_bytes=scenario.switch.cell_bytes,
            stamps=LATENCY in self.columns,
            seed=self.seed,
            check_icrc=settings.check_icrc,
            frame_overhead_bytes=scenario.framing_bytes,
            nics=tuple(int(host.address) for host in self.topology.hosts),  # a host's index is its NIC's id
        )

    @property
    def lossless_priorities(self) -> tuple[int, ...]:
        """The priorities that PFC pauses."""
        given = self.scenario.switch.pfc.priorities or (self.scenario.nic.data_priority,)
        return tuple(dict.fromkeys((*given, *self.protocol.priorities)))

    def headroom_bytes(self, switch: str, there: Neighbour) -> int:
        """What a switch keeps free, for each lossless priority, for what a port may still receive after a pause.

        A frame counts as often as the switch may copy it, and with all its bytes, whatever links charge for it. It
        counts when it is enqueued, the switch's latency after its arrival.
        """
        settings = self.scenario.switch
        pfc = settings.pfc
        flight_ns = pfc.headroom_delays * there.delay_ns + settings.latency_ns + pfc.reaction_ns
        flight_bytes = int(flight_ns * there.rate_bps / 8e9 * self.scenario.largest_expansion)
        return (flight_bytes + pfc.headroom_frames * self.data_bytes) * self._copies.get(switch, 1)

    def xoff_bytes(self, switch: str, there: Neighbour) -> int | None:
        """What a port may hold of a lossless priority before it is paused; None: a share of what is free."""
        settings = self.scenario.switch
        if settings.ingress_bytes is None:
            return settings.pfc.xoff_bytes if settings.pfc.enabled else None
        return settings.ingress_bytes - (self.headroom_bytes(switch, there) if settings.pfc.enabled else 0)

    @cached_property
    def _copies(self) -> dict[str, int]:
        """By switch, what the largest of its multicast groups makes of a frame."""
        found: dict[str, int] = {}
        trees = [group.tree(self.topology) for group in self.groups]
        trees += [tree for group in self.collectives for tree in collective_trees(self.topology, group)]
        for tree in trees:
            for node, ports in tree.down.items():
                found[node] = max(len(ports), found.get(node, 1))
        return found

    def link_changes(self) -> list[LinkChange]:
        """What happens to links during the run, in the scenario's order. Raises UserError for a link there is not."""
        return link_changes(self.topology, self.scenario.events)

    @cached_property
    def attack(self) -> Attack | None:
        """Who attacks, and how. What the scenario leaves open is what hurts most: pieces of one BDP, an RTT apart, so
        that each is sent before there can be word of congestion (3.5.2). Raises UserError.
        """
        table = self.scenario.attack
        if table is None:
            return None
        known = self.topology.hosts
        hosts = range(len(known)) if table.hosts is None else table.hosts
        for host in hosts:
            if host >= len(known):
                raise UserError(
                    f"attack.hosts: no host {host}; topology {self.topology.name!r} has hosts 0 to {len(known) - 1}"
                )
        if not hosts:
            raise UserError("attack.hosts: names nobody; expected at least one host, or no list for all of them")
        rtt_ns = self.base_rtt_ns()
        piece_bytes = table.piece_bytes
        if piece_bytes is None and table.pieces is None:
            slowest_bps = min(self.topology.uplink(known[host]).rate_bps for host in hosts)
            piece_bytes = max(1, slowest_bps * rtt_ns // 8_000_000_000)
        over_bytes = table.over_bytes or (1 if piece_bytes is None else piece_bytes + 1)
        if piece_bytes is not None and piece_bytes >= over_bytes:
            raise UserError(f"attack.piece_bytes: should be less than over_bytes, {over_bytes}, got {piece_bytes}")
        return Attack(table.kind, frozenset(hosts), over_bytes, piece_bytes, table.pieces, table.gap_ns or rtt_ns)

    def traffic(self) -> workloads.Traffic:
        """The run's flows, made anew. Raises UserError, also where one has ends that the network cannot serve."""
        name, values = named("workload", self.scenario.workload)
        traffic = workloads.build(name, values, self.topology, self.seed, self.folder)
        several = (flow for flow in traffic.flows if flow.further_sources or flow.further_destinations)
        for ends in {(flow.sources, flow.destinations) for flow in several}:
            self.addresses(*ends)
        return traffic if self.attack is None else attacked(traffic, self.attack)


def link_changes(topology: Topology, events: Sequence[LinkEvent]) -> list[LinkChange]:
    """What a scenario's events do to a network's links. Raises UserError for a link there is not."""
    return [_link_change(topology, i, event) for i, event in enumerate(events)]


def _link_change(topology: Topology, index: int, event: LinkEvent) -> LinkChange:
    a, b = event.link
    found = [i for i, link in enumerate(topology.links) if {link.a, link.b} == {a, b}]
    if event.parallel >= len(found):
        raise UserError(
            f"events.{index}: there is no link {a} - {b} with number {event.parallel} in topology "
            f"{topology.name!r}, which has {len(found)} between them"
        )
    number = found[event.parallel]
    rate_bps = topology.links[number].rate_bps
    rate = None if event.rate_fraction is None else max(1, round(event.rate_fraction * rate_bps))
    return LinkChange(event.time_ns, number, event.up, rate)


def named(key: str, table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Splits a table into its `name` and the rest. Raises UserError."""
    values = dict(table)
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"{key}.name: missing; it must be given")
    return name, values


@dataclass(frozen=True)
class Posted:
    """What a plan has to know of a traffic."""

    assignments: Mapping[int, Assignment]
    priorities: frozenset[int]  # that flows have of their own
    failed: tuple[LinkEvent, ...]  # of links that its file has down
    first_start_ns: int  # of what is known to start

    @classmethod
    def of(cls, traffic: workloads.Traffic) -> Posted:
        own = frozenset(flow.priority for flow in traffic.flows if flow.priority is not None)
        failed = tuple(LinkEvent(link=[a, b], up=False) for a, b in traffic.failed_links)
        starts_ns = [flow.start_ns for flow in traffic.flows]
        starts_ns += [assignment.start_ns for assignment in traffic.assignments.values()]
        return cls(traffic.assignments, own, failed, min(starts_ns))


def plan_tables(
    name: str, tables: Mapping[str, Any], folder: Path, posted: dict[str, Posted] | None = None
) -> list[Run]:
    """The runs of the scenario that a file's tables make; `posted` as in `plan`.

    Raises UserError, which tells all that is wrong in them.
    """
    mistakes = Mistakes()
    scenario = sound_part(tables, mistakes)
    if mistakes and scenario is not None:
        checked(scenario, folder, mistakes)
    mistakes.tell()
    assert scenario is not None
    return plan(name, scenario, folder, posted)


def plan(name: str, scenario: Scenario, folder: Path, posted: dict[str, Posted] | None = None) -> list[Run]:
    """The runs of one scenario. Raises UserError for whatever could not be run.

    `posted`: of scenarios of one folder that are planned together. Many share a traffic, and some take seconds to make.
    """
    if len({variant.name for variant in scenario.variants}) < len(scenario.variants):
        raise UserError("variants: should have different names")
    built: dict[str, Topology] = {}
    posted = {} if posted is None else posted  # by traffic, which variants share, too
    runs: list[Run] = []
    for variant in scenario.variants or [Variant(name="")]:
        tables = {key: value for key, value in scenario.model_dump(exclude_unset=True).items() if key != "variants"}
        mistakes = Mistakes()
        varied = checked(check(merge(tables, variant.set)), folder, mistakes)
        mistakes.tell()
        topology_name, values = named("topology", varied.topology)
        key = repr(varied.topology)
        if key not in built:
            built[key] = topologies.build(topology_name, values)
            _check_joined(built[key])
        topology = built[key]
        combined = list(itertools.product(_distinct(varied.cc), _distinct(varied.lb), _distinct(varied.seeds)))
        several = len(varied.cc) > 1 or len(varied.lb) > 1
        for cc, lb, seed in combined:
            names = [cc, *([] if lb == "ecmp" else [lb])] if several or not variant.name else []
            own = (*names, variant.name) if variant.name else tuple(names)
            only = {
                "cc": [cc],
                "lb": [lb],
                "seeds": [seed],
                "variants": [Variant(name=", ".join(own))] if variant.name else [],
            }
            runs.append(_resolve(name, varied.model_copy(update=only), folder, topology, own))
        first = runs[-len(combined)]
        if len(first.label.encode()) > _MAX_LABEL_BYTES:
            raise UserError(f"{first.label[:40]}...: should be a folder's name, of at most {_MAX_LABEL_BYTES} bytes")
        _check_nics(first)
        _check_routes(first)
        key = repr((varied.topology, varied.workload, first.attack, first.seed))
        if key not in posted:
            posted[key] = Posted.of(first.traffic())
        if failed := [event for event in posted[key].failed if event not in varied.events]:
            events = {"events": [*failed, *varied.events]}
            runs[-len(combined) :] = [
                replace(run, scenario=run.scenario.model_copy(update=events)) for run in runs[-len(combined) :]
            ]
            first = runs[-len(combined)]
        rates_bps = sorted({link.rate_bps for link in topology.links})
        for run in runs[-len(combined) :]:
            _check_link_rates(run, rates_bps)
            _check_time_outs(run)
            _check_classes(run, posted[key].priorities)
            _check_work(run, bool(posted[key].assignments))
            _check_starts(run, posted[key].first_start_ns)
        _check_collectives(first, posted[key].assignments)
        first.link_changes()
        _check_buffers(first)
    return _with_columns(_with_probes(runs))


def _with_probes(runs: Sequence[Run]) -> list[Run]:
    """Each run with the probes that it has something for. Raises UserError for one that no run has anything for."""
    missing: dict[str, UserError] = {}
    found: set[str] = set()
    made = []
    for run in runs:
        possible = []
        for probe in _wanted(run):
            try:
                probe.check(run)
            except UserError as error:
                missing.setdefault(probe.name, error)
            else:
                found.add(probe.name)
                possible.append(probe)
        made.append(replace(run, probes=tuple(possible)))
    for name, mistake in missing.items():
        if name not in found:
            raise UserError(f"record.probes: {name!r}: {mistake}")
    return made


def _with_columns(runs: Sequence[Run]) -> list[Run]:
    """Each run with the columns that it can fill. Raises UserError for one that no run can."""
    made = []
    missing: dict[str, UserError] = {}
    found: set[str] = set()
    for run in runs:
        possible: list[str] = []
        taken = dict.fromkeys(COLUMNS, "")
        for name in _distinct(run.scenario.record.columns):
            other = taken.setdefault(column_of(name), name)
            if other != name:
                holder = f"what {other!r} is put into" if other else "one that `flows` has anyway"
                raise UserError(f"record.columns: {name!r} would be the column {column_of(name)!r}, {holder}")
            try:
                if name.startswith(COUNTS_PREFIX):
                    _expect_count(name)
                elif name not in FILLED:
                    expect_number(run, name)
            except UserError as error:
                missing.setdefault(name, error)
            else:
                found.add(name)
                possible.append(name)
        made.append(replace(run, columns=tuple(possible)) if possible else run)
    for name, mistake in missing.items():
        if name not in found:
            raise UserError(f"record.columns: {mistake}")
    return made


def _expect_count(column: str) -> None:
    """Raises UserError if queue pairs keep no such count."""
    from host_agents.messages import QP_COUNTS  # here: the compiled hosts have to be in place before it is imported

    name = column.removeprefix(COUNTS_PREFIX)
    if name not in QP_COUNTS:
        raise UserError(f"no queue pair counts {name!r}; {suggest(name, QP_COUNTS)}")


def _wanted(run: Run) -> list[Probe]:
    """The scenario's probes; and what a program from outside keeps, at the end, unless there is a probe of that."""
    wanted = probes.parse(run.scenario.record.probes)
    if run.program.outside and not any(isinstance(probe, ProgramProbe) for probe in wanted):
        wanted.append(ProgramProbe(kind="program"))
    taken = {probe.name for probe in wanted}
    ports = sorted({port for switch in run.topology.switches for port in run.topology.ports[switch.name]})
    wanted += [
        CounterProbe(kind="counter", reads=name, name=name, indices=ports)
        for name in run.program_parameters.port_counters
        if name not in taken
    ]
    return wanted


def checked(scenario: Scenario, folder: Path, mistakes: Mistakes) -> Scenario:
    """The scenario with names for its references. Every name in it has to be known, and every parameter right, also in
    tables of what does not run; the `mistakes` are told of all that is not.
    """

    def is_file(name: object) -> bool:
        """Of a file that could not be loaded, which is told; one that could has become a name."""
        return isinstance(name, str) and extensions.reference(name, folder) is not None

    found = mistakes.attempt(lambda: loaded(scenario, folder)) or scenario
    for key, of_named in (("topology", topologies.parameters), ("workload", workloads.parameters)):
        if not is_file(getattr(found, key).get("name")):
            mistakes.attempt(partial(_check_table, key, getattr(found, key), of_named))
    for cc in dict.fromkeys((*found.cc, *found.protocols)):
        if not is_file(cc):
            mistakes.attempt(partial(_protocol, found, cc))
    for lb in dict.fromkeys((*found.lb, *found.load_balancers)):
        if not is_file(lb):
            mistakes.attempt(partial(_load_balancing, found, lb))
    own = mistakes.attempt(partial(programs.program, found.program)) if found.program else None
    for name, values in found.programs.items():
        mistakes.attempt(partial(_check_program, own, name, values))
    return found


def _check_table(key: str, table: Mapping[str, Any], of_named: Callable[[str], type[BaseModel]]) -> None:
    name, values = named(key, table)
    validate(of_named(name), values, key)


def _check_program(own: Program | None, name: str, values: Mapping[str, Any]) -> None:
    program = own if own is not None and own.name == name else programs.program(name)
    program.checked(values, f"programs.{name}")


def _protocol(scenario: Scenario, name: str) -> Protocol:
    registry.KINDS["cc"].find(name.partition("+")[0])
    return _host(lambda: registry.resolve(name, scenario.protocols.get(name)))


def _load_balancing(scenario: Scenario, name: str) -> LoadBalancing:
    registry.KINDS["lb"].find(name)
    return _host(lambda: registry.resolve_load_balancer(name, scenario.load_balancers.get(name)))


def _check_link_rates(run: Run, rates_bps: Sequence[int]) -> None:
    """Whether the program can do with them; of one that is hardly meant, says what was. Raises UserError."""
    try:
        for rate_bps in rates_bps:
            run.program_parameters.check_link_rate(rate_bps)
    except UserError as error:
        raise UserError("; ".join([str(error), *doubts({"topology": run.scenario.topology})])) from None


def _check_time_outs(run: Run) -> None:
    """A switch forgets nothing that a sender may still count on. Raises UserError."""
    parameters = run.program_parameters
    key = "nic.rto_ns" if run.scenario.nic.rto_base_rtts is None else "nic.rto_base_rtts"
    for name in parameters.outlast_rto:
        timeout_ns = getattr(parameters, name)
        if 0 < timeout_ns < run.rto_ns:
            raise UserError(
                f"programs.{run.program.name}.{name}: should be at least the {run.rto_ns} ns of {key}, or 0 for never, "
                f"got {timeout_ns}"
            )


def _check_joined(topology: Topology) -> None:
    """Base RTTs, and the windows and time-outs that follow from them, are of all pairs of hosts. Raises UserError."""
    apart = topologies.routing.apart(topology)
    if apart is not None:
        first, second = apart
        raise UserError(
            f"topology {topology.name!r}: no path from {first.name} to {second.name}; "
            "expected a network that joins all hosts (events can take a link down later)"
        )


def _check_nics(run: Run) -> None:
    """What the scenario's values come to must be what a NIC can hold. Raises UserError."""
    rtt_ns = run.base_rtt_ns()
    if rtt_ns > _MAX_RTT_NS:
        raise UserError(
            f"topology: a base RTT of {rtt_ns / 1e9:,.0f} s, expected at most {_MAX_RTT_NS // 10**9} s: "
            "links are too slow or too long, or switch.latency_ns too large"
        )
    alike = {run.topology.uplink(host).rate_bps: host for host in run.topology.hosts}
    try:
        for host in alike.values():
            run.nic_config(host)
    except HostError as error:
        raise UserError(f"nic.{error}") from None


def _check_work(run: Run, collectives: bool) -> None:
    """Whether the run's program and protocol are for what the workload has: collectives, or flows alone.

    Raises UserError.
    """
    in_protocol = run.protocol.info.injection is not None
    if not collectives:
        if in_protocol:
            name, _ = named("workload", run.scenario.workload)
            raise UserError(
                f"cc {run.protocol.name!r}: is for collectives, and workload {name!r} has none; "
                "expected a protocol for flows, or workload 'collectives'"
            )
        return
    if not run.program.does_the_work_of("collective"):
        raise UserError(f"program {run.program.name!r}: the workload has collectives; expected 'collective'")
    if not in_protocol:
        having = ", ".join(name for name, info in registry.protocols().items() if info.injection is not None)
        raise UserError(f"cc {run.protocol.name!r}: the workload has collectives; expected one of: {having}")


def _check_collectives(run: Run, assignments: Mapping[int, Assignment]) -> None:
    """Whether the switches can serve the workload's groups, in its classes. Raises UserError."""
    if not run.collectives:
        return
    in_program = run.program_parameters.model_dump().get("answer_priority")
    for assignment in assignments.values():
        in_workload = assignment.config.response_priority
        if in_program is not None and in_workload != in_program:
            raise UserError(
                f"workload.response_priority: should be programs.{run.program.name}.answer_priority, {in_program}, "
                f"got {in_workload}"
            )
    settings = Settings(collectives=run.collectives)
    for switch in run.topology.switches:
        run.program_parameters.entries(switch_view(run.topology, switch, settings))


def _check_routes(run: Run) -> None:
    """Lanes break the circles that turns from down to up make, not those of routes by themselves, nor those of
    deflections between switches of a tier, which are no turns. Raises UserError.
    """
    parameters = run.program_parameters
    if not parameters.equal_priorities or not run.scenario.switch.pfc.enabled:
        return
    found = _circle(run.topology, type(parameters), parameters.model_dump_json())
    if found:
        deflected = ", or deflected from them," * parameters.free_of_circles
        raise UserError(
            f"topology {run.topology.name!r}: packets on its routes{deflected} can wait for each other in a circle "
            f"({' - '.join(found[:6])}); {run.program.name!r} expects a network without"
        )


@lru_cache(maxsize=16)
def _circle(topology: Topology, model: type[ProgramParameters], values: str) -> tuple[str, ...]:
    """Switches whose packets can wait for each other, with the parameters that are `values` in JSON."""
    parameters = model.model_validate_json(values)
    entries = {
        switch.name: parameters.entries(switch_view(topology, switch, Settings())) for switch in topology.switches
    }
    return tuple(circle(topology, entries, parameters.equal_priorities, deflecting=parameters.free_of_circles))


def _check_buffers(run: Run) -> None:
    """PFC's headroom is taken off the shared buffer: something must be left. Raises UserError."""
    settings = run.scenario.switch
    if settings.pfc.xoff_bytes is not None and settings.ingress_bytes is not None:
        raise UserError("switch.pfc.xoff_bytes: given beside switch.ingress_bytes; expected one of them")
    if not settings.pfc.enabled:
        return
    if settings.buffer_bytes is None:
        raise UserError("switch.buffer_bytes: missing; PFC needs a shared buffer (or switch.pfc.enabled = false)")
    for switch in run.topology.switches:
        headrooms = [run.headroom_bytes(switch.name, there) for there in run.topology.ports[switch.name].values()]
        reserved_bytes = sum(headrooms) * len(set(run.lossless_priorities))
        if reserved_bytes >= settings.buffer_bytes:
            raise UserError(
                f"switch.buffer_bytes: should exceed the {reserved_bytes} bytes of headroom that PFC keeps in "
                f"{switch.name}, got {settings.buffer_bytes}"
            )
        if settings.ingress_bytes is not None and max(headrooms) >= settings.ingress_bytes:
            raise UserError(
                f"switch.ingress_bytes: should exceed the {max(headrooms)} bytes of headroom that PFC keeps for a port "
                f"of {switch.name}, got {settings.ingress_bytes}"
            )


def _distinct(values: Sequence[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


def _resolve(
    name: str,
    scenario: Scenario,
    folder: Path,
    topology: Topology,
    names: tuple[str, ...],
) -> Run:
    cc, lb = scenario.cc[0], scenario.lb[0]
    protocol = _protocol(scenario, cc)
    _host(lambda: protocol.scope(scenario.nic.cc_scope))
    load_balancing = _load_balancing(scenario, lb)
    program = programs.program(scenario.program or protocol.info.program)
    needed = protocol.info.program
    if not program.does_the_work_of(needed):
        fitting = [p for p in programs.names() if programs.program(p).does_the_work_of(needed)]
        raise UserError(
            f"program {program.name!r} does not fit protocol {cc!r}; expected {' or '.join(map(repr, fitting))}"
        )
    _check_telemetry(protocol)
    parameters = _program_parameters(scenario, program)
    if agreed := needs.agreement(scenario, protocol, program, parameters):
        scenario = needs.supplied(scenario, agreed)
        protocol, parameters = _protocol(scenario, cc), _program_parameters(scenario, program)
    _check_agreement(protocol, program, parameters)
    scenario = needs.supplied(scenario, needs.of_scenario(protocol, parameters, topology))
    scenario = needs.supplied(scenario, needs.without_limit(scenario))
    _check_lanes(scenario, program, parameters)
    balancer = switch_load_balancing.find(scenario.switch.load_balancing, folder)
    run = Run(name, scenario, folder, topology, protocol, load_balancing, program, parameters, balancer, names)
    _check_paths(run)
    _host(lambda: protocol.check_reliability(run.reliability))
    _check_priorities(run)
    _check_fit(run)
    return run


def _check_telemetry(protocol: Protocol) -> None:
    """Whether packets carry the shim that the protocol's program writes to, and have it written to. Raises UserError.

    Of a program from outside that does not say so nobody knows.
    """
    info = protocol.info
    needed = programs.program(info.program)
    writes = needed.parameters.telemetry
    which = registry.KINDS["cc"].described(info.name)
    if writes and not info.telemetry:
        raise UserError(
            f"{which}: program {needed.name!r} writes telemetry into the INT shim of data packets, and they have none; "
            "expected telemetry=True in its ProtocolInfo"
        )
    if info.telemetry and not writes and not needed.outside:
        raise UserError(
            f"{which}: telemetry=True, and program {needed.name!r} writes none; expected program='int' in its "
            "ProtocolInfo"
        )


def _program_parameters(scenario: Scenario, program: Program) -> ProgramParameters:
    return program.checked(scenario.programs.get(program.name, {}), f"programs.{program.name}")


def _check_lanes(scenario: Scenario, program: Program, parameters: ProgramParameters) -> None:
    """Whether hosts and switches are for a program's lanes. Raises UserError."""
    lanes = parameters.equal_priorities
    if not lanes:
        return
    key, nic, switch = f"programs.{program.name}.lane_priorities", scenario.nic, scenario.switch
    if lanes[0] != nic.data_priority:
        raise UserError(f"{key}: should begin with nic.data_priority, {nic.data_priority}, got {lanes[0]}")
    if nic.control_priority in lanes:
        raise UserError(f"{key}: {nic.control_priority} is nic.control_priority; expected priorities that are free")
    if switch.pfc.enabled and (lossy := sorted(set(lanes) - set(switch.pfc.priorities))):
        raise UserError(f"switch.pfc.priorities: should have all of {key}; {lossy[0]} is missing")
    if switch.classes != "oldest":
        raise UserError(f"switch.classes: should be 'oldest' for the lanes of {key}, got {switch.classes!r}")
    if not set(lanes) <= set(switch.equal_priorities):
        raise UserError(f"switch.equal_priorities: should have all of {key}, {list(lanes)}")


def _check_agreement(protocol: Protocol, program: Program, parameters: ProgramParameters) -> None:
    """What a protocol and a program say that the other must have, too. Raises UserError."""
    theirs, own = protocol.resolved(), parameters.model_dump()
    for key in dict.fromkeys((*protocol.info.agrees, *parameters.agrees)):
        in_protocol, in_program = f"protocols.{protocol.name}.{key}", f"programs.{program.name}.{key}"
        for wanted, there, of in ((in_protocol, theirs, in_program), (in_program, own, in_protocol)):
            if key not in there:
                raise UserError(f"{wanted}: there is no such parameter; {of} needs it, with the same value")
        if theirs[key] != own[key]:
            raise UserError(f"{in_protocol}: should be {in_program}, {own[key]}, got {theirs[key]}")


def _check_paths(run: Run) -> None:
    """Whether the protocol can do with the network's paths. Raises UserError."""
    info, balancer = run.protocol.info, run.switch_load_balancer
    if info.single_path and run.per_packet:
        by_hosts = run.load_balancing.info.per_packet
        key = f"lb {run.load_balancing.name!r}" if by_hosts else f"switch.load_balancing {balancer.name!r}"
        raise UserError(f"{key}: chooses by packets; cc {info.name!r} expects one that keeps a flow on its path")
    if info.telemetry and (run.per_packet or run.cc_scope != SCOPE_QP):
        shared = path_ids(run.topology).shared
        if shared is not None:
            raise UserError(
                f"topology {run.topology.name!r}: two paths from {shared[0]} to {shared[1]} may have the same id in "
                f"telemetry, by which cc {info.name!r} tells them apart; expected load balancing that keeps each flow "
                "on its path, and nic.cc_scope 'qp'"
            )
    if info.symmetric_paths and not balancer.symmetric and topologies.routing.has_choices(run.topology):
        raise UserError(
            f"switch.load_balancing: {balancer.name!r} sends what answers a packet over other links; cc {info.name!r} "
            "expects 'symmetric' on a network with several paths"
        )
    longest = len(run.base_rtts_ns) - 1
    if info.max_switches and longest > info.max_switches:
        raise UserError(f"cc {info.name!r}: a path over {longest} switches; expected at most {info.max_switches}")


def _check_priorities(run: Run) -> None:
    """Data that a protocol lets wait behind other data has a lower class. Raises UserError."""
    usual = run.scenario.nic.data_priority
    for priority in run.protocol.priorities:
        if priority >= usual:
            where = f"protocols.{run.protocol.name}"
            raise UserError(f"{where}: data in class {priority}; expected one below nic.data_priority, {usual}")


def _check_starts(run: Run, first_start_ns: int) -> None:
    """Something starts before the run ends. Raises UserError."""
    if first_start_ns >= run.limit_ns:
        name, values = named("workload", run.scenario.workload)
        timed = issubclass(workloads.parameters(name), TimedParameters) and not values.get("start_at_zero")
        help_ = ", or workload.start_at_zero = true" if timed else ""
        raise UserError(
            f"workload {name!r}: its first flow starts at {first_start_ns} ns; expected it before the run ends, at "
            f"limit_ns = {run.limit_ns}{help_}"
        )


def _check_classes(run: Run, priorities: frozenset[int]) -> None:
    """Queue pairs that share a limiter send in one class. Raises UserError."""
    usual = run.scenario.nic.data_priority
    if run.cc_scope == SCOPE_PAIR and (others := priorities - {usual}):
        name, _ = named("workload", run.scenario.workload)
        raise UserError(
            f"workload {name!r}: flows in class {min(others)}; expected nic.data_priority, {usual}: with nic.cc_scope "
            f"'pair', as cc {run.protocol.name!r} has it, the queue pairs between two hosts share a limiter"
        )


def _check_fit(run: Run) -> None:
    """What does not come with p4cc has to open a queue pair. Raises UserError."""
    cc, lb = run.protocol.info.name, run.load_balancing.name
    outside = [registry.KINDS[key].described(name) for key, name in registry.outside([cc], [lb])]
    if not outside:
        return
    from host_agents.nic import Nic  # here: the compiled hosts have to be in place before it is imported

    try:
        nic = Nic(run.nic_config(run.topology.hosts[0]), run.protocol, run.load_balancing)
        qp = nic.open_qp(str(run.topology.hosts[1].address), 2, 2)
    except Exception as error:
        raise UserError(f"{' or '.join(outside)} does not fit: {raised_at(error)}") from None
    for part in (qp.reaction_point, qp.notification_point, qp.load_balancer):
        _check_hooks(part, " or ".join(outside))


def _check_hooks(part: object, whose: str) -> None:
    """Whether a NIC calls each of its `on_...` methods: another one is misspelt, or of another kind of object.

    Raises UserError.
    """
    own = [cls for cls in type(part).__mro__ if not cls.__module__.startswith("host_agents.") and cls is not object]
    hooks = {name for cls in type(part).__mro__ if cls not in own for name in vars(cls) if name.startswith("on_")}
    for cls in own:
        for name, value in vars(cls).items():
            if name.startswith("on_") and callable(value) and name not in hooks:
                raise UserError(
                    f"{whose}: {cls.__name__}.{name} is none of the methods that a NIC calls; {suggest(name, hooks)}"
                )


def _host(resolve: Callable[[], _T]) -> _T:
    try:
        return resolve()
    except HostError as error:
        raise UserError(str(error)) from None


def resolved(run: Run) -> Scenario:
    """The run's scenario with the parameters of everything it names written out."""
    topology_name, _ = named("topology", run.scenario.topology)
    workload_name, values = named("workload", run.scenario.workload)
    workload = as_written(workloads.parameters(workload_name).model_validate(values))
    attack, given = run.attack, run.scenario.attack
    return run.scenario.model_copy(
        update={
            "program": str(run.program.source) if run.program.outside else run.program.name,
            "topology": {"name": topology_name, **run.topology.parameters},
            "workload": {"name": workload_name, **workload},
            "attack": given and attack and given.model_copy(update=attack.resolved()),
            "nic": run.scenario.nic.model_copy(update={"reliability": run.reliability, "cc_scope": run.cc_scope}),
            "record": run.scenario.record.model_copy(
                update={
                    "probes": [probe.model_dump(exclude_none=True) for probe in run.probes],
                    "columns": list(run.columns),
                }
            ),
            "protocols": {run.protocol.name: run.protocol.resolved()},
            "load_balancers": {run.load_balancing.name: _parameters(run.load_balancing.parameters)},
            "programs": {run.program.name: as_written(run.program_parameters)},
            "workers": None,  # no result hangs on it
        }
    )


def _parameters(parameters: object) -> dict[str, Any]:
    return dict(vars(parameters)) if hasattr(parameters, "__dict__") else {}
