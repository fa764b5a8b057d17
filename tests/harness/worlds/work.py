"""Work for child processes. It imports few modules because each child imports them."""

from __future__ import annotations

import os
import signal

from p4switch.errors import UserError


def double(value: int) -> int:
    return 2 * value


def listening(_: int) -> list[str]:
    """Return the listening sockets of the calling process and of its parent."""
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
    """End the process in the middle of its work if the value is 0."""
    if not value:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
