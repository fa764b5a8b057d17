"""Network of the virtual world in one process: hosts, P4 switches and links on one discrete-event clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from control_plane import controller
from control_plane.rerouting import Rerouting
from harness.plan.headroom import headroom_bytes, xoff_bytes
from harness.plan.run import LinkChange, RouteChange, Run
from harness.worlds import building
from harness.worlds.host_session import Connect, Event, HostSession, Post
from harness.worlds.switch_pipelines import pipelines_of, setups_of
from harness.worlds.whole_frames import WholeFrames
from host_agents import wire
from host_agents.assignments import Assignment
from host_agents.nic import Nic
from p4switch.architectures.front_panel import PIPE_PORT_BITS
from p4switch.engine import pipe_seed
from p4switch.fabric import Fabric
from p4switch.p4runtime.client import LocalClient
from p4switch.p4runtime.device import Device
from p4switch.p4runtime.ports import PortCounts, port_counts
from p4switch.trace import Decoder
from p4switch.traffic.settings import Trimming, dscp_classes

if TYPE_CHECKING:
    from p4switch.engine import Switch as Engine
    from p4switch.engine import Traced
    from topologies import Link

_Value = TypeVar("_Value")


class Network:
    """Network of one run.

    A process runs all of its nodes, or those to which it is restricted.
    """

    def __init__(
        self,
        run: Run,
        report: Callable[[int, Event], object],
        *,
        independent_hosts: bool,
        settle: Callable[[int, bool], int | None] | None = None,
        compiler: str = "builtin",
        traced: bool = False,
        capture: bool = False,
    ) -> None:
        """Build the network.

        `report` gets the events of hosts. `Fabric` describes `independent_hosts` and `settle`. With
        `traced` pipelines record their actions. With `capture` the frames on all hosts' links are
        recorded.
        """
        self.run_plan = run
        self.fabric = Fabric(
            framing_bytes=run.scenario.framing_bytes, independent_hosts=independent_hosts, settle=settle
        )
        self.names: list[str] = []  # by fabric node; hosts come first
        self.links: list[tuple[str, str]] = []
        self.nics: list[Nic] = []
        self.hosts: list[HostSession] = []
        self.pipes: dict[str, Engine] = {}  # by the name of the pipe
        self.clients: dict[str, LocalClient] = {}  # as `pipes`
        self.nodes: dict[str, int] = {}  # nodes of the fabric, by the names of hosts, switches and pipes
        switch_ports = sum(len(run.topology.ports[switch.name]) for switch in run.topology.switches)
        self._to_build = len(run.topology.hosts) + switch_ports
        self._built = 0
        self._add_hosts(report)
        trimming = self._add_switches(compiler, traced)
        self._add_links(capture)
        self._add_loops()
        self._limit_ingress()
        for (node, port), each in trimming.items():
            self.fabric.set_trimming(node, port, **each.model_dump())
        self._owned = [True] * len(self.names)  # by fabric node

    # Construction

    def _add_hosts(self, report: Callable[[int, Event], object]) -> None:
        run = self.run_plan
        samples = run.scenario.record.rate_interval_ns > 0
        for host, config in zip(run.topology.hosts, run.nic_configs(), strict=True):
            nic = Nic(config, run.protocol, run.load_balancing)
            self.nics.append(nic)
            self.hosts.append(
                HostSession(nic, partial(report, host.index), run.flow_columns, samples, run.group_senders)
            )
            self._name(host.name, self.fabric.add_host(WholeFrames(nic) if config.check_icrc else nic, name=host.name))
            self._report_built(1)

    def _add_switches(self, compiler: str, traced: bool) -> dict[tuple[int, int], Trimming]:
        """Add the switches and return the trimmed traffic, by fabric node and port."""
        run = self.run_plan
        trimming: dict[tuple[int, int], Trimming] = {}
        self.pipelines = pipelines_of(run, compiler, traced)
        setups = setups_of(run, self.pipelines)
        settings = run.scenario.switch
        common = run.controller_settings()
        self._rerouting = Rerouting(run.topology, setups, common)
        for switch_name, pipes in groupby(run.pipes.values(), key=lambda pipe: pipe.switch):
            switch = run.topology.switch_by_name[switch_name]
            node = len(self.names)
            engines: list[Engine] = []
            for pipe in pipes:
                seed = pipe_seed(run.seed, pipe.number)
                engine = self.pipes[pipe.name] = self.pipelines[pipe.name].switch(switch.device_id, seed)
                engines.append(engine)
                client = self.clients[pipe.name] = LocalClient(
                    _device(engine, switch.device_id, partial(self._port_counts, node))
                )
                setup = setups[pipe.name]
                view = setup.view(run.topology, switch, common)
                controller.install(client, setup.program, setup.parameters, view)
                self.nodes[pipe.name] = node
                ports = setup.parameters.trimming_ports(view)
                trimming.update({(node, port): each for port, each in ports.items() if pipe.has(port)})
            first, *others = engines
            if others:
                first.join(tuple(others), PIPE_PORT_BITS)
            self.fabric.add_switch(
                first,
                name=switch.name,
                latency_ns=settings.latency_ns,
                dscp_classes=dscp_classes(common.priority_of_dscp),
                **settings.traffic(),
            )
            self._name(switch.name, node)
            self._report_built(len(run.topology.ports[switch.name]))
        return trimming

    def _name(self, name: str, node: int) -> None:
        assert node == len(self.names)
        self.names.append(name)
        self.nodes[name] = node

    def _report_built(self, more: int) -> None:
        """Report the progress of building.

        Hosts count once and switches by their ports, in proportion to their building times.
        """
        self._built += more
        building.tell(self._built / self._to_build)

    def _add_links(self, capture: bool) -> None:
        run = self.run_plan
        hosts = run.topology.host_by_name
        self.host_rates_bps = [0] * len(hosts)  # rate of each host's link; the highest at any time
        changes = run.link_changes()
        run_seed = run.seed << 32  # seeds of links are numbered from there
        for link in run.topology.links:
            number = self.fabric.connect(
                self.nodes[link.a],
                0 if link.a in hosts else link.a_port,
                self.nodes[link.b],
                0 if link.b in hosts else link.b_port,
                rate_bps=link.rate_bps,
                delay_ns=link.delay_ns,
                loss=link.loss,
                seed=run_seed,
                framing_bytes=run.scenario.framing_bytes if link.framing_bytes is None else link.framing_bytes,
            )
            assert number == len(self.links)
            self.links.append((link.a, link.b))
            for name in (link.a, link.b):
                if name in hosts:
                    changed_bps = (change.rate_bps or 0 for change in changes if change.link == number)
                    self.host_rates_bps[hosts[name].index] = max(link.rate_bps, *changed_bps, 0)
            if capture and (link.a in hosts or link.b in hosts):
                self.fabric.capture(number)

    def _add_loops(self) -> None:
        """Connect the switches' loopback ports; these links have the last numbers."""
        for switch in self.run_plan.topology.switches:
            node = self.nodes[switch.name]
            for port, loopback in self.run_plan.loops[switch.name].items():
                self.fabric.connect(node, port, node, port, rate_bps=loopback.rate_bps, delay_ns=loopback.delay_ns)

    def _limit_ingress(self) -> None:
        """Set PFC, and the limits of ingress ports.

        Without PFC, the limit is a threshold with no headroom. No packet is admitted beyond it, so there are no
        pauses.
        """
        run = self.run_plan
        settings = run.scenario.switch
        pfc = settings.pfc
        if not pfc.enabled and settings.ingress_bytes is None:
            return
        for switch in run.topology.switches:
            for port, there in run.topology.ports[switch.name].items():
                limit_bytes = xoff_bytes(run, switch.name, there)
                self.fabric.set_pfc(
                    self.nodes[switch.name],
                    priorities=run.lossless_priorities,
                    port=port,
                    xoff_bytes=limit_bytes,
                    alpha=pfc.alpha if limit_bytes is None else None,
                    xon_gap_bytes=pfc.xon_gap_bytes,
                    headroom_bytes=headroom_bytes(run, switch.name, there) if pfc.enabled else 0,
                    reaction_ns=pfc.reaction_ns,
                )

    # Nodes that this process runs

    def restrict(self, owned: Sequence[bool]) -> None:
        """Leave the other nodes to other workers; `owned` is by fabric node."""
        self._owned = list(owned)

    def owns(self, node: int) -> bool:
        """Return whether this process runs a node."""
        return self._owned[node]

    def own(self, by_name: Mapping[str, _Value]) -> dict[str, _Value]:
        """Return the entries of the nodes that this process runs."""
        return {name: value for name, value in by_name.items() if self._owned[self.nodes[name]]}

    def own_hosts(self) -> Iterator[tuple[int, HostSession]]:
        """Yield the hosts that this process runs, by index."""
        return ((index, host) for index, host in enumerate(self.hosts) if self._owned[index])

    # Events

    def change_link(self, change: LinkChange, now_ns: int) -> None:
        if change.up is not None:
            self.fabric.set_link_up(change.link, change.up)
            self._tell_switches(self.run_plan.topology.links[change.link], change.up)
        if change.rate_bps is not None:
            self.fabric.set_link_rate(change.link, change.rate_bps, direction=change.direction)
        if change.delay_ns is not None:
            self.fabric.set_link_delay(change.link, change.delay_ns)
        if change.loss is not None:
            self.fabric.set_link_loss(change.link, change.loss)

    def _tell_switches(self, link: Link, up: bool) -> None:
        """Tell the pipes of the switches at a link that it has gone down or up."""
        ports = {link.a: link.a_port, link.b: link.b_port}
        for name, client in self.own(self.clients).items():
            switch = self.run_plan.pipes[name].switch
            if switch in ports:
                client.set_port_up(ports[switch], up)

    def reroute(self, change: RouteChange, now_ns: int) -> None:
        switches = self.run_plan.topology.switch_by_name
        for name, client in self.own(self.clients).items():
            switch = switches[self.run_plan.pipes[name].switch]
            client.write(self._rerouting.updates(name, switch, change.before, change.now))

    def carry(self, host: int, request: Connect | Post | Assignment) -> None:
        """Pass a request from the session to a host that this process runs."""
        if isinstance(request, Connect):
            self.hosts[host].connect(request)
        elif isinstance(request, Assignment):
            self.hosts[host].assign(request)
            self.fabric.kick(host)
        elif request.start_ns <= self.fabric.now_ns:
            self._post(host, request, self.fabric.now_ns)
        else:
            self.fabric.at(request.start_ns, partial(self._post, host, request), host=host)

    def _post(self, host: int, request: Post, now_ns: int) -> None:
        self.hosts[host].post(request, now_ns)
        self.fabric.kick(host)
        if request.stop_ns is not None:
            self.fabric.at(request.stop_ns, partial(self._stop, host, request), host=host)

    def _stop(self, host: int, request: Post, now_ns: int) -> None:
        self.hosts[host].stop(request)
        self.fabric.kick(host)

    # Records

    def _port_counts(self, node: int) -> dict[int, PortCounts]:
        return port_counts(self.fabric.port_counts(node))

    def captured(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield (time_ns, "from to", frame) of the frames on hosts' links, in order of their first bits."""
        for time_ns, link, direction, headers, _ in self.fabric.captured():
            a, b = self.links[link]
            yield time_ns, f"{b} to {a}" if direction else f"{a} to {b}", wire.materialize(headers)

    def traced(self, pipe: str) -> Traced:
        """Return the reader of the actions that a pipe's traced pipeline records."""
        traced = self.pipelines[pipe].traced
        assert traced is not None
        return traced

    def decoder(self, node: int, pipe: int) -> Decoder:
        """Return the decoder for the records of a pipe of a switch, which is a node of the fabric."""
        switch = self.names[node]
        (name,) = (each.name for each in self.run_plan.pipes.values() if (each.switch, each.number) == (switch, pipe))
        return Decoder(self.traced(name))


def _device(engine: Engine, device_id: int, counts: Callable[[], Mapping[int, PortCounts]]) -> Device:
    """Return the P4Runtime target of a pipe, whose clock is not used here."""
    return Device(lambda _: engine, device_id, clock_ns=lambda: 0, port_counts=counts)
