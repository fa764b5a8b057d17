"""Commands that p4cc runs, and waits for."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence


def run(command: Sequence[str], *, timeout_s: float, stderr: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Runs a command that reads nothing; what it prints is kept.

    It has a process group of its own, which ends with the wait for it: after a signal or after `timeout_s`, nothing
    that it has started goes on. Raises OSError, subprocess.TimeoutExpired.
    """
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace",
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
