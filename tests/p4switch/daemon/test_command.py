"""The command line of the switch process, without a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4switch.daemon.command import _tracer
from p4switch.trace.events import StateEntered


def test_a_full_disk_ends_the_trace_and_not_the_switch(caplog: pytest.LogCaptureFixture) -> None:
    tell = _tracer(False, Path("/dev/full"))
    assert tell is not None
    for packet in range(3):
        tell(StateEntered(packet=packet, copy=0, time=0, state="start"))
    assert caplog.messages == ["--trace-file /dev/full: No space left on device; no more is written"]
