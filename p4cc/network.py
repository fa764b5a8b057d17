"""Topology as a Mininet network of P4 switches and Linux hosts, for the user's own script; it needs root."""

from __future__ import annotations

import contextlib
import subprocess
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pandas as pd

import p4cc._hosts  # noqa: F401  # isort: split
from control_plane import controller, programs
from control_plane.programs import SwitchView
from control_plane.programs.entries import Entry
from harness.worlds.mininet import package
from harness.worlds.mininet.interfaces import link_names
from harness.worlds.mininet.isolation import private_network
from p4cc._transfer import Transfer
from p4cc.control import Control, compiled
from p4switch.compiler import Compiled
from p4switch.errors import UserError
from topologies.model import Switch as TopologySwitch
from topologies.model import Topology

if TYPE_CHECKING:
    from p4cc.mininet import P4Switch

__all__ = ["CommandError", "Network", "Transfer"]

_MOST_SHAPED_BPS = 1_000_000_000  # largest rate that software switches can carry
_BURSTS_A_SECOND = 1000  # bursts per second of a token bucket
_LEAST_BURST_BYTES = 3_100  # two full frames
_QUEUE_BYTES = 1_500_000  # limit of the queue before a token bucket, like that of a switch
_TC_S = 20.0
_MOST_TOLD = 1000  # characters of a command's output in a message


class CommandError(subprocess.CalledProcessError):
    """A command on a host has failed; the error's text contains its output on stderr."""

    @property
    def reason(self) -> str:
        """End of its output on stderr."""
        return (self.stderr or "").strip()[-_MOST_TOLD:]

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text.removesuffix('.')}: {self.reason}" if self.reason else text


