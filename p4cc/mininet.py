"""P4 switches and hosts for a Mininet script, which need root and the distribution's package `mininet`.

    from functools import partial
    from p4cc.mininet import Mininet, P4Host, P4Switch

    net = Mininet(topo, switch=partial(P4Switch, program="my.p4"), host=P4Host, controller=None)
    net.start()
    net["s1"].p4.write(TableEntry(...))
    net.pingAll()

Importing it makes `import mininet` work in a virtual environment, too.
"""

from __future__ import annotations

import array
import fcntl
import json
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

import p4cc._hosts  # noqa: F401  # isort: split
from control_plane import controller
from control_plane.programs.entries import Entry
from harness.worlds.mininet import isolation, package, shells
from p4cc._transfer import Place, Transfer, carry_out
from p4cc.control import Control, compiled
from p4switch import processes
from p4switch.compiler import Compiled
from p4switch.errors import UserError
from p4switch.logged_process import LoggedProcess
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError

package.require()
from mininet.net import Mininet  # noqa: E402
from mininet.node import Host, Switch  # noqa: E402

__all__ = ["Mininet", "P4Host", "P4Switch", "Transfer", "transfer"]

_START_S = 60.0
_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17
_SWITCH = "from p4switch.daemon.command import command; command()"

Entries = Iterable[Entry] | Callable[[str], Iterable[Entry]]


class P4Host(Host):  # type: ignore[misc]  # Mininet has no types
    """Host with the kernel's own network stack, which computes checksums in software and has no IPv6."""

    def __init__(self, name: str, **params: Any) -> None:
        with shells.made_whole(self):
            super().__init__(name, **params)

    def config(self, **params: Any) -> Any:
        """Configure the host, and compute checksums in software."""
        result = super().config(**params)
        self.cmd("for i in default all; do echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6; done")
        thread = threading.Thread(target=self._compute_checksums)
        thread.start()
        thread.join()
        return result

    def _compute_checksums(self) -> None:
        """Compute checksums in software, since there is no network card behind a veth pair.

        This runs in a thread, because it enters the host's network namespace.
        """
        isolation.enter_network(f"/proc/{self.pid}/ns/net")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for interface in self.intfList():
                value = array.array("I", [_ETHTOOL_STXCSUM, 0])
                request = struct.pack("16sP", interface.name.encode(), value.buffer_info()[0])
                fcntl.ioctl(control, _SIOCETHTOOL, request)


