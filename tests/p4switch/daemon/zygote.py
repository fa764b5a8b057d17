"""What switch processes of tests are forked from: to load what they need takes most of a second of CPU.

Each line that it reads is [arguments of `p4cc`, network namespace, folder], of which it makes a process. In the folder
are then `stderr`, `pid` and, once it has ended, `status`, as of `os.wait`.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
from pathlib import Path

_MODULES = ("grpc._server", "harness.cli", "harness.commands.switch", "p4switch.daemon.process")
_PACKAGES = ("p4switch.engine", "p4switch.p4runtime", "p4switch.compiler")
_CLONE_NEWNET = 0x40000000


def preload() -> None:
    from p4switch import daemon

    for name in _MODULES:
        importlib.import_module(name)
    for name in _PACKAGES:
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    daemon.load()
    gc.collect()
    gc.freeze()


def keep(arguments: list[str], namespace: str, folder: Path) -> None:
    """The switch's process returns; its parent waits for it, and does not."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        from harness.cli import main

        with open(f"/run/netns/{namespace}") as file:
            assert ctypes.CDLL(None).setns(file.fileno(), _CLONE_NEWNET) == 0
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT), 2)
        main(arguments)
    tell(folder / "pid", pid)
    tell(folder / "status", os.waitpid(pid, 0)[1])
    os._exit(0)


def tell(file: Path, number: int) -> None:
    new = file.with_suffix(".new")
    new.write_text(str(number))
    new.rename(file)


if __name__ == "__main__":
    preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who keep
    for line in sys.stdin:
        arguments, namespace, folder = json.loads(line)
        if os.fork() == 0:
            keep(arguments, namespace, Path(folder))
