"""One resolved run as frozen data, and values derived from it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import topologies
from control_plane.controller import Settings
from control_plane.pipelines import LOSS, Build, pipelines_in
from harness import workloads
from harness.columns.column import Column
from harness.columns.flows import MAX_LATENCY, all_columns
from harness.plan.host_errors import as_user_error
from harness.plan.probe_settings import ProbeSettings
from harness.plan.scenario import LinkEvent, Loopback, Scenario, TrafficGroup
from harness.plan.switch_programs import Pipe, Place, SwitchProgram, pipes_of
from harness.workloads.attack import Attack, attacked
from harness.workloads.mixed import Mixed, Part, as_servers, hosts_like, network_of
from host_agents import registry
from host_agents.config import NicConfig, Peers
from host_agents.registry import LoadBalancing, Protocol
from p4switch.errors import UserError, suggest
from topologies import Host, Topology
from topologies.collectives import CollectiveGroup
from topologies.collectives import trees as collective_trees
from topologies.groups import Group
from topologies.nic_switches import link_ends, nodes_of
from topologies.routing import BaseRtts

DEFAULT_LIMIT_NS = 1_000_000_000  # limit of a run whose scenario sets none; longer than any run should take
_COLLECTIVE_BYTES = 138  # mean size of collectives' packets: half of them have lanes (202 bytes), half have none (74)


@dataclass(frozen=True)
class LinkChange:
    """Change of link number `link` of the topology at `time_ns`; None: unchanged.

    The rate is that of both directions, or of `direction` alone: 0 is from the link's end `a` to
    `b`, 1 is the other one.
    """

    time_ns: int
    link: int
    up: bool | None = None
    rate_bps: int | None = None
    delay_ns: int | None = None
    loss: float | None = None
    direction: Literal[0, 1] | None = None


@dataclass(frozen=True)
class RouteChange:
    """Change of routes at `time_ns`.

    From then on routes avoid the links with the numbers `now`, and no longer those in `before`.
    """

    time_ns: int
    before: frozenset[int]
    now: frozenset[int]


@dataclass(frozen=True)
class Run:
    """Resolved run with everything that a world needs.

    `scenario` has one protocol, one load balancer and one seed. Keys that a variant sets have the
    variant's values, and `scenario` has the variant's name.
    """

    name: str  # name of the scenario
    scenario: Scenario
    folder: Path  # base of the scenario's relative paths
    topology: Topology
    protocol: Protocol
    load_balancing: LoadBalancing
    switch_programs: tuple[SwitchProgram, ...]  # every switch has one of them
    names: tuple[str, ...]  # values that distinguish this run from others of the same scenario, except for the seed
    # Protocols and load balancers of the scenario's groups, by name.
    group_senders: Mapping[str, tuple[Protocol, LoadBalancing]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()  # requested columns of flows that this run can fill
    probes: tuple[ProbeSettings, ...] = ()  # the scenario's probes that apply to this run

    @cached_property
    def flow_columns(self) -> list[Column]:
        """Columns of the table `flows`, without those of an attack's pieces."""
        return all_columns(self.columns)

    @property
    def seed(self) -> int:
        return self.scenario.seeds[0]

    @property
    def limit_ns(self) -> int:
        """Latest end of the run in ns."""
        return self.scenario.limit_ns or DEFAULT_LIMIT_NS

    @property
    def variant(self) -> str:
        """Name that distinguishes this run from others of the same scenario, except for the seed."""
        return ", ".join(self.names)

    @property
    def label(self) -> str:
        """A name for the run's folder."""
        parts = [self.name, *(re.sub(r"[^\w+.-]+", "-", name) for name in self.names), f"seed{self.seed}"]
        return "-".join(parts)

    @property
    def protocols(self) -> list[Protocol]:
        """The protocols of all flows: the run's, and those of the scenario's groups."""
        return [self.protocol, *(protocol for protocol, _ in self.group_senders.values())]

    def protocol_of(self, flow: workloads.Flow) -> Protocol:
        """Return the protocol with which a flow is sent."""
        return self.group_senders[flow.part][0] if flow.part in self.group_senders else self.protocol

    @property
    def telemetry(self) -> bool:
        """True if any flow's packets have an INT shim."""
        return any(protocol.info.telemetry for protocol in self.protocols)

    @property
    def data_bytes(self) -> int:
        """Length of a full data packet when it leaves the host; the largest of all protocols."""
        return max(protocol.info.data_bytes(self.scenario.nic.mtu_bytes) for protocol in self.protocols)

    @property
    def ack_bytes(self) -> int:
        """Length of an ACK without telemetry; the largest of all protocols."""
        return max(protocol.info.lengths.ack_bytes for protocol in self.protocols)

    @cached_property
    def packet_bytes(self) -> int:
        """Typical packet on links: a full data packet, or the mean packet of collectives."""
        return _COLLECTIVE_BYTES if self.traffic().assignments else self.data_bytes

    @cached_property
    def pipes(self) -> dict[str, Pipe]:
        """Pipes of the switches, by their names."""
        return pipes_of(self.topology.switch_by_name, self.switch_programs)

    @cached_property
    def loops(self) -> dict[str, dict[int, Loopback]]:
        """Settings of the loopback ports of each switch, by port; the ports of all pipes are included."""
        loops: dict[str, dict[int, Loopback]] = {name: {} for name in self.topology.switch_by_name}
        for each in self.switch_programs:
            for switch in each.switches if each.loopback.ports else ():
                loops[switch] |= dict.fromkeys(each.loopback.ports, each.loopback)
        return loops

    @cached_property
    def _builds(self) -> dict[Place, list[Build]]:
        """Builds of the pipelines of each program, by its place."""
        several = {pipe.program.place for pipe in self.pipes.values() if not pipe.is_only}
        return {
            each.place: pipelines_in(self.build(each), several=each.place in several) for each in self.switch_programs
        }

    def build_of(self, pipe: Pipe) -> Build:
        """Return the build of a pipe's pipeline.

        The program's pipelines are assigned to its pipes in turn. Raises UserError if the program
        has more pipelines than pipes.
        """
        builds, running = self._builds[pipe.program.place], pipe.program.pipes[pipe.switch]
        if len(builds) > len(running):
            raise UserError(
                f"program {pipe.program.name!r} has {len(builds)} pipelines, and runs in pipes "
                f"{', '.join(map(str, running))} of {pipe.switch!r}; expected a pipe for each"
            )
        return builds[running.index(pipe.number) % len(builds)]

    @property
    def program_names(self) -> str:
        """Names of the switches' programs, for reports."""
        return ", ".join(dict.fromkeys(each.name for each in self.switch_programs))

    @property
    def common_period_ns(self) -> int:
        """Period to which the clocks of hosts and switches have to agree; 0: they need not agree."""
        periods_ns = [each.parameters.common_period_ns for each in self.switch_programs]
        return math.lcm(*filter(None, periods_ns)) if any(periods_ns) else 0

    @property
    def zero_when_done(self) -> tuple[str, ...]:
        """Registers of any program that are 0 when all flows have ended."""
        return tuple(dict.fromkeys(name for each in self.switch_programs for name in each.parameters.zero_when_done))

    def build(self, of: SwitchProgram) -> Build:
        """Return the build of one of the switches' programs.

        Raises UserError if its P4 file is missing.
        """
        from wireformats import p4 as packet_includes  # imports compiled modules

        given = {name: str(value) for name, value in of.defines.items()}
        defines = {**of.parameters.defines(), **({"MULTICAST": "1"} if self.groups else {}), **given}
        if loss_ppm := round(self.scenario.switch.loss * 1e6):
            defines[LOSS] = str(loss_ppm)
        kind = registry.KINDS["cc"]
        outside = [name for file in self.scenario.extensions for name in kind.names_from(file)]
        opcodes = [*(registry.resolve(name).opcodes for name in outside), *(cc.opcodes for cc in self.protocols)]
        folders = packet_includes.include_path(*opcodes)
        return Build.of(of.program.source, of.load_balancer, defines, folders, of.architecture)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The multicast groups that the workload's flows go to.

        Raises UserError if the workload needs too many groups.
        """
        name, values = named("workload", self.scenario.workload)
        wanted = workloads.groups(name, values, self.topology, self.seed, self.folder)
        return tuple(Group(number, source, members) for number, (source, members) in enumerate(wanted, start=1))

    @cached_property
    def collectives(self) -> tuple[CollectiveGroup, ...]:
        """The groups whose operations the switches replicate and combine.

        Raises UserError if this network cannot serve them.
        """
        name, values = named("workload", self.scenario.workload)
        return tuple(workloads.collectives(name, values, self.topology, self.seed, self.folder))

    @cached_property
    def _group_of(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], Group]:
        return {((group.source,), group.members): group for group in self.groups}

    @cached_property
    def _host_addresses(self) -> list[str]:
        return [str(host.address) for host in self.topology.hosts]

    def addresses(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> tuple[str, str]:
        """Return the source and destination address of a flow between these hosts.

        Raises UserError if they are none of the workload's multicast groups.
        """
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
        """True if packets of one flow take several paths, by the choice of hosts or of switches."""
        balancers = [self.load_balancing, *(balancer for _, balancer in self.group_senders.values())]
        by_switches = any(each.load_balancer.per_packet for each in self.switch_programs)
        return any(balancer.info.per_packet for balancer in balancers) or by_switches

    @property
    def reliability(self) -> str:
        """Way of repairing losses: the scenario's, or the one that suits load balancers and protocol."""
        return self.scenario.nic.reliability or self.protocol.usual_reliability(self.per_packet)

    @property
    def cc_scope(self) -> str:
        """Scope of a reaction point: the queue pairs that share it.

        Raises UserError if the protocol does not have the scenario's scope.
        """
        return as_user_error(lambda: self.protocol.scope(self.scenario.nic.cc_scope))

    def controller_settings(self, cell_bytes: int | None = None, tick_ns: Fraction = Fraction(1)) -> Settings:
        """Return the settings of all switches.

        If `cell_bytes` is None, the scenario's value applies.
        """
        return Settings(
            self.scenario.switch.cell_bytes if cell_bytes is None else cell_bytes,
            tick_ns,
            self.scenario.framing_bytes,
            self.seed,
            self.base_rtt_ns(),
            self.base_rtts,
            self.data_bytes,
            groups=self.groups,
            collectives=self.collectives,
        )

    def base_rtt_ns(self) -> int:
        """Return the largest base RTT of the network in ns: a full packet and its ACK without queueing."""
        return max(self.base_rtts_ns)

    @cached_property
    def base_rtts_ns(self) -> tuple[int, ...]:
        """Largest base RTT, in ns, of the paths through n switches, indexed by n; 0 without such paths."""
        by_hops = self.base_rtts.by_switches
        return tuple(by_hops.get(hops, 0) for hops in range(max(by_hops) + 1))

    @property
    def base_rtts(self) -> BaseRtts:
        """The base RTTs of the network, by the links of the hosts."""
        charged = self.scenario.link_bytes
        return topologies.routing.base_rtts(
            self.topology, charged(self.data_bytes), charged(self.ack_bytes), self.scenario.switch.latency_ns
        )

    @cached_property
    def _peers(self) -> list[Peers | None]:
        """Link rates and base RTTs to other hosts, for the NICs of each kind of link.

        None stands for a network in which all hosts have the same kind of link.
        """
        rtts = self.base_rtts
        kinds = range(len(rtts.rates_bps))
        if len(kinds) == 1:
            return [None]
        kind_of = {int(host.address): kind for host, kind in zip(self.topology.hosts, rtts.kinds, strict=True)}
        return [
            Peers(kind_of, rtts.rates_bps, tuple(rtts.between.get((own, kind), (0,)) for kind in kinds))
            for own in kinds
        ]

    @property
    def rto_ns(self) -> int:
        """The retransmission time-out."""
        nic = self.scenario.nic
        return nic.rto_ns if nic.rto_base_rtts is None else round(nic.rto_base_rtts * self.base_rtt_ns())

    @property
    def loss_packets(self) -> int:
        """Number of later packets whose arrival shows that a missing one is lost.

        It is 0 if packets may overtake each other.
        """
        given = self.scenario.nic.loss_packets
        if given is not None:
            return given
        return 0 if self.per_packet else 3

    def nic_configs(self) -> list[NicConfig]:
        """Return the configuration of each host's NIC, in order of the hosts."""
        first, *others = self.topology.hosts
        config = self.nic_config(first)
        return [
            config,
            *(
                replace(
                    config,
                    address=str(host.address),
                    line_rate_bps=self.topology.uplink(host).rate_bps,
                    frame_overhead_bytes=self.scenario.framing_bytes + self.topology.uplink(host).extra_bytes,
                    peers=self._peers[self.base_rtts.kinds[host.index]],
                )
                for host in others
            ),
        ]

    def nic_config(self, host: Host) -> NicConfig:
        """Return the configuration of one host's NIC."""
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
            # With groups each protocol has its own scope, unless the scenario sets one.
            cc_scope=settings.cc_scope if self.group_senders else self.cc_scope,
            ack_every_packets=settings.ack_every_packets,
            ack_every_bytes=settings.ack_every_bytes,
            ack_wait_ns=settings.ack_wait_ns,
            rto_ns=self.rto_ns,
            retry_count=settings.retry_count,
            loss_packets=self.loss_packets,
            sleek=settings.sleek,
            pcie=settings.pcie,
            cell_bytes=scenario.switch.cell_bytes,
            stamps=MAX_LATENCY in self.columns,
            seed=self.seed,
            check_icrc=settings.check_icrc,
            frame_overhead_bytes=scenario.framing_bytes + self.topology.uplink(host).extra_bytes,
            peers=self._peers[self.base_rtts.kinds[host.index]],
            mac_prefix=settings.mac_prefix,
            last_hop_dscp=max(each.parameters.last_hop_dscp for each in self.switch_programs),
            nics=tuple(int(host.address) for host in self.topology.hosts),  # a host's index is its NIC's id
        )

    @property
    def lossless_priorities(self) -> tuple[int, ...]:
        """The priorities that PFC pauses."""
        given = self.scenario.switch.pfc.priorities or (self.scenario.nic.data_priority,)
        return tuple(dict.fromkeys((*given, *self.protocol.priorities)))

    @cached_property
    def most_copies(self) -> dict[str, int]:
        """Largest number of copies that each switch makes of one frame, by its name; 1 without copies."""
        copies: dict[str, int] = {}
        trees = [group.tree(self.topology) for group in self.groups]
        trees += [tree for group in self.collectives for tree in collective_trees(self.topology, group)]
        for tree in trees:
            for node, ports in tree.down.items():
                copies[node] = max(len(ports), copies.get(node, 1))
        return copies

    def link_changes(self) -> list[LinkChange]:
        """Return the changes of links during the run, in order of time.

        Raises UserError for a link that does not exist.
        """
        return link_changes(self.topology, self.scenario.events)

    def route_changes(self) -> list[RouteChange]:
        """Return the controller's reactions to changes of links, in order of time."""
        after_ns = self.scenario.reroute_after_ns
        if after_ns is None:
            return []
        reactions: list[RouteChange] = []
        down: set[int] = set()
        before: frozenset[int] = frozenset()
        changes = [change for change in self.link_changes() if change.up is not None]
        for time_ns, together in itertools.groupby(changes, key=lambda change: change.time_ns):
            for change in together:
                (down.discard if change.up else down.add)(change.link)
            if before != down:
                reactions.append(RouteChange(time_ns + after_ns, before, frozenset(down)))
                before = reactions[-1].now
        return reactions

    @cached_property
    def shortest_delay_ns(self) -> int:
        """Smallest delay of any link at any time."""
        changed = [change.delay_ns for change in self.link_changes() if change.delay_ns is not None]
        return min(*changed, *(link.delay_ns for link in self.topology.links))

    @cached_property
    def attack(self) -> Attack | None:
        """Attack of the run: attackers and kind of attack.

        Keys that the scenario omits get the most harmful values. Pieces have the size of one BDP
        and start one RTT apart, so that each piece is sent before any feedback on congestion
        arrives (thesis, 3.5.2).

        Raises UserError for hosts that do not exist, and for values that contradict each other.
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
            raise UserError("attack.hosts: empty; expected at least one host, or no list for all of them")
        rtt_ns = self.base_rtt_ns()
        piece_bytes = table.piece_bytes
        if piece_bytes is None and table.pieces is None:
            slowest_bps = min(self.topology.uplink(known[host]).rate_bps for host in hosts)
            piece_bytes = max(1, slowest_bps * rtt_ns // 8_000_000_000)
        over_bytes = table.over_bytes or (1 if piece_bytes is None else piece_bytes + 1)
        if piece_bytes is not None and piece_bytes >= over_bytes:
            raise UserError(f"attack.piece_bytes: should be less than over_bytes, {over_bytes}, got {piece_bytes}")
        return Attack(table.kind, frozenset(hosts), over_bytes, piece_bytes, table.pieces, table.gap_ns or rtt_ns)

    def _part(self, group: TrafficGroup) -> Part:
        """Return the traffic of a group of the scenario.

        Raises UserError if its hosts or its workload are invalid.
        """
        where = f"groups.{group.name}"
        hosts = hosts_like(self._of_servers, group.hosts, where)
        name, values = named(f"{where}.workload", group.workload)
        network = self._group_networks.get(group.name)
        if network is None:
            network = self._group_networks[group.name] = network_of(self._of_servers, hosts)
        traffic = workloads.build(name, values, network, self.seed, self.folder, group.name)
        nics = self._nics
        if hosts is not None:
            nics = [(host,) if nics is None else nics[host] for host in hosts]
        return Part(group.name, traffic, nics, group.start_ns, group.priority)

    @cached_property
    def _of_servers(self) -> Topology:
        """The network in the form that workloads see, with servers as hosts."""
        return as_servers(self.topology)

    @property
    def _nics(self) -> Sequence[Sequence[int]] | None:
        """The hosts of each server; None if each host is one."""
        return list(self.topology.servers.values()) or None

    @cached_property
    def _group_networks(self) -> dict[str, Topology]:
        """Networks of the groups' workloads, whose hosts are numbered within the group.

        The dict is filled when traffic is generated.
        """
        return {}

    def traffic(self) -> workloads.Traffic:
        """Return the run's flows, generated again by each call.

        Raises UserError, also for a flow between hosts that the network cannot connect.
        """
        name, values = named("workload", self.scenario.workload)
        traffic = workloads.build(name, values, self._of_servers, self.seed, self.folder)
        if self.scenario.groups or self._nics is not None:
            traffic = Mixed([Part("", traffic, self._nics), *map(self._part, self.scenario.groups)])
        if not traffic.flows and not traffic.assignments:
            raise UserError("workload 'none': expected groups, which have flows")
        if self._nics is not None and (traffic.assignments or self.groups):
            raise UserError(
                f"topology {self.topology.name!r}: its hosts have several NICs; expected a workload without multicast "
                "and collectives in the network"
            )
        several = (flow for flow in traffic.flows if flow.further_sources or flow.further_destinations)
        for ends in {(flow.sources, flow.destinations) for flow in several}:
            self.addresses(*ends)
        return traffic if self.attack is None else attacked(traffic, self.attack)


def link_changes(topology: Topology, events: Sequence[LinkEvent]) -> list[LinkChange]:
    """Return the changes of links by a scenario's events, in order of time.

    Raises UserError for an unknown link.
    """
    places = [_links_of(topology, i, event) for i, event in enumerate(events)]
    down: dict[int, set[str]] = {}  # nodes that are down, by link; "" stands for the link itself
    changes: list[LinkChange] = []
    for i, event in sorted(enumerate(events), key=lambda pair: pair[1].time_ns):
        for number in places[i]:
            up = None
            if event.up is not None:
                causes = down.setdefault(number, set())
                before = bool(causes)
                (causes.discard if event.up else causes.add)(event.switch or event.host or "")
                up = None if before == bool(causes) else not causes
            rate_bps = event.rate_bps
            if event.rate_fraction is not None:
                rate_bps = max(1, round(event.rate_fraction * topology.links[number].rate_bps))
            direction: Literal[0, 1] | None = None
            if event.towards is not None:
                direction = 0 if topology.links[number].b in link_ends(topology, event.towards) else 1
            change = LinkChange(event.time_ns, number, up, rate_bps, event.delay_ns, event.loss, direction)
            if change != LinkChange(event.time_ns, number):
                changes.append(change)
    return changes


def _links_of(topology: Topology, index: int, event: LinkEvent) -> list[int]:
    """Return the numbers of the links that an event is about."""
    where = f"events.{index}"
    if event.link is not None:
        a, b = event.link
        at_a, at_b = link_ends(topology, a), link_ends(topology, b)
        parallel_links = [
            i
            for i, link in enumerate(topology.links)
            if (link.a in at_a and link.b in at_b) or (link.a in at_b and link.b in at_a)
        ]
        if event.parallel >= len(parallel_links):
            raise UserError(
                f"{where}: there is no link {a} - {b} with number {event.parallel} in topology "
                f"{topology.name!r}, which has {len(parallel_links)} between them"
            )
        return [parallel_links[event.parallel]]
    key, name, known = "switch", event.switch or "", {*topology.switch_by_name}
    if event.host is not None:
        key, name, known = "host", event.host, {*topology.servers, *topology.host_by_name}
    if name not in known:
        raise UserError(f"{where}.{key}: topology {topology.name!r} has none called {name!r}; {suggest(name, known)}")
    nodes = nodes_of(topology, name)
    return [i for i, link in enumerate(topology.links) if not nodes.isdisjoint((link.a, link.b))]


def named(key: str, table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a table's `name` and the rest.

    Raises UserError if the name is missing.
    """
    values = dict(table)
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"{key}.name: missing; it must be given")
    return name, values