class Network:
    """Programmed network that exists for the duration of a `with` block.

    Each host has its IPv4 address and the MAC addresses of all other hosts, so IPv4 programs run
    on the hosts. Switches run `program`, a name or a P4 file. Its `parameters` determine its
    entries, as in a scenario. Alternatively `entries` is a function that takes the view of a
    switch and returns its entries. A link of up to 1 Gb/s has its rate, in both directions. A
    faster link is only as fast as the machine, and a warning says so. Link delays are not
    modelled; use `p4cc.run` for timing.

    Raises UserError before anything is started, if Mininet cannot be used or arguments are
    contradictory.
    """

    def __init__(
        self,
        topology: Topology,
        program: str | PathLike[str] | Compiled,
        *,
        parameters: Mapping[str, Any] | None = None,
        entries: Callable[[SwitchView], Iterable[Entry]] | None = None,
        seed: int = 1,
    ) -> None:
        if entries is None:
            if isinstance(program, Compiled):
                raise UserError("entries: missing; a program that is compiled already needs a function of them")
            entries = programs.parameters(str(program), parameters or {}, "parameters").entries
        elif parameters is not None:
            raise UserError("parameters: a program has either these or entries")
        self.topology = topology
        self._program = compiled(program)
        known = controller.Program(self._program.p4info, b"")
        self._tables, self._architecture = known.tables, known.architecture
        self._entries = entries
        self._seed = seed
        self._stack = contextlib.ExitStack()
        self._net: Any = None
        if faster := [link for link in topology.links if link.rate_bps > _MOST_SHAPED_BPS]:
            warnings.warn(
                f"topology {topology.name!r}: {len(faster)} of {len(topology.links)} links have more than 1 Gb/s: "
                "their rates are not limited, and are those of this machine",
                stacklevel=2,
            )

    def __enter__(self) -> Network:
        package.require()
        with contextlib.ExitStack() as stack:
            self._bring_up(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._net = None

    def _bring_up(self, stack: contextlib.ExitStack) -> None:
        from p4cc.mininet import Mininet, P4Host, P4Switch

        stack.enter_context(private_network())
        Mininet.inited = True  # otherwise it would change limits of the whole system
        self._net = Mininet(topo=None, host=P4Host, switch=P4Switch, controller=None, build=False, autoStaticArp=True)
        stack.callback(self._net.stop)
        for host in self.topology.hosts:
            self._net.addHost(host.name, ip=f"{host.address}/8", mac=host.mac.hex(":"))
        for switch in self.topology.switches:
            entries = self._entries(self._view(switch))
            self._net.addSwitch(
                switch.name,
                dpid=f"{switch.device_id:x}",
                program=self._program,
                entries=entries,
                traffic={"ports": self._shaped(switch.name)},
                seed=self._seed,
            )
        for link in self.topology.links:
            self._net.addLink(link.a, link.b, **link_names(self.topology, link))
        self._net.build()
        self._net.start()
        for host in self.topology.hosts:
            for shaped in self._shaped(host.name).values():
                self._shape(host.name, shaped["rate_bps"])

    def _shaped(self, node: str) -> dict[int, dict[str, int]]:
        """Return the rates of a node's rate-limited ports, by port number."""
        ports = self.topology.ports[node].items()
        return {port: {"rate_bps": there.rate_bps} for port, there in ports if there.rate_bps <= _MOST_SHAPED_BPS}

    def _shape(self, host: str, rate_bps: int) -> None:
        """Limit the rate of a host's interface with a token bucket of the kernel.

        Raises UserError if the kernel has none.
        """
        interface = self._net[host].defaultIntf().name
        burst_bytes = max(_LEAST_BURST_BYTES, rate_bps // 8 // _BURSTS_A_SECOND)
        limits = ["burst", str(burst_bytes), "limit", str(burst_bytes + _QUEUE_BYTES)]
        command = ["tc", "qdisc", "replace", "dev", interface, "root", "tbf", "rate", f"{rate_bps}bit", *limits]
        try:
            self._run(host, command, _TC_S)
        except CommandError as error:
            raise UserError(f"host {host}: cannot hold its link to {rate_bps} b/s: {error.reason}") from None

    def _view(self, switch: TopologySwitch) -> SwitchView:
        view = controller.switch_view(self.topology, switch, controller.Settings(seed=self._seed))
        return replace(view, architecture=self._architecture, tables=self._tables)

    def switch(self, name: str) -> Control:
        """Return the control plane of a switch: entries, registers and counters.

        Parameters
        ----------
        name
            Name of the switch.

        Returns
        -------
        Control
            Control plane.

        Raises
        ------
        UserError
            For an unknown switch.
        """
        return self._switch(name).p4

    def address(self, name: str) -> str:
        """Return the address of a switch's P4Runtime server.

        Parameters
        ----------
        name
            Name of the switch.

        Returns
        -------
        str
            Address for gRPC.

        Raises
        ------
        UserError
            For an unknown switch.
        """
        return self._switch(name).address

    def popen(self, host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command on a host.

        Parameters
        ----------
        host
            Name of the host.
        command
            Program and arguments.
        **options
            Options of subprocess.Popen.

        Returns
        -------
        subprocess.Popen[Any]
            The running process.

        Raises
        ------
        UserError
            For an unknown host.
        """
        started: subprocess.Popen[Any] = self._node(host).popen(list(command), **options)
        return started

    def run(self, host: str, command: Sequence[str], *, timeout_s: float = 60.0) -> str:
        """Return the output of a command on a host after it has ended.

        Parameters
        ----------
        host
            Name of the host.
        command
            Program and arguments.
        timeout_s
            Limit of wall-clock time.

        Returns
        -------
        str
            Output of the command on stdout.

        Raises
        ------
        CommandError
            If it fails or is missing (a subprocess.CalledProcessError).
        subprocess.TimeoutExpired
            After the limit.
        UserError
            For an unknown host.
        """
        self._up()
        return self._run(host, command, timeout_s)

    def _run(self, host: str, command: Sequence[str], timeout_s: float) -> str:
        with self.popen(host, command, text=True) as process:
            try:
                written, errors = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        if process.returncode:
            raise CommandError(process.returncode, list(command), written, errors)
        return str(written)

    def transfer(self, transfers: Iterable[Transfer | tuple[str, str, int]], cc: str, **options: Any) -> pd.DataFrame:
        """Send RDMA messages between hosts by p4cc's host agent; return a row for each.

        `p4cc.mininet.transfer` describes the options.

        Parameters
        ----------
        transfers
            Messages: a `Transfer`, or source, destination and bytes.
        cc
            Congestion control, by name or as `FILE:NAME`.
        **options
            Options of `p4cc.mininet.transfer`.

        Returns
        -------
        pd.DataFrame
            One row per message, in order.

        Raises
        ------
        CheckError
            If not all messages arrive in time.
        """
        from p4cc.mininet import transfer

        self._up()
        return transfer(self._net, transfers, cc, **options)

    def _switch(self, name: str) -> P4Switch:
        node = self._node(name)
        if name in self.topology.host_by_name:
            raise UserError(f"{name!r} is a host; expected a switch")
        switch: P4Switch = node
        return switch

    def _node(self, name: str) -> Any:
        self._up()
        if name not in self.topology.ports:
            raise UserError(f"topology {self.topology.name!r} has no node {name!r}")
        return self._net[name]

    def _up(self) -> None:
        """Raise UserError if the network is not running."""
        if self._net is None:
            raise UserError("the network is not running; expected its use within its `with` block")
