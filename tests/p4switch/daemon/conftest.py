"""A network namespace with veth pairs, and a switch process on their far ends."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p4switch.p4runtime.client import GrpcClient

_COUNT = itertools.count()
_CLONE_NEWNET = 0x40000000
_AF_XDP = 44
_SO_RCVBUFFORCE = 33
_MAIN = "from p4cc.cli import main; main()"


def _has_xdp() -> bool:
    try:
        socket.socket(_AF_XDP, socket.SOCK_RAW, 0).close()
    except PermissionError:
        return True  # without root, the tests that need it are skipped
    except OSError:
        return False
    return True


needs_xdp = pytest.mark.skipif(not _has_xdp(), reason="the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)")
senders = pytest.mark.parametrize("send", ["packet", pytest.param("xdp", marks=needs_xdp)])


class Namespace:
    """Namespace with `links` veth pairs. The test has the near end h<i>, and the switch the far end s<i>."""

    def __init__(self, links: int) -> None:
        self.name = f"p4cc-{os.getpid()}-{next(_COUNT)}"
        self.run("ip", "netns", "add", self.name, inside=False)
        self.sockets: list[socket.socket] = []
        for i in range(1, links + 1):
            self.run(
                "ip", "link", "add", f"h{i}", "mtu", "9000", "type", "veth", "peer", "name", f"s{i}", "mtu", "9000"
            )
            for end in (f"h{i}", f"s{i}"):
                self.run("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
                self.run("ip", "link", "set", end, "up")

    def run(self, *command: str, inside: bool = True) -> str:
        prefix = ("ip", "netns", "exec", self.name) if inside else ()
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def raw_socket(self, interface: str) -> socket.socket:
        """Return a socket in this namespace with room for a burst that its test reads later."""
        made: list[socket.socket] = []

        def make() -> None:
            with open(f"/run/netns/{self.name}") as file:
                assert ctypes.CDLL(None).setns(file.fileno(), _CLONE_NEWNET) == 0
            made.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
            made[0].bind((interface, 0))
            made[0].setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
            made[0].setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
            made[0].settimeout(5)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        self.sockets.append(made[0])
        return made[0]

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        self.run("ip", "netns", "del", self.name, inside=False)


class Zygote:
    """Process of `zygote.py`, from which switch processes are forked."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("zygote.py"))]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True)

    def fork(self, arguments: list[str], namespace: Namespace, folder: Path) -> Forked:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([arguments, namespace.name, str(folder)]) + "\n")
        self._process.stdin.flush()
        return Forked(folder)

    def close(self) -> None:
        self._process.communicate(timeout=20)


class Forked:
    """Process forked from a zygote, with the interface of `subprocess.Popen`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.returncode: int | None = None
        wait_until((folder / "pid").exists, 60)
        self.pid = int((folder / "pid").read_text())

    def poll(self) -> int | None:
        status = self._folder / "status"
        if self.returncode is None and status.exists():
            self.returncode = os.waitstatus_to_exitcode(int(status.read_text()))
        return self.returncode

    def wait(self, timeout: float) -> None:
        wait_until(lambda: self.poll() is not None, timeout)

    def communicate(self, timeout: float) -> tuple[None, str]:
        self.wait(timeout)
        return None, (self._folder / "stderr").read_text()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Daemon:
    """`p4cc switch` in a namespace, with its P4Runtime server at a Unix socket.

    It is forked from a process that has loaded p4cc or, without a `zygote`, started with a new
    Python.
    """

    def __init__(
        self,
        namespace: Namespace,
        folder: Path,
        *arguments: str,
        traffic: dict[str, Any] | None = None,
        address: str = "",
        zygote: Zygote | None = None,
    ) -> None:
        self.namespace = namespace
        self.stats_file = folder / "stats.json"
        self.address = address or f"unix:{folder}/p4rt"
        if traffic is not None:
            (folder / "traffic.json").write_text(json.dumps(traffic))
            arguments = ("--traffic", str(folder / "traffic.json"), *arguments)
        self.log = folder / "log"
        told = ["--device-id", "1", "--stats", str(self.stats_file), "--log-file", str(self.log)]
        words = ["switch", *told, *arguments, "--", "--grpc-server-addr", self.address]
        self.process: subprocess.Popen[str] | Forked
        if zygote is None:
            command = ["ip", "netns", "exec", namespace.name, sys.executable, "-c", _MAIN, *words]
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        else:
            self.process = zygote.fork(words, namespace, folder)
        self.clients: list[GrpcClient] = []

    def client(self) -> GrpcClient:
        """Return a primary controller when the server answers."""
        wait_until(lambda: self.process.poll() is not None or Path(self.address.partition(":")[2]).exists(), 60)
        assert self.process.poll() is None, self.process.communicate(timeout=5)
        client = GrpcClient(self.address, 1, timeout_s=60)
        self.clients.append(client)
        client.open()
        return client

    def stop(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """Stop the process and return its statistics."""
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        assert (self.process.returncode, errors) == (0, ""), (self.process.returncode, errors)
        stats: dict[str, Any] = json.loads(self.stats_file.read_text())
        return stats

    def kill(self) -> None:
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate(timeout=20)


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("raw sockets and network namespaces need root and iproute2")
    namespace = Namespace(3)
    yield namespace
    namespace.close()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def start(namespace: Namespace, zygote: Zygote, tmp_path: Path) -> Iterator[Any]:
    """Yield a function that starts switch processes on s1, s2 and s3 as ports 1, 2 and 3.

    With `anew`, the process is started with a new Python.
    """
    started: list[Daemon] = []

    def make(*arguments: str, anew: bool = False, **more: Any) -> Daemon:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        ports = [text for i in (1, 2, 3) for text in ("-i", f"{i}@s{i}")]
        more["zygote"] = None if anew else zygote
        started.append(Daemon(namespace, folder, *ports, *arguments, **more))
        return started[-1]

    yield make
    for daemon in started:
        daemon.kill()


def quiet(sock: socket.socket, seconds: float = 0.2) -> bool:
    """Return whether no frame arrives."""
    sock.settimeout(seconds)
    try:
        sock.recv(10000)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(5)
    return False


def wait_until(condition: Any, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
