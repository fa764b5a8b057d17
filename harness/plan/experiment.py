"""From scenarios to runs: each combination of protocol, load balancer and seed, checked before any of them starts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import topologies
from harness import workloads
from harness.control import programs
from harness.control.programs import Program, ProgramParameters
from harness.plan.scenario import LinkEvent, Scenario, Variant, check, merge
from host_agents import registry
from host_agents.config import NicConfig
from host_agents.errors import HostError
from host_agents.registry import LoadBalancing, Protocol
from p4switch.errors import UserError
from topologies import Topology
from topologies.model import Neighbour

_T = TypeVar("_T")
_MAX_LABEL_BYTES = 200
_MAX_RTT_NS = 10**12

# Bytes of a packet beyond its payload, Ethernet to ICRC; and a whole ACK without telemetry.
HEADER_BYTES = 58
ACK_BYTES = 62
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
    names: tuple[str, ...]  # what distinguishes this run from others of the same scenario, but for the seed
    settings: Mapping[str, Any]  # of its variant

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

    @property
    def reliability(self) -> str:
        return self.scenario.nic.reliability or (
            "selective-repeat" if self.load_balancing.info.per_packet else "go-back-n"
        )

    def base_rtt_ns(self) -> int:
        """The largest base RTT of the network: a full packet there, its ACK back, nothing queued."""
        return max(self.base_rtts_ns)

    @cached_property
    def base_rtts_ns(self) -> tuple[int, ...]:
        """The largest base RTT of the paths through so many switches, from 0; 0: there are none."""
        extra = self.scenario.framing_bytes
        by_hops = topologies.routing.base_rtts_ns(
            self.topology, self.data_bytes + extra, ACK_BYTES + extra, self.scenario.switch.latency_ns
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
        return 0 if self.load_balancing.info.per_packet else 3

    def nic_configs(self) -> list[NicConfig]:
        """What each host's NIC is told, in order of the hosts."""
        scenario, settings = self.scenario, self.scenario.nic
        return [
            NicConfig(
                address=str(host.address),
                line_rate_bps=self.topology.uplink(host).rate_bps,
                base_rtt_ns=self.base_rtt_ns(),
                base_rtts_ns=self.base_rtts_ns,
                mtu_bytes=settings.mtu_bytes,
                data_priority=settings.data_priority,
                control_priority=settings.control_priority,
                pfc=scenario.switch.pfc.enabled,
                reliability=self.reliability,
                cc_scope=settings.cc_scope,
                ack_every_packets=settings.ack_every_packets,
                rto_ns=self.rto_ns,
                loss_packets=self.loss_packets,
                cell_bytes=scenario.switch.cell_bytes,
                seed=self.seed,
            )
            for host in self.topology.hosts
        ]

    def headroom_bytes(self, there: Neighbour) -> int:
        """What a switch keeps free for what a port may still receive after it has sent a pause."""
        pfc = self.scenario.switch.pfc
        flight_ns = pfc.headroom_delays * there.delay_ns + pfc.reaction_ns
        return int(flight_ns * there.rate_bps / 8e9) + pfc.headroom_frames * self.data_bytes

    def link_changes(self) -> list[LinkChange]:
        """What happens to links during the run, in the scenario's order. Raises UserError for a link there is not."""
        return [self._link_change(i, event) for i, event in enumerate(self.scenario.events)]

    def _link_change(self, index: int, event: LinkEvent) -> LinkChange:
        a, b = event.link
        found = [i for i, link in enumerate(self.topology.links) if {link.a, link.b} == {a, b}]
        if event.parallel >= len(found):
            raise UserError(
                f"events.{index}: there is no link {a} - {b} with number {event.parallel} in topology "
                f"{self.topology.name!r}, which has {len(found)} between them"
            )
        number = found[event.parallel]
        rate_bps = self.topology.links[number].rate_bps
        rate = None if event.rate_fraction is None else max(1, round(event.rate_fraction * rate_bps))
        return LinkChange(event.time_ns, number, event.up, rate)

    def traffic(self) -> workloads.Traffic:
        """The run's flows, made anew."""
        name, values = named("workload", self.scenario.workload)
        return workloads.build(name, values, self.topology, self.seed, self.folder)


