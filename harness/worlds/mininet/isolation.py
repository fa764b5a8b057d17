"""Network namespace of a run, whose interfaces collide with no others and vanish at its end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from p4switch.errors import UserError

_CLONE_NEWNET = 0x40000000
_PR_SET_TIMERSLACK = 29
_PRIORITY = -15
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def private_network() -> Iterator[None]:
    """Move the calling thread and its future children into a new network namespace.

    Raises UserError if that is refused.
    """
    with open("/proc/thread-self/ns/net") as before:
        if _LIBC.unshare(_CLONE_NEWNET):
            reason = os.strerror(ctypes.get_errno())
            raise UserError(f"the Mininet world needs a network namespace (CAP_SYS_ADMIN), which is refused: {reason}")
        try:
            disable_ipv6()
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _LIBC.setns(before.fileno(), _CLONE_NEWNET)


def enter_network(file: str) -> None:
    """Move the calling thread into the network namespace of a file.

    Raises OSError if the file cannot be opened or is no network namespace.
    """
    with open(file) as namespace:
        if _LIBC.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def disable_ipv6() -> None:
    """Disable the kernel's own frames (router solicitations, neighbour discovery), which disturb experiments."""
    for name in ("default", "all"):
        setting = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
        if setting.exists():
            setting.write_text("1")


def above_others() -> None:
    """Give the calling process priority over everything else on the machine, as far as allowed.

    With a real-time policy it runs as soon as it is ready; the kernel leaves 5% of the time to all
    others.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_get_priority_min(os.SCHED_RR)))
    except PermissionError:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)


def exact_timers() -> None:
    """Let time-outs of the calling thread end on time, not up to 50 us later."""
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1)
