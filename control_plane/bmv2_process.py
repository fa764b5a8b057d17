"""BMv2's `simple_switch_grpc`: its version, and the settings that it takes over Thrift only.

Its queues count packets. Each priority of each port has a depth in packets and a rate in packets
per second of its own. So the priorities of a port do not share its link, and a small packet takes
as long as a large one.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from thriftpy2.parser import load_fp
from thriftpy2.protocol import TBinaryProtocolFactory, TMultiplexedProtocolFactory
from thriftpy2.rpc import client_context
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from p4switch.errors import UserError
from p4switch.tcp_ports import await_listener

EXECUTABLE = "simple_switch_grpc"
PRIORITY_QUEUES = 8
"""Number of queues that every process must have, because BMv2 drops all packets of priorities without a queue."""

MINIMUM_VERSION = (1, 15, 1)
"""In earlier versions, rates and depths set for one priority took effect on another, and the depths
that programs read were those of the whole port (behavioral-model, changes 1270 and 1276)."""

_NO_LIMIT_PACKETS = (1 << 31) - 1
_TIMEOUT_MS = 20_000
_IDL = """
service SimpleSwitch {
  i32 set_egress_queue_depth(1: i32 port_num, 2: i32 depth_pkts);
  i32 set_egress_queue_rate(1: i32 port_num, 2: i64 rate_pps);
}
exception InvalidRegisterOperation { 1: i32 code }
service Standard {
  list<i64> bm_register_read_all(1: i32 cxt_id, 2: string name) throws (1: InvalidRegisterOperation ouch);
  void bm_register_write(1: i32 cxt_id, 2: string name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegisterOperation ouch);
}
"""


@dataclass(frozen=True)
class Queue:
    """Queue of each priority of a port.

    A `rate_packets_per_s` of 0 is as fast as the machine.
    """

    depth_packets: int
    rate_packets_per_s: int

    @classmethod
    def of_link(cls, rate_bps: int, depth_bytes: int | None, packet_bytes: int) -> Queue:
        """Return the queue for full packets of `packet_bytes`, all of one priority."""
        depth_packets = _NO_LIMIT_PACKETS if depth_bytes is None else max(1, depth_bytes // packet_bytes)
        return cls(depth_packets, max(1, round(rate_bps / (8 * packet_bytes))))


@lru_cache
def require() -> str:
    """Return the path of the executable.

    Raises UserError if it is missing or too old.
    """
    path = shutil.which(EXECUTABLE)
    if path is None:
        raise UserError(
            f"{EXECUTABLE} is not in PATH: install BMv2 (package p4lang-bmv2), or use the built-in switch "
            "(--switch builtin)"
        )
    installed = version(path)
    if installed < MINIMUM_VERSION:
        minimum, there = (".".join(map(str, numbers)) for numbers in (MINIMUM_VERSION, installed))
        raise UserError(
            f"{path} is version {there}, which mixes up the queues of the priorities; expected {minimum} or later"
        )
    return path


def version(path: str) -> tuple[int, int, int]:
    """Return the version that the executable reports.

    Raises UserError if it reports none.
    """
    version_text = _ask(path, "--version")
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", version_text)
    if match is None:
        raise UserError(f"{path} --version: expected a version, got {version_text.strip()[:80]!r}")
    return int(match[1]), int(match[2]), int(match[3])


def _ask(path: str, option: str) -> str:
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, timeout=_TIMEOUT_MS / 1000, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{path} does not run: {error}") from None
    return done.stdout


def command(
    device_id: int, interfaces: Mapping[int, str], *, grpc_address: str, thrift_port: int, notifications: Path
) -> list[str]:
    """Return the command line of a process without a program.

    Raises UserError as `require` does.

    `interfaces` are by port number. `notifications` is a socket that the process may create instead
    of one in /tmp that would remain.
    """
    path = require()
    arguments = ["--no-p4", "--device-id", str(device_id), "--thrift-port", str(thrift_port)]
    arguments += ["--log-console", "--log-level", "warn"]
    if _sends_notifications(path):
        arguments += ["--notifications-addr", f"ipc://{notifications}"]
    for number, interface in interfaces.items():
        arguments += ["-i", f"{number}@{interface}"]
    return [path, *arguments, "--", "--grpc-server-addr", grpc_address, "--priority-queues", str(PRIORITY_QUEUES)]


@lru_cache
def _sends_notifications(path: str) -> bool:
    """Return whether the executable has notifications, and thus the option for their socket."""
    return "--notifications-addr" in _ask(path, "--help")


def set_queues(thrift_port: int, queues: Mapping[int, Queue], patience_s: float = 10.0) -> None:
    """Set the queues of the switch with this Thrift port on the loopback interface, by port number.

    The switch starts its Thrift server after its P4Runtime server, so this may have to wait. Raises
    UserError if nobody answers.
    """
    with _thrift("SimpleSwitch", "simple_switch", thrift_port, patience_s) as client:
        for port, queue in queues.items():
            _check(port, client.set_egress_queue_depth(port, queue.depth_packets))
            _check(port, client.set_egress_queue_rate(port, queue.rate_packets_per_s))


def register(thrift_port: int, name: str) -> list[int]:
    """Return the cells of a register over Thrift, at most 64 bits of each.

    Raises UserError if the switch does not answer or refuses.
    """
    with _thrift("Standard", "standard", thrift_port) as client:
        return [value & (1 << 64) - 1 for value in client.bm_register_read_all(0, name)]


def set_register(thrift_port: int, name: str, index: int, value: int) -> None:
    """Write one cell, of at most 64 bits.

    Raises UserError if the switch does not answer or refuses.
    """
    with _thrift("Standard", "standard", thrift_port) as client:
        client.bm_register_write(0, name, index, value - (1 << 64) if value >> 63 else value)


@contextmanager
def _thrift(service: str, name: str, port: int, patience_s: float = 10.0) -> Iterator[Any]:
    """Open a Thrift service of the switch.

    Raises UserError for a request that the switch refuses.
    """
    known: Any = getattr(load_fp(io.StringIO(_IDL), "simple_switch_thrift"), service)
    protocol = TMultiplexedProtocolFactory(
        TBinaryProtocolFactory(),  # type: ignore[no-untyped-call]  # thriftpy2 is typed in part
        name,
    )
    await_listener(port, patience_s)
    try:
        with client_context(
            known, "127.0.0.1", port, proto_factory=protocol,
            connect_timeout=_TIMEOUT_MS, socket_timeout=_TIMEOUT_MS,
        ) as client:  # fmt: skip
            yield client
    except (OSError, TTransportException) as error:
        raise UserError(f"BMv2's Thrift server on port {port} does not answer: {error}") from None
    except TException as error:
        raise UserError(f"BMv2's Thrift server on port {port} refuses: {error}") from None


def _check(port: int, status: int) -> None:
    if status:
        raise UserError(f"BMv2 refused the queue of port {port} (status {status})")