def named(key: str, table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Splits a table into its `name` and the rest. Raises UserError."""
    values = dict(table)
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise UserError(f"{key}.name: missing; it must be given")
    return name, values


def plan(name: str, scenario: Scenario, folder: Path) -> list[Run]:
    """The runs of one scenario. Raises UserError for whatever could not be run."""
    if len({variant.name for variant in scenario.variants}) < len(scenario.variants):
        raise UserError("variants: should have different names")
    built: dict[str, Topology] = {}
    runs = []
    for variant in scenario.variants or [Variant(name="")]:
        tables = {key: value for key, value in scenario.model_dump(exclude_unset=True).items() if key != "variants"}
        varied = check(merge(tables, variant.set))
        _check_tables(varied)
        topology_name, values = named("topology", varied.topology)
        key = repr(varied.topology)
        if key not in built:
            built[key] = topologies.build(topology_name, values)
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
            runs.append(_resolve(name, varied.model_copy(update=only), folder, topology, own, variant.set))
        first = runs[-len(combined)]
        if len(first.label.encode()) > _MAX_LABEL_BYTES:
            raise UserError(f"{first.label[:40]}...: should be a folder's name, of at most {_MAX_LABEL_BYTES} bytes")
        _check_nics(first)
        first.traffic()
        first.link_changes()
        _check_buffers(first)
    return runs


def _check_tables(scenario: Scenario) -> None:
    """Also the tables of what does not run: a mistake there must not pass unseen. Raises UserError."""
    for name, values in scenario.protocols.items():
        _host(partial(registry.resolve, name, values))
    for name, values in scenario.load_balancers.items():
        _host(partial(registry.resolve_load_balancer, name, values))
    for name, values in scenario.programs.items():
        programs.parameters(name, values, f"programs.{name}")


def _check_nics(run: Run) -> None:
    """What the scenario's values come to must be what a NIC can hold. Raises UserError."""
    rtt_ns = run.base_rtt_ns()
    if rtt_ns > _MAX_RTT_NS:
        raise UserError(
            f"topology: a base RTT of {rtt_ns / 1e9:,.0f} s, expected at most {_MAX_RTT_NS // 10**9} s: "
            "links are too slow or too long, or switch.latency_ns too large"
        )
    try:
        run.nic_configs()
    except HostError as error:
        raise UserError(f"nic.{error}") from None


def _check_buffers(run: Run) -> None:
    """PFC's headroom is taken off the shared buffer: something must be left. Raises UserError."""
    settings = run.scenario.switch
    if not settings.pfc.enabled:
        return
    if settings.buffer_bytes is None:
        raise UserError("switch.buffer_bytes: missing; PFC needs a shared buffer (or switch.pfc.enabled = false)")
    for switch in run.topology.switches:
        headrooms = [run.headroom_bytes(there) for there in run.topology.ports[switch.name].values()]
        if sum(headrooms) >= settings.buffer_bytes:
            raise UserError(
                f"switch.buffer_bytes: should exceed the {sum(headrooms)} bytes of headroom that PFC keeps in "
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
    settings: Mapping[str, Any],
) -> Run:
    cc, lb = scenario.cc[0], scenario.lb[0]
    protocol = _host(lambda: registry.resolve(cc, scenario.protocols.get(cc)))
    load_balancing = _host(lambda: registry.resolve_load_balancer(lb, scenario.load_balancers.get(lb)))
    program = programs.program(scenario.program or protocol.info.program)
    needed = protocol.info.program
    if not program.does_the_work_of(needed):
        fitting = [p for p in programs.names() if programs.program(p).does_the_work_of(needed)]
        raise UserError(
            f"program {program.name!r} does not fit protocol {cc!r}; expected {' or '.join(map(repr, fitting))}"
        )
    parameters = programs.parameters(program.name, scenario.programs.get(program.name, {}), f"programs.{program.name}")
    common_ns = parameters.common_period_ns
    if common_ns and (own_ns := getattr(protocol.parameters, "period_ns", common_ns)) != common_ns:
        raise UserError(
            f"protocols.{cc}.period_ns: should be programs.{program.name}.period_ns, {common_ns}, got {own_ns}"
        )
    return Run(name, scenario, folder, topology, protocol, load_balancing, program, parameters, names, settings)


def _host(resolve: Callable[[], _T]) -> _T:
    try:
        return resolve()
    except HostError as error:
        raise UserError(str(error)) from None


def resolved(run: Run) -> Scenario:
    """The run's scenario with the parameters of everything it names written out."""
    topology_name, _ = named("topology", run.scenario.topology)
    workload_name, values = named("workload", run.scenario.workload)
    workload = workloads.parameters(workload_name).model_validate(values).model_dump(exclude_none=True)
    return run.scenario.model_copy(
        update={
            "program": run.program.name,
            "topology": {"name": topology_name, **run.topology.parameters},
            "workload": {"name": workload_name, **workload},
            "nic": run.scenario.nic.model_copy(update={"reliability": run.reliability}),
            "protocols": {run.protocol.name: run.protocol.resolved()},
            "load_balancers": {run.load_balancing.name: _parameters(run.load_balancing.parameters)},
            "programs": {run.program.name: run.program_parameters.model_dump(mode="json", exclude_none=True)},
        }
    )


def _parameters(parameters: object) -> dict[str, Any]:
    return dict(vars(parameters)) if hasattr(parameters, "__dict__") else {}
