"""Accepted versions of BMv2, and its queues over Thrift, with a stand-in and, where it is installed, with BMv2."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane import bmv2_process
from control_plane.bmv2_process import Queue
from p4switch.errors import UserError
from p4switch.logged_process import LoggedProcess
from p4switch.tcp_ports import free_port


def executable(folder: Path, script: str) -> None:
    path = folder / bmv2_process.EXECUTABLE
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty folder that is the only one in PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    bmv2_process.require.cache_clear()
    yield tmp_path
    bmv2_process.require.cache_clear()


@pytest.mark.parametrize("told", ["1.15.1", "1.15.6-d1f2a3b4", "1.16.0", "2.0.0"])
def test_new_enough(path: Path, told: str) -> None:
    executable(path, f"echo {told}")
    assert bmv2_process.require() == str(path / bmv2_process.EXECUTABLE)


@pytest.mark.parametrize("told", ["1.15.0-68f4a978", "1.14.0"])
def test_too_old(path: Path, told: str) -> None:
    executable(path, f"echo {told}")
    with pytest.raises(UserError, match=rf"version {told[:6]}.*expected 1\.15\.1 or later"):
        bmv2_process.require()


def test_absent_or_broken(path: Path) -> None:
    with pytest.raises(UserError, match=r"not in PATH.*--switch builtin"):
        bmv2_process.require()
    executable(path, "echo oops >&2; exit 127")
    with pytest.raises(UserError, match="expected a version"):
        bmv2_process.require()


@pytest.mark.parametrize("help_text", ["--no-p4", "--notifications-addr arg"])
def test_command_line(path: Path, help_text: str) -> None:
    executable(path, f'[ "$1" = --version ] && echo 1.16.0 || echo "{help_text}"')
    made = bmv2_process.command(3, {1: "a", 2: "b"}, grpc_address="unix:/x", thrift_port=9, notifications=Path("/y"))
    general, target = made[: made.index("--")], made[made.index("--") + 1 :]
    assert general[0] == str(path / bmv2_process.EXECUTABLE)
    assert general[-4:] == ["-i", "1@a", "-i", "2@b"]
    assert ("ipc:///y" in general) == ("notifications" in help_text)
    assert target == ["--grpc-server-addr", "unix:/x", "--priority-queues", "8"]


def test_a_queue_counts_full_packets() -> None:
    assert Queue.of_link(rate_bps=8_000_000, depth_bytes=100_000, packet_bytes=1000) == Queue(100, 1000)
    assert Queue.of_link(rate_bps=1, depth_bytes=1, packet_bytes=1000) == Queue(1, 1)
    assert Queue.of_link(rate_bps=8000, depth_bytes=None, packet_bytes=1000).depth_packets > 10**9


def test_nobody_there() -> None:
    with pytest.raises(UserError, match="does not answer"):
        bmv2_process.set_queues(free_port(), {1: Queue(1, 1)}, patience_s=0.1)


def test_what_is_sent_is_multiplexed_binary_thrift() -> None:
    """Compare each byte with Apache Thrift's specification of the binary protocol."""
    request = (
        b"\x80\x01\x00\x01" + (36).to_bytes(4, "big") + b"simple_switch:set_egress_queue_depth"
        + bytes(4) + b"\x08\x00\x01" + (7).to_bytes(4, "big") + b"\x08\x00\x02" + (64).to_bytes(4, "big") + b"\x00"
    )  # fmt: skip
    reply = b"\x80\x01\x00\x02" + (22).to_bytes(4, "big") + b"set_egress_queue_depth" + bytes(4) + b"\x08\x00\x00"
    got = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            server.accept()[0].close()  # whoever only looks whether somebody is there
            connection, _ = server.accept()
            with connection:
                while len(got) < len(request):
                    got.extend(connection.recv(len(request) - len(got)))
                connection.sendall(reply + (1).to_bytes(4, "big") + b"\x00")  # status 1

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UserError, match=r"refused the queue of port 7 \(status 1\)"):
            bmv2_process.set_queues(server.getsockname()[1], {7: Queue(64, 1000)})
        thread.join()
    assert bytes(got) == request


@pytest.fixture
def running(tmp_path: Path) -> Iterator[int]:
    """Yield the Thrift port of a real simple_switch_grpc without ports and program."""
    if shutil.which(bmv2_process.EXECUTABLE) is None:
        pytest.skip(f"{bmv2_process.EXECUTABLE} is not installed")
    thrift = free_port()
    command = bmv2_process.command(
        1, {}, grpc_address=f"unix:{tmp_path}/p4rt", thrift_port=thrift, notifications=tmp_path / "notifications"
    )
    with LoggedProcess(command, tmp_path / "log"):
        yield thrift


def test_bmv2_takes_it(running: int) -> None:
    bmv2_process.set_queues(running, {1: Queue(64, 1000), 2: Queue(32, 500)}, patience_s=30)
