"""Work for processes; imports little, as each of them imports it."""

from __future__ import annotations

import os
import signal

from p4switch.errors import UserError


def double(value: int) -> int:
    return 2 * value


def listening(_: int) -> list[str]:
    """Sockets of the calling process, and of its parent, that others may connect to."""
    import psutil

    own = psutil.Process()
    return [
        str(connection)
        for process in (own, own.parent())
        if process is not None
        for connection in process.net_connections("all")
        if connection.status == psutil.CONN_LISTEN or (connection.family.name == "AF_UNIX" and connection.laddr)
    ]


def refuse(_: int) -> int:
    raise UserError("refused")


def fall(value: int) -> int:
    """0: the process ends in its midst."""
    if not value:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
