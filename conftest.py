"""Order of the tests, compilation of p4cc's modules before them, and what processes inherit and collect."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

MININET = Path(__file__).parent / "tests" / "mininet"

# No test fails because the machine is busy.
settings.register_profile("p4cc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("p4cc")

# Tests start hundreds of processes. Where Python is told to keep no bytecode, each would compile all of p4cc anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell without job control lets the commands that it starts in the background ignore Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move runs on real frames to the front: such a run mostly waits, and only one runs at a time.

    Two workers begin at the first test and in the middle: while one of them has the hosts compiled, the other one
    has tests that need none.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(MININET))


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what is there before the first test.

    It stays to the end, and a run traverses all objects before the next one.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def signals_restored() -> Iterator[None]:
    """Restore the handlers of signals after each test, because commands that it runs in this process set their own."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
