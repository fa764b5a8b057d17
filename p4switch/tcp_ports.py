"""TCP ports of the loopback interface."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from p4switch.processes import AwakeClock

_LOOPBACK = "127.0.0.1"
_TURN_S = 0.02


def free_port() -> int:
    """Return the number of a port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


def await_listener(port: int, patience_s: float, in_vain: Callable[[], bool] = lambda: False) -> bool:
    """Wait until something listens at a port.

    Parameters
    ----------
    port
        Its number.
    patience_s
        Time limit, which does not count while the machine sleeps.
    in_vain
        Function that returns whether waiting is useless, because nothing will ever listen there.

    Returns
    -------
    bool
        Whether something listens.
    """
    clock = AwakeClock()
    while clock.seconds() < patience_s and not in_vain():
        with socket.socket() as probe:
            if probe.connect_ex((_LOOPBACK, port)) == 0:
                return True
        time.sleep(_TURN_S)
    return False
