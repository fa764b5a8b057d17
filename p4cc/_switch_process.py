"""Switch in a process of its own on this machine: packets over veth pairs, everything else over P4Runtime."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from control_plane import bmv2_process
from p4switch import processes
from p4switch.errors import UserError
from p4switch.logged_process import LoggedProcess
from p4switch.p4runtime.client import GrpcClient
from p4switch.p4runtime.errors import P4RuntimeError
from p4switch.tcp_ports import free_port
from p4switch.trace import Event, from_json_line
from p4switch.trace.events import Transmitted

_START_S = 60.0  # time to start on a busy machine
_FIRST_S = 5.0  # time to wait for the first packet that leaves
_QUIET_S = 0.2  # time to wait after the last one
_SOL_PACKET, _AUXDATA, _IGNORE_OUTGOING = 263, 8, 23
_TAG = struct.Struct("=I12xHH")  # fields of tpacket_auxdata: status, tag and its EtherType
_VLAN_VALID = 1 << 4  # TP_STATUS_VLAN_VALID
_TURN_S = 0.005
_TOLD_S = 10.0  # time after a packet leaves until its trace is written
_SILENT_S = 2.0  # the same time if no packet left within `_FIRST_S`; the switch writes once a second
_MTU_BYTES = 9216  # the largest jumbo frame

_TRACE = "trace.jsonl"

_made = itertools.count()  # numbers of this process's switches, for unique names of interfaces


class MissingError(UserError):
    """A dependency of a switch in a process of its own is missing."""

    missing = True


class SwitchOnWires:
    """Switch of a `kind`, without a program: "process" (`p4cc switch`) or "bmv2" (simple_switch_grpc)."""

    def __init__(self, kind: str, device_id: int, ports: Sequence[int]) -> None:
        if os.geteuid() or shutil.which("ip") is None:
            raise MissingError(f"a switch of kind {kind!r} needs root, and iproute2")
        self.thrift_port: int | None = None  # Thrift port of BMv2
        self._sockets: dict[int, socket.socket] = {}
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="p4cc-")))
            own = f"p{os.getpid():06x}{next(_made) & 0xFFF:03x}"  # up to 15 characters, with the port and an "h"
            names = {port: f"{own}{port}" for port in ports}
            for port, name in names.items():
                self._wire(stack, port, name)
            address = f"unix:{folder}/p4runtime"
            if kind == "bmv2":
                address, self.thrift_port = f"127.0.0.1:{free_port()}", free_port()
            process = stack.enter_context(
                LoggedProcess(self._command(device_id, names, address, folder), folder / "log")
            )
            self.client = self._connect(stack, process, address, device_id)
            self._trace = stack.enter_context((folder / _TRACE).open()) if kind == "process" else None
            self._begun = ""  # incomplete last line of the trace
            self._stack = stack.pop_all()

    def _wire(self, stack: contextlib.ExitStack, port: int, name: str) -> None:
        """Create a veth pair whose end `name` is the switch's, and open a socket at the other end."""
        far = f"{name}h"
        _ip("link", "add", name, "type", "veth", "peer", "name", far)
        stack.callback(_ip, "link", "del", name, check=False)
        for end in (name, far):
            with contextlib.suppress(OSError):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            _ip("link", "set", end, "up", "mtu", str(_MTU_BYTES))
        far_socket = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
        far_socket.bind((far, 0))
        far_socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        far_socket.setsockopt(_SOL_PACKET, _AUXDATA, 1)
        self._sockets[port] = far_socket

    def _command(self, device_id: int, names: dict[int, str], address: str, folder: Path) -> list[str]:
        if self.thrift_port is not None:
            try:
                return bmv2_process.command(
                    device_id, names, grpc_address=address, thrift_port=self.thrift_port,
                    notifications=folder / "notes",
                )  # fmt: skip
            except UserError as error:
                raise MissingError(str(error)) from None
        interfaces = [part for port, name in names.items() for part in ("-i", f"{port}@{name}")]
        code = "from p4cc.cli import main; main()"
        command = processes.python("-c", code, "switch", "--no-p4", *interfaces, "--log-console", "--log-level", "warn")
        command += ["--trace-file", str(folder / _TRACE)]
        return [*command, "--device-id", str(device_id), "--grpc-server-addr", address]

    @staticmethod
    def _connect(
        stack: contextlib.ExitStack, process: LoggedProcess, address: str, device_id: int
    ) -> GrpcClient:
        end = time.monotonic() + _START_S
        while True:
            client = GrpcClient(address, device_id)
            try:
                return stack.enter_context(client)
            except P4RuntimeError as error:
                if process.over() or time.monotonic() > end:
                    raise UserError(f"the switch did not start: {process.last_line() or error}") from None

    def send(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Return the frames that the switch sends in response to one, sorted by port."""
        if port not in self._sockets:
            raise UserError(f"no port {port}; expected one of {', '.join(map(str, self._sockets))}")
        for waiting in self._sockets.values():
            while select.select([waiting], [], [], 0)[0]:
                waiting.recv(1 << 16)
        if self._trace is not None:  # discards the rest of earlier packets' traces
            self._begun = (self._begun + self._trace.read()).rpartition("\n")[2]
        try:
            self._sockets[port].send(frame)
        except OSError as error:
            raise UserError(f"port {port}: a frame of {len(frame)} bytes: {error.strerror}") from None
        frames: list[tuple[int, bytes]] = []
        patience = _FIRST_S
        while ready := select.select(list(self._sockets.values()), [], [], patience)[0]:
            frames += [(number, _receive(one)) for number, one in self._sockets.items() if one in ready]
            patience = _QUIET_S
        return sorted(frames, key=lambda output: output[0])

    def events(self, frames: int) -> list[Event]:
        """Return the events of the packet of the last `send`, which made `frames` frames leave.

        There are none for BMv2. The switch writes events asynchronously. It writes none for a
        packet that its program never got, such as a PFC frame.
        """
        events: list[Event] = []
        line = self._begun
        end = time.monotonic() + (_TOLD_S if frames else _SILENT_S)
        while self._trace is not None and time.monotonic() < end:
            line += self._trace.readline()
            if line.endswith("\n"):
                events.append(from_json_line(line))
                line = ""
            elif events and sum(isinstance(event, Transmitted) for event in events) >= frames:
                break
            else:
                time.sleep(_TURN_S)
        self._begun = line
        return events

    def close(self) -> None:
        self._stack.close()


def _receive(end: socket.socket) -> bytes:
    """Return a frame with its VLAN tag, which the kernel strips and reports separately."""
    frame, ancillary, _, _ = end.recvmsg(1 << 16, socket.CMSG_SPACE(_TAG.size))
    for level, kind, data in ancillary:
        if (level, kind) == (_SOL_PACKET, _AUXDATA):
            status, tag, ethertype = _TAG.unpack(data)
            if status & _VLAN_VALID:
                return frame[:12] + struct.pack("!HH", ethertype, tag) + frame[12:]
    return frame


def _ip(*arguments: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise UserError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
