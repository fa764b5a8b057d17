"""Processes that p4cc starts and ends, and the ports at which it waits for them."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from p4switch import logged_process
from p4switch.logged_process import LoggedProcess
from p4switch.tcp_ports import await_listener, free_port

LISTENS = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    print("it listens", flush=True)
    time.sleep(600)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_a_process_is_over_when_its_block_is(tmp_path: Path) -> None:
    port = free_port()
    with LoggedProcess(python(LISTENS, port), tmp_path / "log") as process:
        assert await_listener(port, 60, process.over)
        assert not process.over()
    assert process.exit_status == -15
    assert process.last_line() == "it listens"
    assert not await_listener(port, 0.05)


def test_one_that_does_not_heed_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_process, "_END_S", 0.05)
    with LoggedProcess(python(DEAF), tmp_path / "log") as process:
        while process.said() != "deaf":
            assert not process.over()
    assert process.exit_status == -9


def test_nobody_waits_for_a_process_that_has_ended(tmp_path: Path) -> None:
    with LoggedProcess(python("print('why'); print('it ends'); raise SystemExit(3)"), tmp_path / "log") as process:
        assert not await_listener(free_port(), 3600, process.over)
        assert process.exit_status == 3
        assert process.last_line() == "it ends"


def test_a_free_port_can_be_listened_at() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        assert await_listener(server.getsockname()[1], 60)
