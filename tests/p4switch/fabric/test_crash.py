"""A process that crashes for lack of memory is replaced by a program that cleans up."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

CRASH = """
import os, resource, sys
from p4switch.fabric import Fabric

Fabric.on_crash([b"/bin/sh", b"-c", b"echo cleaned up; exit 2"])
limit_bytes, number = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, resource.RLIM_INFINITY))
os.kill(os.getpid(), number)
"""


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_without_memory_the_program_takes_over(number: signal.Signals) -> None:
    assert crash(1_000_000_000, number) == (2, "cleaned up\n")


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_crash_for_another_reason_is_one(number: signal.Signals) -> None:
    assert crash(-1, number) == (-number, "")


def crash(limit_bytes: int, number: signal.Signals) -> tuple[int, str]:
    command = [sys.executable, "-c", CRASH, str(limit_bytes), str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout
