"""A topology as a Mininet network: hosts in namespaces of their own, switch processes between veth pairs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from control_plane.controller import switch_view
from harness.plan.headroom import headroom_bytes, xoff_bytes
from harness.plan.probes import QueueProbe
from harness.plan.run import LinkChange, Run
from harness.worlds.mininet import package, shells
from harness.worlds.mininet.interfaces import interface_name, link_names
from harness.worlds.mininet.launcher import Launcher
from harness.worlds.mininet.messages import PortChange
from harness.worlds.mininet.state import RunFolder
from harness.worlds.mininet.switches import LoopPlan, PlannedSwitch, PortPlan, SwitchPlan
from p4switch.traffic.settings import Trimming
from topologies import Topology, model
from topologies.model import HOST_PORT

package.require()
from mininet.cli import CLI  # noqa: E402
from mininet.link import Intf, Link  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import Node  # noqa: E402

_ETHERNET_MTU = 1500


class _Cli(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's prompt, with support for hyphens in names of nodes."""

    identchars = f"{CLI.identchars}-"


class RawHost(Node):  # type: ignore[misc]  # Mininet has no types
    """Host whose interface has no address.

    So the kernel answers nothing, and the agent has all frames to itself.
    """

    def __init__(self, name: str, **params: Any) -> None:
        with shells.made_whole(self):
            super().__init__(name, **params)
            # This comes before there is an interface, because the kernel's own frames would disturb
            # an experiment.
            self.cmd("for i in default all; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done")


class RawLink(Link):  # type: ignore[misc]  # Mininet has no types
    """Veth pair without a queueing discipline, made with one command and set up with one at each end."""


@dataclass(frozen=True)
class Dilated:
    """Conversion of model units to wall-clock units."""

    factor: int

    def rate_bps(self, model_bps: int) -> int:
        return max(1, round(model_bps / self.factor))

    def delay_ns(self, model_ns: int) -> int:
        return model_ns * self.factor


def trimming(run: Run) -> dict[str, dict[int, Trimming]]:
    """Return the trimming of the traffic managers, by switch and port."""
    settings = run.controller_settings()
    trims: dict[str, dict[int, Trimming]] = {switch.name: {} for switch in run.topology.switches}
    for pipe in run.pipes.values():
        view = switch_view(run.topology, run.topology.switch_by_name[pipe.switch], settings)
        ports = pipe.program.parameters.trimming_ports(view)
        trims[pipe.switch] |= {port: each for port, each in ports.items() if pipe.has(port)}
    return trims


def switch_plans(run: Run, dilation: int, folder: RunFolder) -> dict[str, SwitchPlan]:
    """Return the configuration of each switch of a run, by name."""
    scenario, topology = run.scenario, run.topology
    origin_ns = time.monotonic_ns()
    dilated = Dilated(dilation)
    latency_ns = {switch.name: scenario.switch.latency_ns for switch in topology.switches}
    trims = trimming(run)
    pipes = Counter(pipe.switch for pipe in run.pipes.values())
    plans = {}
    for switch in topology.switches:
        ports = {
            number: PortPlan(
                interface_name(topology, switch.name, number),
                dilated.rate_bps(there.rate_bps),
                # A switch's latency is modelled as a longer link to it.
                dilated.delay_ns(there.delay_ns + latency_ns.get(there.node, 0)),
                xoff_bytes(run, switch.name, there),
                headroom_bytes(run, switch.name, there) if scenario.switch.pfc.enabled else 0,
                scenario.framing_bytes + there.extra_bytes,
                trims[switch.name].get(number),
            )
            for number, there in topology.ports[switch.name].items()
        }
        plans[switch.name] = SwitchPlan(
            device_id=switch.device_id,
            pipes=pipes[switch.name],
            ports=ports,
            loops={
                number: LoopPlan(
                    dilated.rate_bps(loop.rate_bps), dilated.delay_ns(loop.delay_ns + scenario.switch.latency_ns)
                )
                for number, loop in run.loops[switch.name].items()
            },
            settings=scenario.switch,
            framing_bytes=scenario.framing_bytes,
            lossless_priorities=run.lossless_priorities,
            packet_bytes=run.packet_bytes,
            seed=run.seed,
            dilation=dilation,
            origin_ns=origin_ns,
            sample_interval_ns=_sample_interval_ns(run),
            folder=folder.path,
        )
    return plans


def _sample_interval_ns(run: Run) -> int:
    """Return the shortest interval of queue samples; 0 if there are none."""
    intervals = [run.scenario.record.queue_interval_ns]
    intervals += [probe.interval_ns for probe in run.probes if isinstance(probe, QueueProbe)]
    return min((interval for interval in intervals if interval), default=0)


def port_changes(run: Run) -> dict[str, list[PortChange]]:
    """Return the changes of links for each switch and host, by name, in order of time.

    Random losses begin at time 0, because the network is verified before.
    """
    topology = run.topology
    latency_ns = dict.fromkeys(topology.switch_by_name, run.scenario.switch.latency_ns)
    changes: dict[str, list[PortChange]] = defaultdict(list)
    state: dict[tuple[int, int], LinkChange] = {}  # by link and direction
    lossy = [LinkChange(0, number) for number, link in enumerate(topology.links) if link.loss]
    for change in (*lossy, *run.link_changes()):
        number = change.link
        link = topology.links[number]
        ends = ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a))
        for direction, (node, port, peer) in enumerate(ends):
            usual = LinkChange(0, number, True, link.rate_bps, link.delay_ns, link.loss)
            before = state.get((number, direction), usual)
            changed = {name: value for name, value in vars(change).items() if value is not None}
            if change.direction not in (None, direction):
                changed.pop("rate_bps", None)
            now = state[number, direction] = replace(before, **changed)
            up, rate_bps = now.up is not False, now.rate_bps or link.rate_bps
            # A switch's latency is modelled as a longer link to it.
            delay_ns = (link.delay_ns if now.delay_ns is None else now.delay_ns) + latency_ns.get(peer, 0)
            seed = (run.seed << 32) + 2 * number + direction
            if now != replace(before, time_ns=now.time_ns, direction=now.direction) or not change.time_ns:
                changes[node].append(PortChange(now.time_ns, port, up, rate_bps, delay_ns, now.loss or 0.0, seed))
    return dict(changes)


class Network:
    """Nodes and links of a run, built in the calling thread's network namespace."""

    def __init__(self, run: Run, plans: dict[str, SwitchPlan], cls: type[PlannedSwitch], launcher: Launcher) -> None:
        Mininet.inited = True  # otherwise it would change limits of the whole system
        self._net = Mininet(topo=None, switch=cls, host=RawHost, controller=None, link=RawLink, build=False)
        self.hosts: dict[str, Any] = {}
        self.switches: dict[str, PlannedSwitch] = {}
        topology = self._topology = run.topology
        mtu = max(_ETHERNET_MTU, max_frame_bytes(run) - 14)
        try:
            for host in topology.hosts:
                self.hosts[host.name] = self._net.addHost(host.name)
            for switch in topology.switches:
                self.switches[switch.name] = self._net.addSwitch(
                    switch.name, plan=plans[switch.name], launcher=launcher
                )
            for link in topology.links:
                self._connect(topology, link, mtu)
        except BaseException:
            self.stop()
            raise

    def _connect(self, topology: Topology, link: model.Link, mtu: int) -> None:
        nodes = {**self.hosts, **self.switches}
        self._net.addLink(
            nodes[link.a],
            nodes[link.b],
            **link_names(topology, link),
            intf=_interface(mtu),
        )

    def start_switches(self) -> None:
        """Start every switch process, without waiting until it answers."""
        for switch in self.switches.values():
            switch.start(())

    def host_interface(self, name: str) -> str:
        return interface_name(self._topology, name, HOST_PORT)

    def prompt(self) -> None:
        """Open Mininet's own prompt at the network; return when the user leaves it."""
        _Cli(self._net, stdin=sys.stdin)

    def shells(self) -> dict[str, subprocess.Popen[bytes]]:
        """Return the shells that Mininet keeps for its nodes, by node."""
        return {node.name: node.shell for node in (*self._net.hosts, *self._net.switches)}

    def stop(self) -> None:
        """End the shells, and with them the hosts' namespaces and all interfaces."""
        for node in (*self._net.hosts, *self._net.switches):
            with contextlib.suppress(OSError):
                node.terminate()


def _interface(mtu: int) -> type[Any]:
    """Return a class of interfaces that are up and forward frames unchanged.

    Frames may have `mtu` bytes after the Ethernet header.
    """

    class _Interface(Intf):  # type: ignore[misc]  # Mininet has no types
        def config(self, **_params: Any) -> dict[str, Any]:
            self.cmd(f"ip link set dev {self.name} mtu {mtu} txqueuelen 10000 up")
            return {}

    return _Interface


def max_frame_bytes(run: Run) -> int:
    """Return the longest frame of a link: a full data packet with all telemetry."""
    return run.data_bytes + (8 * 15 if run.telemetry else 0)


@contextlib.contextmanager
def network(run: Run, plans: dict[str, SwitchPlan], cls: type[PlannedSwitch], launcher: Launcher) -> Iterator[Network]:
    """Yield a network for the duration of the block."""
    net = Network(run, plans, cls, launcher)
    try:
        yield net
    finally:
        net.stop()