class P4Switch(Switch):  # type: ignore[misc]  # Mininet has no types
    """Switch process that runs a P4 program; port numbers are those of Mininet's links.

    `entries` are written when it starts. They are entries of `p4cc.programs`, or a function that
    returns them for the switch's name. `traffic` has the tables of `p4cc switch --traffic`: rates,
    delays and limits of queues. `p4` is the running program. Raises UserError for a program or
    entries that do not fit, and when the process does not start.
    """

    def __init__(
        self,
        name: str,
        *,
        program: str | PathLike[str] | Compiled,
        entries: Entries = (),
        traffic: Mapping[str, Any] | None = None,
        seed: int = 1,
        **params: Any,
    ) -> None:
        with shells.made_whole(self):
            super().__init__(name, **params)
            self.device_id = int(self.dpid, 16)
            self._program = compiled(program)
            self._known = controller.Program.of(self._program)
        self._entries = entries
        self._traffic = traffic
        self._seed = seed
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: LoggedProcess | None = None
        self._client: GrpcClient | None = None
        self._control: Control | None = None

    @property
    def p4(self) -> Control:
        """Entries, registers and counters. Raises UserError unless the switch is running."""
        if self._control is None:
            raise UserError(f"switch {self.name} is not running")
        return self._control

    @property
    def address(self) -> str:
        """Address of the P4Runtime server."""
        assert self._folder is not None, f"switch {self.name} has not started"
        return f"unix:{self._folder.name}/p4rt"

    def start(self, controllers: object) -> None:
        """Start the switch process (a hook of Mininet); `batchStartup` installs its program."""
        self._folder = tempfile.TemporaryDirectory(prefix=f"p4cc-{self.name}-")
        folder = Path(self._folder.name)
        ports = [
            text for port, intf in self.intfs.items() if intf.name != "lo" for text in ("-i", f"{port}@{intf.name}")
        ]
        command = processes.python("-c", _SWITCH, "--no-p4", *ports, "--device-id", str(self.device_id))
        command += ["--grpc-server-addr", self.address, "--seed", str(self._seed), "--log-console", "-L", "warn"]
        if self._traffic is not None:
            (folder / "traffic.json").write_text(json.dumps(self._traffic))
            command += ["--traffic", str(folder / "traffic.json")]
        self._process = LoggedProcess(command, folder / "log")

    @classmethod
    def batchStartup(cls, switches: Iterable[P4Switch], **_options: Any) -> Iterable[P4Switch]:  # noqa: N802
        """Program all switches after they have been started (a hook of Mininet)."""
        for switch in switches:
            switch.program()
        return switches

    def program(self) -> None:
        """Install the program and its entries; earlier entries are lost."""
        if self._client is None:
            client = GrpcClient(self.address, self.device_id, timeout_s=_START_S)
            try:
                client.open()
            except P4RuntimeError as error:
                raise UserError(f"switch {self.name}: {error}; its log: {self.log()}") from None
            self._client = client
            self._control = Control(client, self._known)
        entries = self._entries(self.name) if callable(self._entries) else self._entries
        controller.program_switch(self._client, self._known, entries)

    def log(self) -> str:
        """Return the output of the process so far."""
        return "" if self._process is None else self._process.said()

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  # Mininet's name
        """End the switch process (a hook of Mininet)."""
        if self._client is not None:
            self._client.close()
            self._client = self._control = None
        if self._process is not None:
            self._process.end()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        super().stop(deleteIntfs)


def transfer(
    net: Any,
    transfers: Iterable[Transfer | tuple[str, str, int]],
    cc: str,
    *,
    lb: str = "ecmp",
    cc_parameters: Mapping[str, Any] | None = None,
    lb_parameters: Mapping[str, Any] | None = None,
    line_rate_bps: int = 100_000_000,
    base_rtt_ns: int = 1_000_000,
    rto_ns: int = 200_000_000,
    timeout_s: float = 60.0,
    **nic: Any,
) -> pd.DataFrame:
    """Send RDMA messages between hosts of a running Mininet network by p4cc's host agent.

    Frames carry MAC addresses 02:00:a:b:c:d of IPv4 addresses a.b.c.d.

    Parameters
    ----------
    net
        The running network.
    transfers
        Transfers, or (source, destination, bytes).
    cc, lb
        Protocol and load balancer, by name or file, as in a scenario.
    cc_parameters, lb_parameters
        Their parameters.
    line_rate_bps
        Rate limit of each host.
    base_rtt_ns
        Base RTT that the protocol assumes for the network.
    timeout_s
        Limit of wall-clock time.
    **nic
        Further fields of a scenario's `[nic]`.

    Returns
    -------
    pd.DataFrame
        Row for each transfer, in order. Times are the machine's, in ns from the start.

    Raises
    ------
    UserError
        For contradictory arguments, before anything starts.
    CheckError
        If not all transfers are done after `timeout_s`.
    """
    places = {host.name: Place(host.IP(), host.defaultIntf().name, host.pid) for host in net.hosts}
    return carry_out(
        [Transfer(*each) for each in transfers],
        places,
        cc=cc,
        lb=lb,
        cc_parameters=cc_parameters or {},
        lb_parameters=lb_parameters or {},
        timeout_s=timeout_s,
        line_rate_bps=line_rate_bps,
        base_rtt_ns=base_rtt_ns,
        rto_ns=rto_ns,
        **nic,
    )
