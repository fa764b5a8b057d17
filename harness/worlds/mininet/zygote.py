"""Process from which switches and hosts are forked, with all their modules imported.

Starting a switch separately costs 0.8 s of CPU and 39 MB; a fork costs 10 ms and the memory pages
that it writes to. The zygote is started as `python -m harness.worlds.mininet.zygote FD` by
`launcher.Launcher`, whose requests it serves until the other end of its connection is closed for
any reason. Then it ends all its children. It does not start threads or gRPC itself, which a fork
would not survive.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any

import click

from harness.worlds.mininet import isolation
from harness.worlds.native_hosts import use_native_hosts
from p4switch import daemon, processes
from p4switch.errors import UserError

_KINDS = {"switch": "p4cc.commands.switch", "host": "harness.worlds.mininet.agent"}
_MODULES = ("grpc._server", "p4cc.commands.switch", "harness.worlds.mininet.agent", "p4switch.daemon.process")
_PACKAGES = ("p4switch.engine", "p4switch.p4runtime")
_PATIENCE_S = 3.0


def preload(modules: Iterable[str], packages: Iterable[str]) -> None:
    """Import everything that children need, modules and packages, so that its memory pages are shared."""
    for name in modules:
        importlib.import_module(name)
    for name in packages:
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    daemon.load()
    gc.collect()
    gc.freeze()


def _preload_hosts_and_switches() -> None:
    use_native_hosts()

    from host_agents import registry

    registry.protocols()
    preload(_MODULES, _PACKAGES)


def _child(kind: str, arguments: list[str], log: str, namespace_pid: int | None) -> None:
    """Run a forked process; this does not return."""
    status = 1
    try:
        processes.end_with_parent(signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        isolation.above_others()
        if namespace_pid is not None:
            isolation.enter_network(f"/proc/{namespace_pid}/ns/net")
        status = _run(kind, arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(kind: str, arguments: list[str]) -> int:
    try:
        command = importlib.import_module(_KINDS[kind]).command
        command.main(arguments, standalone_mode=False)
    except (UserError, click.ClickException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class _Zygote:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[int, str] = {}  # names of living children

    def serve(self) -> None:
        """Serve until the launcher ends or requests the end, or until SIGTERM."""
        wakeup, signalled = os.pipe()
        os.set_blocking(signalled, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._connection.send(("ready", os.getpid()))
        while True:
            watched: list[Any] = [self._connection, wakeup]
            readable, _, _ = select.select(watched, [], [])
            if wakeup in readable:
                numbers = os.read(wakeup, 4096)
                self._reap(os.WNOHANG)
                if signal.SIGTERM in numbers:
                    print("ended by SIGTERM", file=sys.stderr)
                    return
            if self._connection in readable:
                try:
                    request: tuple[Any, ...] = self._connection.recv()
                except (EOFError, OSError):
                    return
                self._start(*request)

    def _start(self, name: str, kind: str, arguments: list[str], log: str, namespace_pid: int | None) -> None:
        pid = os.fork()
        if not pid:
            self._connection.close()
            _child(kind, arguments, log, namespace_pid)
        self._names[pid] = name
        self._tell("started", name, pid)

    def _reap(self, options: int) -> None:
        while self._names:
            try:
                pid, status = os.waitpid(-1, options)
            except ChildProcessError:
                return
            if not pid:
                return
            name = self._names.pop(pid, None)
            if name is not None:
                self._tell("ended", name, os.waitstatus_to_exitcode(status))

    def _tell(self, *message: object) -> None:
        with contextlib.suppress(OSError):  # the launcher has ended, which serve() will notice
            self._connection.send(message)

    def end_children(self) -> None:
        """End children by SIGTERM, and by SIGKILL if they ignore it.

        The launcher is notified of this process's end, not of theirs.
        """
        self._connection.close()
        for number, patience_s in ((signal.SIGTERM, _PATIENCE_S), (signal.SIGKILL, _PATIENCE_S)):
            for pid in self._names:
                os.kill(pid, number)
            end = time.monotonic() + patience_s
            while self._names and time.monotonic() < end:
                self._reap(os.WNOHANG)
                time.sleep(0.01)


def main() -> None:
    """Serve the launcher's requests until its connection is closed, then end all children."""
    os.setsid()  # Ctrl-C is for the launcher, which ends the processes in order
    processes.end_with_parent(signal.SIGTERM)
    zygote = _Zygote(Connection(int(sys.argv[1])))
    _preload_hosts_and_switches()
    try:
        zygote.serve()
    finally:
        zygote.end_children()


if __name__ == "__main__":
    main()
