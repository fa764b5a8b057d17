"""One run, resolved: frozen data, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import topologies
from harness import workloads
from harness.columns.column import Column
from harness.columns.flows import MAX_LATENCY, all_columns
from harness.control.load_balancing import LoadBalancer
from harness.control.pipelines import LOSS, Build
from harness.control.programs import Program, ProgramParameters
from harness.plan.frame_sizes import ACK_BYTES, COLLECTIVE_BYTES, HEADER_BYTES
from harness.plan.host_errors import as_user_error
from harness.plan.probe_settings import ProbeSettings
from harness.plan.scenario import LinkEvent, Scenario
from harness.workloads.attack import Attack, attacked
from host_agents import registry
from host_agents.config import NicConfig
from host_agents.registry import LoadBalancing, Protocol
from p4switch.errors import UserError
from topologies import Host, Topology
from topologies.collectives import CollectiveGroup
from topologies.collectives import trees as collective_trees
from topologies.groups import Group

DEFAULT_LIMIT_NS = 1_000_000_000  # of a scenario that wishes for none: more than any run should take


@dataclass(frozen=True)
class LinkChange:
    """At `time_ns` link number `link` of the topology goes up or down, or gets another rate.

    The rate is that of both directions, or of `direction` alone: 0 from the link's end `a` to `b`, 1 the other way.
    """

    time_ns: int
    link: int
    up: bool | None
    rate_bps: int | None
    direction: Literal[0, 1] | None = None


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
    probes: tuple[ProbeSettings, ...] = ()  # those of the scenario's that this run has something for

    @cached_property
    def flow_columns(self) -> list[Column]:
        """The columns of its table `flows`; those of an attack's pieces are not among them."""
        return all_columns(self.columns)

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
        return COLLECTIVE_BYTES if self.traffic().assignments else self.data_bytes

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
        return as_user_error(lambda: self.protocol.scope(self.scenario.nic.cc_scope))

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
            ack_every_bytes=settings.ack_every_bytes,
            rto_ns=self.rto_ns,
            retry_count=settings.retry_count,
            loss_packets=self.loss_packets,
            sleek_windows=settings.sleek_windows,
            cell_bytes=scenario.switch.cell_bytes,
            stamps=MAX_LATENCY in self.columns,
            seed=self.seed,
            check_icrc=settings.check_icrc,
            frame_overhead_bytes=scenario.framing_bytes,
            last_hop_dscp=self.program_parameters.last_hop_dscp,
            nics=tuple(int(host.address) for host in self.topology.hosts),  # a host's index is its NIC's id
        )

    @property
    def lossless_priorities(self) -> tuple[int, ...]:
        """The priorities that PFC pauses."""
        given = self.scenario.switch.pfc.priorities or (self.scenario.nic.data_priority,)
        return tuple(dict.fromkeys((*given, *self.protocol.priorities)))

    @cached_property
    def most_copies(self) -> dict[str, int]:
        """The most copies of one frame that each switch makes, by its name; 1 where it makes none."""
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
    direction: Literal[0, 1] | None = None
    if event.towards is not None:
        direction = 0 if event.towards == topology.links[number].b else 1
    return LinkChange(event.time_ns, number, event.up, rate, direction)


def named(key: str, table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Splits a table into its `name` and the rest. Raises UserError."""
    values = dict(table)
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"{key}.name: missing; it must be given")
    return name, values
