"""Process from which tests fork switch processes, because loading p4cc takes most of a second of CPU time.

Each input line is [arguments of `p4cc`, network namespace, folder], and starts a process. The
folder then has the files `stderr`, `pid` and, after the end of the process, `status`, as of
`os.wait`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from harness.worlds.mininet import isolation
from harness.worlds.mininet.zygote import preload

_MODULES = ("grpc._server", "p4cc.cli", "p4cc.commands.switch", "p4switch.daemon.process")
_PACKAGES = ("p4switch.engine", "p4switch.p4runtime", "p4switch.compiler")


def keep(arguments: list[str], namespace: str, folder: Path) -> None:
    """Fork the switch's process, in which the call returns; its parent waits for it, and does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        from p4cc.cli import main

        isolation.enter_network(f"/run/netns/{namespace}")
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
    preload(_MODULES, _PACKAGES)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes in `keep` are not waited for
    for line in sys.stdin:
        arguments, namespace, folder = json.loads(line)
        if os.fork() == 0:
            keep(arguments, namespace, Path(folder))
