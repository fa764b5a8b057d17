"""The command line of the switch process, without a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from p4switch.daemon.command import _tracer, command
from p4switch.errors import UserError
from p4switch.trace.events import StateEntered


def test_a_full_disk_ends_the_trace_and_not_the_switch(caplog: pytest.LogCaptureFixture) -> None:
    tell = _tracer(False, Path("/dev/full"))
    assert tell is not None
    for packet in range(3):
        tell(StateEntered(packet=packet, copy=0, time=0, state="start", parser="parser"))
    assert caplog.messages == ["--trace-file /dev/full: No space left on device; no more is written"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--no-p4", "-i", "0@nothere", "-i", "1@lo", "-i", "2@nor-this"],
         "-i 0@nothere, 2@nor-this: no such interface; expected some of "),
        (["nothere.p4", "-i", "0@lo"], "nothere.p4: No such file or directory"),
        (["--no-p4", "-i", "0@lo"], "-i: raw sockets need root (or CAP_NET_RAW)"),
    ],
)
def test_what_is_missing_is_told_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    def refused(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr("socket.socket", refused)
    monkeypatch.setattr("p4switch.daemon.load", lambda: pytest.fail("the switch was compiled"))
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UserError)
    assert says in str(result.exception)
